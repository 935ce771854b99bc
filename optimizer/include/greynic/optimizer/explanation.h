#pragma once

/// Why a layout is cheaper: for each mask, each table and the hottest flows, what packets tried
/// before and what they try now. All shares are of the traffic; nothing here is estimated, it is
/// counted on the ways that the packets take.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "greynic/core/flow_rule.h"

namespace greynic::optimizer {

/// Rules of one mask, and the packets that they decided in the layout before.
struct MaskChange {
  Mask mask;
  std::size_t matchers_before = 0;
  std::size_t matchers_after = 0;
  std::size_t rules = 0;      ///< of this mask, before
  double share = 0.0;         ///< of the packets that these rules decided
  double tried_before = 0.0;  ///< mean over those packets
  double tried_after = 0.0;
};

/// A table of the new layout.
struct TableRole {
  std::uint32_t id = 0;
  std::size_t matchers = 0;
  std::size_t rules = 0;
  double share = 0.0;       ///< of the packets that come here
  double tried = 0.0;       ///< mean of the matchers that they try here
  bool entered = false;     ///< packets of the traffic start here
  std::size_t ways_in = 0;  ///< rules that jump here
  Mask way_in_mask;  ///< of the matcher whose jumps bring most packets; empty for what is left over
  std::uint32_t way_in_table = 0;  ///< the table which that matcher is in
};

/// One table on a packet's way.
struct FlowStep {
  std::uint32_t table = 0;
  std::size_t tried = 0;       ///< position of the matcher that hit, or all on a miss
  std::optional<Match> match;  ///< of the rule that hit
};
struct FlowChange {
  Packet packet;
  double share = 0.0;
  std::vector<FlowStep> before;
  std::vector<FlowStep> after;
  std::vector<std::uint32_t> decided_by;  ///< 0-based lines of the input
};

struct Explanation {
  std::vector<MaskChange> masks;  ///< those that saved most matchers times share first
  std::vector<TableRole> tables;  ///< those that most packets come to first
  std::vector<FlowChange> flows;  ///< the hottest, at most `most_flows`
};

[[nodiscard]] Explanation explain(const Layout& before, const Layout& after, const Traffic& traffic,
                                  std::size_t most_flows = 10);

/// Matchers that a packet tries on a way.
[[nodiscard]] std::size_t tried_on(const std::vector<FlowStep>& way);

}  // namespace greynic::optimizer
