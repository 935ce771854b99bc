#pragma once

/// Reads rules back from rte_flow's structures, by the members that DPDK's headers give them.
/// Shares no code with the driver, which counts bits from the beginning of each header.

#include <rte_flow.h>

#include "greynic/core/flow_rule.h"

namespace greynic::flows {

/// What a port is told by these. Items and actions end with END; a failure of the test when a mask
/// has bits that no field of greynic's covers, or an item or action is unknown.
[[nodiscard]] FlowRule read_rte(const rte_flow_attr& attributes, const rte_flow_item* items,
                                const rte_flow_action* actions);

}  // namespace greynic::flows
