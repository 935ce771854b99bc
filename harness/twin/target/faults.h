#pragma once

/// Negative tests on a virtual RNIC: one wrong request between two virtual RC QPs, worked through
/// the checks that the specification asks of requester and responder. No time passes: what is
/// observed is the status alone.

#include <string>

#include "greynic/core/fault_table.h"
#include "greynic/core/observation.h"

namespace greynic::twin {

/// Verbs name of the status that the requester is told.
[[nodiscard]] std::string provoke(Fault fault, std::string_view operation);

/// Outcome, measures and statuses (in the environment) of a configuration that has a fault.
[[nodiscard]] Observation observe_fault(const Configuration& configuration);

}  // namespace greynic::twin
