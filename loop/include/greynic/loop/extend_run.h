#pragma once

/// Plans what to measure next.

#include <string>
#include <vector>

#include "greynic/loop/talk.h"
#include "greynic/testgen/plan.h"

namespace greynic::loop {

/// What a target offers and how fast it is, as planning asks it; opens the target.
[[nodiscard]] Result<testgen::DeviceLimits> limits_of(const std::string& target);

/// Plans what to add to runs of one campaign, the first run's: tuples still open, and more around
/// the causes of the explanations kept with them. Without limits in `options`, those of the run's
/// own target count when it is a virtual one; `talk` hears what could be added.
[[nodiscard]] Result<testgen::Plan> plan_extension(const std::vector<std::string>& runs,
                                                   testgen::PlanOptions options, const Talk& talk);

}  // namespace greynic::loop
