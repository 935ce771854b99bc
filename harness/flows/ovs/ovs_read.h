#pragma once

/// What ovs-ofctl dump-flows prints, as rules with counters.

#include <string>
#include <string_view>
#include <vector>

#include "greynic/flows/flow_driver.h"
#include "ovs/ovs_text.h"

namespace greynic::flows {

/// The lines that are flows, without the header and the leading blanks.
[[nodiscard]] std::string flow_lines(std::string_view dump);

/// Flows in the order of their cookies, which is the order in which apply installed them; ports by
/// name, actions as typed as ovs_actions_text wrote them.
[[nodiscard]] Result<std::vector<RuleCount>> read_flows(std::string_view dump,
                                                        const PortNumbers& ports);

}  // namespace greynic::flows
