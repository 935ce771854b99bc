#pragma once

/// Rules of equal priority that overlap and do different things: which of them wins is left open by
/// OpenFlow, and by most devices.

#include <string>
#include <vector>

#include "greynic/core/flow_rule.h"

namespace greynic::optimizer {

/// A sentence for each of the first pairs, with what was assumed, and one for how many more there
/// are; empty when there is none.
[[nodiscard]] std::vector<std::string> ambiguous_pairs(const RuleSet& rules);

}  // namespace greynic::optimizer
