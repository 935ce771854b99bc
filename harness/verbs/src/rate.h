#pragma once

/// From completions in time to a rate: a warm-up cut, an estimate, a verdict.
///
/// Completions come in bursts when many QPs are served in step, and a burst at an edge of the
/// measured time falls in or out of it: counting is off by up to one burst in all of them. Two
/// estimates are free of that. With many bursts each message is weighted by a bell over the kept
/// time (Hann's), under which the edges weigh nothing: its mean is the rate for every stationary
/// stream (Campbell's theorem), and of K regular bursts it is off by about 2 / (pi K^3), for half
/// as much variance again as counting. With few bursts the rate is that from the beginning of the
/// first whole burst to the beginning of the last.

#include <array>
#include <cstdint>
#include <optional>

#include "greynic/core/observation.h"

namespace greynic::verbs {

constexpr int kSlices = 20;
constexpr int kBinsPerSlice = 100;

/// What completed in each bin of the measured time; one for each thread.
class Slices {
 public:
  Slices(std::int64_t begin_ns, std::int64_t end_ns);
  void add(std::int64_t at_ns, std::uint64_t messages);
  void merge(const Slices& other);

  struct Rate {
    double per_second = 0.0;
    std::optional<double> standard_error;
    SteadyState steady;
  };
  [[nodiscard]] Rate rate() const;

 private:
  /// Messages a bin from the beginning of bin `from` to the end.
  [[nodiscard]] double weighted_rate(int from) const;
  /// The same between bursts; empty when there are too many of them, or none.
  [[nodiscard]] std::optional<double> rate_between_bursts(int from) const;

  std::int64_t begin_ns_;
  std::int64_t bin_ns_;
  std::array<std::uint64_t, kSlices * kBinsPerSlice> bins_{};
};

}  // namespace greynic::verbs
