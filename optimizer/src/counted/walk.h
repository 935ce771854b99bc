#pragma once

/// The ways of packets through a layout: table by table, all packets of a table at once, in time
/// that suits 100,000 rules and as many packets.

#include <cstdint>
#include <functional>

#include "greynic/core/flow_rule.h"

namespace greynic::optimizer {

/// What one packet meets in one table.
struct Step {
  std::uint32_t flow = 0;              ///< index in the traffic
  const LayoutTable* table = nullptr;  ///< null: a jump led out of the layout, or too many jumps
  const Packet* packet = nullptr;      ///< as it comes to the table; good during the visit
  std::size_t tried = 0;               ///< matchers of the table, the one that hit included
  const FlowRule* rule = nullptr;      ///< null: nothing in the table matched
  bool last = true;                    ///< the packet's way ends here; else the rule jumps
};

/// Calls `visit` for each step of each packet; the steps of one packet come in their order, those of
/// different packets in any. Headers that rules set on their way (kSetField, as tags are) are followed. After 64 jumps a way ends, as in core's look_up.
void walk(const Layout& layout, const Traffic& traffic,
          const std::function<void(const Step&)>& visit);

}  // namespace greynic::optimizer
