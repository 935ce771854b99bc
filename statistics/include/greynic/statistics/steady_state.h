#pragma once

/// When has a run settled, and how sure is its mean? MSER-5 finds the warm-up to cut, and batch
/// means of what is left give the standard error.

#include <cstddef>
#include <span>

namespace greynic::statistics {

struct SteadyEstimate {
  bool settled = false;       ///< the best cut lies in the first half of the series
  std::size_t cut = 0;        ///< samples of warm-up, from the start
  double mean = 0;            ///< of what is left
  double standard_error = 0;  ///< of the mean, from batch means (lag-1 correlation allowed for)
  [[nodiscard]] double relative_error() const { return mean > 0 ? standard_error / mean : 0; }
};

/// Source: K. P. White, "An effective truncation heuristic for bias reduction in simulation output"
/// (MSER), applied to means of five (MSER-5); 20 batch means for the interval. A series that has
/// not settled by that and repeats itself (autocorrelation of its second half) is judged by moving
/// means over one period, and its batches are whole periods; a period is a quarter of the series
/// at most.
/// Fewer than 40 samples are never settled.
[[nodiscard]] SteadyEstimate estimate_steady(std::span<const double> samples);

}  // namespace greynic::statistics
