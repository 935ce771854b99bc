#pragma once

/// Says why something cannot be, straight from the constraints of a model
/// (language/model_oracle.h).

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "greynic/language/cover_model.h"

namespace greynic::language {

struct ExplainOptions {
  double deadline_seconds = 60.0;  ///< what is left by then is counted, not explained
  std::function<double()> clock;   ///< seconds, from any start; empty: the steady clock
  std::function<void(double share_done, std::size_t explained)> progress;  ///< may be empty
};

struct Explanations {
  std::vector<std::string> lines;  ///< of each tuple explained, in the order given
  std::size_t left = 0;            ///< tuples that the deadline left no time for
};

/// Why tuples of a model cannot be, one line for each: "p=1, q=2: 'p == 1 -> q != 2' (line 7)".
/// Where part of a tuple is forbidden already the line says which: "p=1, q=2: already q=2: ...".
/// Where the cause is not found the line says so, and what was found instead. The first tuple is
/// always looked at.
[[nodiscard]] Explanations explain_infeasible(const CoverModel& model,
                                              const std::vector<Tuple>& tuples,
                                              const ExplainOptions& options = {});

/// For people: "'a -> b' (line 3); 'c != 2' (line 9)". `levels` has a level or -1 (any) for each
/// parameter and must not be extendable to a valid row.
[[nodiscard]] std::string describe_conflict(const CoverModel& model,
                                            const std::vector<int>& levels);

}  // namespace greynic::language
