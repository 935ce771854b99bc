#pragma once

/// The units of a node as one chain of matchers that compare ports as ranges.
///
/// Units of equal mask share a matcher, whatever their ports: what part them elsewhere, one port
/// here and 1024:65535 there, are ranges of one matcher. A device does not say which of two rules
/// of one matcher wins, so a unit gives way there to those before it: its ports without theirs, as
/// long as these are few ranges. What must come before what is then found unit by unit, and matchers
/// are split where they must each come before the other.

#include "src/chained/node.h"
#include "src/chained/plan.h"

namespace greynic::optimizer::ranged {

[[nodiscard]] std::vector<chained::PlanMatcher> range_chain(const chained::Units& units,
                                                            const chained::Node& node);

}  // namespace greynic::optimizer::ranged
