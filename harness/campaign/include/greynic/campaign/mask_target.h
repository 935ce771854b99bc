#pragma once

/// Puts a campaign's masks (core/mask_group.h) into practice: installs the rules that each
/// configuration's masks stand for before it is measured, with traffic that hits them.

#include <memory>
#include <set>
#include <span>
#include <string>

#include "greynic/core/campaign.h"
#include "greynic/core/mask_group.h"
#include "greynic/target/target.h"

namespace greynic::campaign {

/// The names of the factors that the campaign's masks made.
[[nodiscard]] std::set<std::string> names_of_masks(const Campaign& campaign);

/// The rules of one hop under a configuration. A group that looks at nothing has none. Each other
/// group has `rules_per_mask` rules, or as many as its bits can tell apart. Their values follow
/// from the group's name; all of them drop. With an order, the groups' priorities are their places;
/// else all rules have one priority, so equal masks become one matcher.
[[nodiscard]] RuleSet rules_of(std::span<const MaskGroup> groups, Hop hop,
                               const Configuration& configuration);

/// One packet for each rule: the values that the rule looks at, and the headers that those need.
[[nodiscard]] Traffic traffic_of(const RuleSet& rules);

/// The target itself when the campaign has no masks, or when the target takes any factor (exec:)
/// and so reads those of the masks itself. Else a target that installs the masks' layout whenever
/// it changes and hands on the rest of the configuration; a layout that the device refuses becomes
/// an observation with that outcome. kBadInput when the target can do neither.
[[nodiscard]] Result<std::unique_ptr<target::Target>> with_masks(
    std::unique_ptr<target::Target> device, const Campaign& campaign);

}  // namespace greynic::campaign
