#pragma once

/// Matchers of a plan whose ports are compared as ranges: no bits of these are in their masks.

#include "src/chained/plan.h"

namespace greynic::optimizer::ranged {

/// No entries yet.
[[nodiscard]] chained::PlanMatcher matcher_on(const chained::Units& units, const Word* mask);

/// An entry for these bits under the mask that the matcher was made of.
chained::PlanEntry& add_entry(const chained::Units& units, const Word* value, const Word* mask,
                              chained::PlanMatcher& matcher);

/// The matcher as a device gets it. A field that no entry bounds is not looked at; where one prefix
/// length does for all, no range.
[[nodiscard]] chained::PlanMatcher with_masks(const chained::Units& units,
                                              const chained::PlanMatcher& matcher);

/// A plan of masks, so that ports by prefixes may become ranges. Ports of other masks stay bits.
void allow_ranges(const chained::Units& units, chained::Plan& plan);

}  // namespace greynic::optimizer::ranged
