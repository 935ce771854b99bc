#pragma once

/// What drivers of DPDK are known to take and then do otherwise. A rule that would silently become
/// another rule is refused by name instead.

#include <optional>
#include <string>
#include <string_view>

#include "greynic/core/flow_rule.h"

namespace greynic::flows {

/// Why the driver ("net_tap", as rte_eth_dev_info_get names it) would make another rule of this
/// one, or take it when asked and not when it is given; empty when nothing is known against it.
[[nodiscard]] std::optional<std::string> rte_defect(std::string_view driver, const FlowRule& rule);

}  // namespace greynic::flows
