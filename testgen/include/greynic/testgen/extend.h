#pragma once

/// A second plan after a run: the fewest further configurations that raise the coverage of what now
/// matters. What was measured counts as covered. Levels that met only in configurations which the
/// target refused, or which failed, are still open: they are tried again in other company. For each
/// set of factors that an explanation names, that set is covered together with every other factor,
/// one order higher, since the open question is what else the cause depends on.

#include <span>
#include <string>
#include <vector>

#include "greynic/core/observation.h"
#include "greynic/testgen/plan.h"

namespace greynic::testgen {

/// The factors of each cause in an explanation as `greynic explain --json` writes it.
/// kBadInput when the text is no explanation.
[[nodiscard]] Result<std::vector<std::vector<std::string>>> factors_of_causes(
    const std::string& explanation_json);

/// The baseline and the new configurations. Causes of more than five factors, and names that are no
/// factors of the campaign, are left out and noted. Errors as make_plan.
[[nodiscard]] Result<Plan> extend_plan(const Campaign& campaign,
                                       std::span<const Observation> observations,
                                       const std::vector<std::vector<std::string>>& causes,
                                       const PlanOptions& options);

}  // namespace greynic::testgen
