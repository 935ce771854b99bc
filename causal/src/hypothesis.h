#pragma once

/// Causes from stored observations alone: the simplest conjunction that holds on a wall and on no
/// clear configuration of the run.

#include "judge.h"

namespace greynic::causal {

/// Walls and clear configurations, as judged.
struct Judged {
  std::vector<Configuration> walls;
  std::vector<Configuration> clear;
};

/// Best hypothesis for `wall`; empty when every conjunction of at most `most_terms` terms also
/// holds somewhere clear. Confidence is 1 - M q^k: k walls that satisfy it, q the share of walls in
/// the run, M the number of conjunctions tried.
[[nodiscard]] std::optional<Cause> best_hypothesis(const Configuration& baseline,
                                                   const Configuration& wall, const Judged& judged,
                                                   int most_terms);

}  // namespace greynic::causal
