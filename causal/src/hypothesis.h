#pragma once

/// Causes from stored observations alone: the simplest conjunction that holds on a wall and on no
/// clear configuration of the run.

#include "greynic/causal/explain.h"

namespace greynic::causal {

/// What the tests of a run came to; undecided and refused configurations are in neither list.
struct WallsAndClear {
  std::vector<Configuration> walls;
  std::vector<Configuration> clear;
};

/// Best hypothesis for `wall`; empty when every conjunction of at most `most_terms` terms also
/// holds somewhere clear. Confidence is 1 - M q^k: k walls that satisfy it, q the share of walls in
/// the run, M the number of conjunctions tried.
[[nodiscard]] std::optional<Cause> best_hypothesis(const Configuration& baseline,
                                                   const Configuration& wall,
                                                   const WallsAndClear& tested, int most_terms);

/// Levels that clear configurations satisfying the cause have and no wall satisfying it has; the
/// one that excuses most is asked first, until all are excused or none is left. Each must excuse at
/// least `least` configurations, and `accept` (a test, or plain belief) has the last word.
[[nodiscard]] std::vector<Condition> exceptions(const Cause& cause, const WallsAndClear& tested,
                                                std::size_t least,
                                                const std::function<bool(Condition&)>& accept);

}  // namespace greynic::causal
