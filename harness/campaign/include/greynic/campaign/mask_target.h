#pragma once

/// A campaign's masks (core/mask_group.h) put into practice: for each configuration the rules that
/// its masks say are installed on the target before it is measured, and traffic that hits them.

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

/// The rules of one hop under a configuration. A group that looks at nothing is not there. Each of
/// the others has `rules_per_mask` rules, or as many as its bits tell apart, whose values follow
/// from the group's name; all of them drop. With an order the groups' priorities are their places,
/// else all rules have one priority, so equal masks are one matcher.
[[nodiscard]] RuleSet rules_of(std::span<const MaskGroup> groups, Hop hop,
                               const Configuration& configuration);

/// One packet for each rule, which has what the rule looks at and the headers that it takes for
/// granted.
[[nodiscard]] Traffic traffic_of(const RuleSet& rules);

/// The target itself when the campaign has no masks, or when the target takes any factor (exec:)
/// and reads those of the masks by itself; else a target that installs the masks' layout before
/// each change of it and hands on the rest of the configuration. A layout that the device refuses
/// is an observation with that outcome. kBadInput when the target varies a factor of the campaign
/// neither so nor by itself.
[[nodiscard]] Result<std::unique_ptr<target::Target>> with_masks(
    std::unique_ptr<target::Target> device, const Campaign& campaign);

}  // namespace greynic::campaign
