#pragma once

/// What the measuring targets share: which packets are sent how often, and on what machine.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "greynic/core/configuration.h"
#include "greynic/core/flow_rule.h"

namespace greynic::flows {

/// So many copies of each flow's packet as its weight asks of `slots`, at least one, then shuffled:
/// what the source replays is a fair sample of the traffic in a random order. Indices of flows.
[[nodiscard]] std::vector<std::size_t> replay_order(const Traffic& traffic, std::size_t slots,
                                                    std::uint64_t seed);

/// The packets of a rule set when nobody says more: one for each rule of table 0, as often as the
/// rule says that it is hit.
[[nodiscard]] Traffic traffic_of_rules(const RuleSet& rules);

/// Payload of one packet. The factor table's standard of 64 KiB is a verbs message; a packet stands
/// for one that fits.
[[nodiscard]] double payload_of(const Configuration& configuration);

/// Host, kernel and CPU for an observation's environment.
[[nodiscard]] std::map<std::string, std::string> host_environment();

}  // namespace greynic::flows
