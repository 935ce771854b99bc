#pragma once

/// From completions in time to a rate: a warm-up cut, an estimate, its standard error, a verdict.
///
/// Completions tell of work that was done before, and those of many QPs come together: a burst, a
/// silence, a burst. Counting them between two edges is off by up to a burst. What is done instead
/// depends on what the series looks like:
///
/// - Bursts that silences divide. At the end of a burst all that was done has been told, so the
///   rate is the slope of what was told against time at those moments alone (a line through all of
///   them, least squares): bursts may come irregularly and hold unequal numbers.
/// - A series that repeats itself after a time L, two to twelve times in the run (ragged bursts, or
///   only some of the QPs in step). The rate is the mean over all windows of length L that fit: in
///   each of them the series is in every one of its states once.
/// - Anything else: each message is weighted by a bell over the time (Hann's), under which the
/// edges
///   weigh nothing. Its mean is the rate for every stationary series (Campbell's theorem), for half
///   as much variance again as counting.
///
/// Until the first completion nothing is measured: queues that fill tell nothing.

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
    /// Two of them hold the true rate in 95 of 100 runs: widened, as Student's t is, when there is
    /// little to tell it from. Empty when there is nothing to tell it from: fewer than three
    /// bursts.
    std::optional<double> standard_error;
    SteadyState steady;
  };
  [[nodiscard]] Rate rate() const;

 private:
  std::int64_t begin_ns_;
  std::int64_t bin_ns_;
  std::array<std::uint64_t, kSlices * kBinsPerSlice> bins_{};
};

}  // namespace greynic::verbs
