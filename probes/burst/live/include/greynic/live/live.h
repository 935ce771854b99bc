#pragma once

/// Microbursts of a network device of this host, by a program in the kernel at its queueing
/// discipline. The kernel runs the snapshot rule and sends a record of each marked packet; all else
/// is done here. The program goes with this object, and with the process however that ends.
///
/// What can be watched: tbf, and htb with a queue of its own for each class, whose leaves are pfifo
/// or bfifo; pfifo and bfifo where the device does not let packets by (a veth does). Depth is what
/// the discipline counts, so packets of segmentation offload count with the headers of their
/// segments. docs/bursts.md.

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "greynic/burst/findings.h"

namespace greynic::live {

struct LiveOptions {
  std::string interface;
  burst::Allowance allowance;  ///< rate 0: that of the token bucket
  burst::Mode mode = burst::Mode::kArmedAtEnqueue;
  std::size_t ring_records = 1000;  ///< between kernel and reader, at least; 2^24 at most
  bool every_packet = false;        ///< a record of every packet: to compare costs
  /// Told of every record.
  std::function<void(const burst::CourierRecord&)> record = {};
  /// Told of every burst as it ends. Nobody else keeps it: Findings::bursts of a probe is empty.
  burst::Analyser::Found found = {};
};

/// Is the program part of this build?
[[nodiscard]] bool can_watch_devices();

class LiveProbe {
 public:
  /// In the network namespace of the calling thread. kBadInput for a device that is not there;
  /// kBadInput without a
  /// rate where the queue does not say it; kMissing with the remedy without BTF, rights or hooks, and for a discipline that cannot be
  /// watched.
  [[nodiscard]] static Result<std::unique_ptr<LiveProbe>> open(const LiveOptions& options);
  virtual ~LiveProbe() = default;
  LiveProbe(const LiveProbe&) = delete;
  LiveProbe& operator=(const LiveProbe&) = delete;

  /// Takes the records that have come, and waits for some for at most so long.
  [[nodiscard]] virtual Result<void> poll(std::chrono::milliseconds patience) = 0;
  /// Changes the threshold while traffic runs.
  [[nodiscard]] virtual Result<void> allow(std::uint64_t share_e8) = 0;
  /// What was found so far; bursts that still go on are not among it. Times are from the start.
  [[nodiscard]] virtual burst::Findings findings() = 0;

 protected:
  LiveProbe() = default;
};

}  // namespace greynic::live
