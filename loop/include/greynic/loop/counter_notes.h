#pragma once

/// Which counters rose where a wall is: what a device counts may tell why, which no bandwidth says.

#include <span>
#include <string>
#include <vector>

#include "greynic/causal/explain.h"

namespace greynic::loop {

/// A line for each cause whose walls, and whose baseline, were sampled while traffic ran: counters
/// that ran at twice the baseline's rate or more, and counters that stand still at the baseline.
/// They rose where the wall is; that they cause it is not said.
[[nodiscard]] std::vector<std::string> counter_notes(const causal::Explanation& explanation,
                                                     std::span<const Observation> observations);

}  // namespace greynic::loop
