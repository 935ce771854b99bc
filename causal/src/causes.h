#pragma once

/// What is done with causes, however they were found: which walls each explains, which of them says
/// what another says too, and where clear configurations contradict one.

#include <functional>

#include "greynic/causal/explain.h"

namespace greynic::causal {

/// The levels of a campaign's baseline, completed by each factor's first level.
[[nodiscard]] Configuration whole_baseline(const Campaign& campaign);

/// Factors that a configuration sets otherwise than the baseline; those that do not exist in it
/// follow from the others and are left out.
[[nodiscard]] std::vector<std::string> changed_factors(const Configuration& baseline,
                                                       const Configuration& configuration);

/// The condition that `level` of a factor stands for: an order relation away from the baseline for
/// numbers, equality otherwise.
[[nodiscard]] Condition condition_for(const std::string& factor, const FactorValue& baseline,
                                      const FactorValue& level);

/// The unexplained wall that differs least from the baseline: it has the least to search.
[[nodiscard]] std::optional<std::size_t> next_wall(const std::vector<Wall>& walls,
                                                   const Configuration& baseline,
                                                   const std::vector<bool>& given_up);

/// Walls without a cause that this one explains get its index.
void assign(std::vector<Wall>& walls, const Cause& cause, std::size_t index);

/// The threshold of a gradual wall differs from wall to wall, and each search finds its own. The
/// widest cause covers the narrower ones, so only it is kept.
void drop_narrower_causes(std::vector<Cause>& causes);

/// Tests an exception: true when it makes the cause clear.
using TestException = std::function<Result<bool>(Cause& cause, const Configuration& wall,
                                                 const Condition& exception)>;

/// Finds exceptions for the clear configurations in which all terms of a cause hold. Only walls
/// that no other cause explains speak against an exception. `test` may be empty: plain belief.
[[nodiscard]] Result<void> find_exceptions(Explanation& explanation,
                                           const std::vector<Configuration>& clear,
                                           const TestException& test);

/// Sorts walls (worst first) and causes (by how much they explain).
void put_in_order(Explanation& explanation, const WallRule& rule);

}  // namespace greynic::causal
