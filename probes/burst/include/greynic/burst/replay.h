#pragma once

/// Packets replayed through a queue of stated rate: who would have waited for whom.
///
/// Every frame joins the queue when it was captured, with its ORIGINAL length (a snap length
/// changes nothing), and drains at the rate (fifo.h). greynic/capture/capture.h reads captures. A time before the one before it counts as
/// equal to that one. Memory depends on the queue's depth, not on the capture's length, where the
/// options name somebody to tell of bursts; else Findings::bursts keeps them all.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "greynic/burst/findings.h"

namespace greynic::burst {

struct ReplayOptions {
  Allowance allowance;
  Mode mode = Mode::kArmedAtEnqueue;
  std::size_t ring_records = 1000;
  /// The ring is emptied over a mirror port of this rate, one minimal frame (84 bytes on the wire)
  /// a record; 0: at once, so nothing is lost.
  std::uint64_t mirror_bits_per_second = 0;
  bool keep_profiles = false;                      ///< for pictures
  std::size_t most_queued = std::size_t{1} << 24;  ///< packets that wait at once; beyond: kTooBig
  /// Told each burst as it ends, with what is known of the queue by then.
  std::function<void(const Findings& so_far, const Burst& burst)> found = {};
};

/// Packets of one queue in the order of their arrival, from wherever they come.
class Replay {
 public:
  /// Told the 0-based number of each marked packet.
  using Marked = std::function<void(std::uint64_t number)>;
  explicit Replay(const ReplayOptions& options, Marked marked = {});
  ~Replay();
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  /// `time_ns` on any clock. kTooBig: the queue holds more than the options allow.
  [[nodiscard]] Result<void> add(std::uint64_t time_ns, std::uint32_t bytes, const FlowKey& flow);
  /// Everybody leaves; what was found.
  [[nodiscard]] Findings finish();

 private:
  struct Work;
  std::unique_ptr<Work> work_;
};

}  // namespace greynic::burst
