#pragma once

/// Single rules in the words of tc(8) and of DPDK's testpmd.

#include <string>
#include <string_view>

#include "greynic/core/flow_rule.h"
#include "greynic/core/result.h"

namespace greynic::flows {

/// "protocol ip prio 3 flower src_ip 10.0.0.0/8 action drop": what follows the chain in `filter
/// add`.
[[nodiscard]] Result<std::string> tc_words(const FlowRule& rule, unsigned preference);

/// "pattern eth / ipv4 src is 10.0.0.1 / end actions drop / end": what follows the priority in
/// `flow create`.
[[nodiscard]] Result<std::string> testpmd_words(const FlowRule& rule);

}  // namespace greynic::flows
