#pragma once

/// Where a term begins and ends between the campaign's levels.

#include "greynic/causal/explain.h"
#include "src/settings.h"

namespace greynic::causal {

/// Halves what lies between the last clear and the first wall level of each number of a cause, until
/// it is no more than `share` of the larger one, or one apart where both are whole numbers. `alone`:
/// the configuration in which the cause was tested. Ends early where a level is forbidden or cannot
/// be decided.
[[nodiscard]] Result<void> find_finer(Session& session, Settings& settings,
                                      const Configuration& alone, double share, Cause& cause);

}  // namespace greynic::causal
