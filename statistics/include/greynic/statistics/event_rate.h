#pragma once

/// The rate of events that come in bursts, from how many came in each of some two thousand bins of
/// time: a warm-up cut, an estimate, its standard error, a verdict.
///
/// Batch means (steady_state.h) need twenty batches that each hold many events. Completions of many
/// QPs come together instead, three to a few dozen bursts in a whole run, and each tells of work
/// that was done before. Counting between two edges is then off by up to a burst. What is done
/// depends on what the series looks like:
///
/// - Bursts that silences divide. At the end of a burst all that was done has been told. The rate
/// is
///   the slope of a line through those moments (least squares), so bursts may come irregularly and
///   hold unequal numbers.
/// - A series that repeats itself after a time L, two to twelve times in the run (ragged bursts, or
///   only some of the QPs in step). The rate is the mean over all windows of length L that fit:
///   each of them holds every state of the series once.
/// - Anything else. Each event is weighted by a bell over the time (Hann's), which weighs nothing
/// at
///   the edges. Its mean is the rate of every stationary series (Campbell's theorem); its variance
///   is half as much again as that of counting.
///
/// What comes before the first event is left out: queues that fill tell nothing. MSER cuts the rest
/// of the warm-up from the rates of the bursts, or of twenty blocks of time.
///
/// Example: 300 events come every 300 bins, in 2000 bins: one a bin. Counting says 6 or 7 bursts,
/// 0.9 or 1.05 a bin, as the edges fall. The line through their ends rises 300 in 300 bins: 1.0.

#include <cstdint>
#include <optional>
#include <span>

namespace greynic::statistics {

struct EventRate {
  double per_bin = 0.0;
  /// Two of them hold the true rate in 95 of 100 runs: widened, as Student's t is, where few bursts
  /// came. Empty below three bursts.
  std::optional<double> standard_error;
  bool settled = false;       ///< both halves of what was kept agree (halves.h)
  double warmup_share = 0.0;  ///< of the bins, left out in front
};

[[nodiscard]] EventRate estimate_event_rate(std::span<const std::uint64_t> bins);

}  // namespace greynic::statistics
