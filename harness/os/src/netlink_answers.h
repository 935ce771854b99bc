#pragma once

/// What the kernel answered to a batch of requests.

#include <linux/netlink.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "greynic/os/netlink.h"

namespace greynic::os {

/// Visits the messages in a datagram.
void each_message(ByteView datagram,
                  const std::function<void(const nlmsghdr& header, ByteView payload)>& visit);

/// The number in an NLMSG_ERROR, as in errno; 0 when the kernel said yes.
[[nodiscard]] int error_of(ByteView payload);

/// Collects the acknowledgements of requests whose sequence numbers follow one another.
class BatchAnswers {
 public:
  BatchAnswers(std::uint32_t first_sequence, std::size_t requests)
      : first_(first_sequence), open_(requests) {}

  /// Takes one datagram; answers to other requests are passed over.
  void take(ByteView datagram);
  [[nodiscard]] bool complete() const { return open_ == 0; }

  struct Refusal {
    std::size_t index = 0;  ///< of the request in the batch
    Error error;            ///< kMissing for want of a right, else kRefused
  };
  /// The first request that was refused.
  [[nodiscard]] const std::optional<Refusal>& refusal() const { return refusal_; }

 private:
  std::uint32_t first_;
  std::size_t open_;
  std::optional<Refusal> refusal_;
};

}  // namespace greynic::os
