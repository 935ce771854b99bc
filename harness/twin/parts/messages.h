#pragma once

/// The messages of a run, and what each of their packets takes of the wire and of both PCIe links.
/// All of it is known before the first packet is sent.

#include <cstdint>
#include <vector>

#include "parameters/host_load.h"
#include "stages/pcie.h"
#include "stages/stage.h"

namespace greynic::twin {

/// A processing unit sends so many packets of a QP, then those of the next QP.
inline constexpr std::uint8_t kTurnPackets = 4;

/// What one data packet carries, and the time that it takes.
struct Freight {
  std::uint32_t payload = 0;
  Time wire_ns = 0, read_ns = 0, write_ns = 0;
  Time stored_ns = 0;  ///< in stages that take it in whole before they pass it on
};

struct MessageShape {
  std::uint64_t bytes = 0;
  std::uint32_t packets = 1;
  Freight first, middle, last;
  std::uint32_t reads = 1;  ///< of its payload, before its first burst can be sent
  bool inlined = false;
  /// A packet's payload crosses PCIe, and the packet is whole on chip.
  [[nodiscard]] Time first_read_ns() const { return packets > 1 ? first.read_ns : last.read_ns; }
};

/// What decides the shape of a message.
struct MessageForm {
  Operation operation = Operation::kSend;
  Transport transport = Transport::kRC;
  bool overlay = true;
  bool inlined = false;    ///< the payload comes with the WQE
  bool both_ways = false;  ///< the sender's PCIe link takes as much as it gives
  std::uint32_t mtu_bytes = 1024;
  std::uint32_t sge_count = 1;
  std::uint64_t bytes = 0;
};
[[nodiscard]] MessageShape shape_of(const Parameters& parameters, const PcieLink& pcie,
                                    const MessageForm& form);

/// The sizes of `load.message_bytes`, which every stream takes in turn.
class MessageCycle {
 public:
  MessageCycle() = default;
  /// `ping_pong`: latency is measured, where perftest inlines small messages.
  MessageCycle(const Parameters& parameters, const HostLoad& load, const PcieLink& pcie,
               bool ping_pong);
  /// The n-th message of a stream.
  [[nodiscard]] const MessageShape& operator[](std::uint32_t message) const {
    return shapes_[shapes_.size() == 1 ? 0 : message % shapes_.size()];
  }
  [[nodiscard]] const std::vector<MessageShape>& shapes() const { return shapes_; }
  [[nodiscard]] double packets_per_message() const;

 private:
  std::vector<MessageShape> shapes_;
};

}  // namespace greynic::twin
