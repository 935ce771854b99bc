#pragma once

/// What a packet meets in an eSwitch, group by group: from a layout that was installed, or from
/// numbers of masks. Groups are what the driver makes of masks.
///
/// The driver's auto-grouping (mlx5): the first masks get a large group each; when these are used
/// up, every further rule gets a group of its own, so that masks beyond the knob cost as many
/// groups as they have rules. Source: Linux, devlink parameter fdb_large_groups of mlx5.
///
/// Exact match first: a switch that can looks into the group that fixes every bit that any other
/// group of its table looks at before all others, whatever its place in the order.

#include <optional>

#include "greynic/core/flow_rule.h"
#include "greynic/core/layout_limits.h"
#include "parameters/host_load.h"
#include "parameters/parameters.h"

namespace greynic::twin {

/// Groups that a packet is checked against that matches none of `masks` masks before the last.
[[nodiscard]] double groups_of_masks(double masks, double rules_per_mask, const Grouping& grouping);

/// Share of rules, 0..1, that have a group of their own: their insertion creates it.
[[nodiscard]] double lone_rule_share(double masks, const Grouping& grouping);

/// Groups that one packet is checked against in a layout that it enters at `table`. What rules write into fields before a jump
/// is seen behind it.
[[nodiscard]] double groups_tried(const Layout& layout, Packet packet, const Grouping& grouping,
                                  std::uint32_t table = 0);

/// Shares of packets by how many groups they are checked against. Without traffic: of packets that
/// hit the rules of the entry table, by the rules' own weights.
[[nodiscard]] GroupWalk walk_of(const Layout& layout, const Traffic* traffic,
                                const Grouping& grouping);

/// Lookup recipes that a mask takes of a switch whose recipes look at `words` 16-bit words each:
/// one alone, or a chain and one more that joins it. Source: Linux, ice, adding a switch recipe.
[[nodiscard]] double recipes_of(const Mask& mask, double words);

/// What a layout for the RNIC may look like. A switch with recipes has them for so many shapes of
/// masks, and a wide one takes several.
[[nodiscard]] LayoutLimits layout_limits(const Parameters& rnic);

}  // namespace greynic::twin
