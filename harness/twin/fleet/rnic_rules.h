#pragma once

/// What an installed layout means to the RNICs of one model: how many groups their packets are
/// checked against, which share of them goes to software, and what a new flow needs.
///
/// A packet goes to software where a table of the slow path begins, and where the RNIC has no place
/// for a group: it takes the groups in the order of the layout until its lookup recipes are used up.
/// What is counted is the same as in layout_walk.h, without the driver's own grouping.

#include <vector>

#include "greynic/core/flow_rule.h"
#include "greynic/core/layout_limits.h"
#include "parameters/parameters.h"

namespace greynic::twin {

/// What one flow of the traffic needs before the RNIC forwards it.
struct FlowNeeds {
  double until = 0;          ///< its share of the weight and that of all before it; the last has 1
  double groups_missed = 0;  ///< that its first packet is checked against, its rule not being there
  double group_rules = 0;    ///< in the group that its entry goes to
  double other_entries = 0;  ///< that the layout has for the same line of the input
  bool software = false;     ///< stays in software: no entry is put in
};

struct RnicRules {
  double groups = 0;          ///< mean over the packets
  double software_share = 0;  ///< of the packets
  std::vector<FlowNeeds> flows;
};

/// Without traffic: of packets that hit the rules of the entry table, by the rules' own weights.
[[nodiscard]] RnicRules rules_of(const Layout& layout, const Traffic* traffic,
                                 const LayoutLimits& limits);

/// What RNICs of all these models can do: the strictest of their limits.
[[nodiscard]] LayoutLimits strictest(const std::vector<LayoutLimits>& all);

}  // namespace greynic::twin
