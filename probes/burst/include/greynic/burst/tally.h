#pragma once

/// All bursts so far in numbers, and the deepest of them. Its memory does not grow with the bursts.

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "greynic/burst/analyser.h"
#include "greynic/core/histogram.h"

namespace greynic::burst {

class Tally {
 public:
  static constexpr std::size_t kDeepest = 20;
  static constexpr std::array<double, 9> kBoundsUs = {10,   30,    100,    300,    1000,
                                                      3000, 10000, 100000, 1000000};
  struct OfQueue {
    std::uint64_t bursts = 0, packets = 0, victims = 0;  ///< victims: packets of theirs
    std::uint64_t peak_depth_bytes = 0;
    double seconds = 0.0;                                         ///< all durations
    std::array<std::uint64_t, kBoundsUs.size()> within_bounds{};  ///< that lasted no longer
  };

  void add(const Burst& burst);

  [[nodiscard]] std::uint64_t bursts() const { return durations_.count(); }
  /// By number; queues beyond the last that had a burst are not there.
  [[nodiscard]] const std::vector<OfQueue>& queues() const { return queues_; }
  /// kDeepest of them at most, in the order of their beginnings; of equals, the first.
  [[nodiscard]] std::vector<Burst> deepest() const;
  /// The time within which this share of the bursts ended, to 1/256; 0 of no bursts.
  [[nodiscard]] double duration_us(double share) const {
    return durations_.quantile_ns(share) * 1e-3;
  }
  /// Of all marked packets, those of victims.
  [[nodiscard]] double victim_share() const;

 private:
  LatencyHistogram durations_;
  std::vector<OfQueue> queues_;
  std::vector<Burst> deepest_;  ///< deepest first
};

}  // namespace greynic::burst
