#pragma once

/// Rules as rte_flow patterns and actions.

#include <rte_flow.h>

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "greynic/core/flow_rule.h"
#include "greynic/core/result.h"

namespace greynic::flows {

/// A rule in rte_flow's form, with the memory that its items and actions point to.
struct RteRule {
  std::string name;  ///< its match, for messages
  rte_flow_attr attributes{};
  std::vector<rte_flow_item> pattern;
  std::vector<std::size_t> item_bytes;  ///< of each item's spec and mask
  std::vector<rte_flow_action> actions;
  std::deque<std::vector<std::uint64_t>> memory;  ///< whole words: aligned for every struct
};

/// Does rte_flow of this DPDK have a place for the field that this driver fills?
[[nodiscard]] bool rte_takes(MatchField field);

/// kUnsupported names the field or action. Headers that an item implies are not said twice: an
/// IPv4 item stands for ether_type=0x0800, a TCP item for ip_protocol=6.
[[nodiscard]] Result<RteRule> rte_rule_of(const FlowRule& rule);

}  // namespace greynic::flows
