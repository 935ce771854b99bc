#pragma once

/// In what order a plan is run. The rows of a covering array count as a whole, but a campaign that
/// looks for faults is better off when what is likely to be a cause comes early: it may be stopped,
/// and what it finds can be explained sooner.

#include <functional>

#include "plan/likely_causes.h"

namespace greynic::testgen {

/// Puts rows behind the first `fixed` ones into an order in which each next row meets the most
/// likely causes that no row before it did, then the most levels, pairs and triples of levels.
void put_likely_causes_first(std::vector<LevelRow>& rows, const std::vector<Axis>& axes,
                             std::size_t fixed);

/// Rows to begin a plan with: each the best of `pool` (valid rows, at random), made to meet more
/// causes that neither `before` nor an earlier one meets, by one level after the other, as long as
/// `valid` allows. Fewer than `count` where nothing is left to meet, none where causes of three
/// conditions are too many to look at.
[[nodiscard]] std::vector<LevelRow> front_rows(const std::vector<LevelRow>& pool,
                                               const std::vector<LevelRow>& before,
                                               const std::vector<Axis>& axes, std::size_t count,
                                               const std::function<bool(const LevelRow&)>& valid);

}  // namespace greynic::testgen
