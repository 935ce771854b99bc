#pragma once

/// Rules that ask for a tag in place of what all of them look at.
///
/// Masks of many fields take many lookup recipes, or more than a device can chain. Where all rules look
/// at the same bits, say port and connection, a first table can look at these once: it sets a tag for
/// each value that rules ask for, and the rules behind it ask for the tag.

#include <optional>

#include "greynic/core/layout_limits.h"

namespace greynic::optimizer::recipes {

struct Tagged {
  RuleSet rules;                 ///< of the table behind, without what is asked first
  Traffic traffic;               ///< packets that some rule may match, with their tags
  Mask asked_first;              ///< bits that all rules look at
  std::uint32_t first = 0;       ///< id of the rules' table
  std::vector<FlowRule> values;  ///< of the first table, by tag - 1: each sets its tag and jumps
};

/// Empty where rules have no bits in common, no field is free for tags, or no mask takes fewer recipes.
/// `rules` are of one table; those behind get the table `behind`.
[[nodiscard]] std::optional<Tagged> tag_rules(const RuleSet& rules, const Traffic& traffic,
                                              const LayoutLimits& limits, std::uint32_t behind);

/// The first table, for tags that `hardware` asks for; all else jumps to `slow`.
[[nodiscard]] LayoutTable first_table(const Tagged& tagged, const Layout& hardware,
                                      std::uint32_t slow);

}  // namespace greynic::optimizer::recipes
