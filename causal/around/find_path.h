#pragma once

/// Measures the critical path of a wall (greynic/causal/critical_path.h): wall and baseline, and for
/// each stage that has settings three configurations, thrice each.

#include "greynic/causal/critical_path.h"
#include "surroundings.h"

namespace greynic::causal {

/// `causes`: of this wall, for the symptom. kAllowanceSpent: what was found until then stays in
/// `found`.
[[nodiscard]] Result<void> find_path(Surroundings& around, const std::vector<Cause>& causes,
                                     CriticalPath& found);
/// Of a device that did not recover from a wall by itself: the symptom is known, and no more.
[[nodiscard]] CriticalPath path_of_stuck_device();

}  // namespace greynic::causal
