#pragma once

/// The books of latency mode. A round trip is noted in two words. Many are entered in histogram and
/// rate at once, between two pings, so that this cost is in no ping's latency.

#include <array>
#include <cstddef>
#include <cstdint>

#include "greynic/core/histogram.h"
#include "traffic/completion_rate.h"

namespace greynic::verbs {

class TripBook {
 public:
  /// Trips that are back from `begin_ns` on are measured; a latency is a trip divided by `parts`.
  TripBook(std::int64_t begin_ns, std::int64_t end_ns, std::int64_t parts)
      : begin_ns_(begin_ns), parts_(parts), bins_(begin_ns, end_ns) {}

  /// Only while not full().
  void note(std::int64_t sent_ns, std::int64_t back_ns) { noted_[count_++] = {sent_ns, back_ns}; }
  [[nodiscard]] bool full() const { return count_ == kMostNoted; }
  /// Enters what is noted.
  void enter();

  /// Of the trips that have been entered.
  [[nodiscard]] const LatencyHistogram& latency() const { return latency_; }
  [[nodiscard]] CompletionBins::Rate rate() const { return bins_.rate(); }

 private:
  static constexpr std::size_t kMostNoted = 256;  // 4 KiB: little of the first cache
  struct Trip {
    std::int64_t sent_ns;
    std::int64_t back_ns;
  };

  std::int64_t begin_ns_;
  std::int64_t parts_;
  std::array<Trip, kMostNoted> noted_{};
  std::size_t count_ = 0;
  CompletionBins bins_;
  LatencyHistogram latency_;
};

}  // namespace greynic::verbs
