#pragma once

/// Puts the matchers of a layout into a better order for the packets that were counted, a few rules
/// at a time: the step that follows traffic as it changes.
///
/// Two matchers of a table may change places when no packet is in a rule of each of which one does
/// something else than the other. So a layout does the same to every packet after a step as before,
/// whatever it is for, and whoever made it; greynic/verify/verify.h shows that by other code.
///
/// Rules have their place by their matcher's place, so a step changes the rules of all matchers that
/// move or are moved past. Cuts and tables stay as they are: what only other cuts would save is not
/// seen here. The time goes with the rules of the tables where packets were counted.

#include <vector>

#include "greynic/core/flow_rule.h"

namespace greynic::optimizer {

struct Reordered {
  Layout layout;
  std::size_t rules_changed = 0;
  double packets = 0.0;  ///< counted: those that a rule ends
  /// Mean matchers tried by these packets: in the given order, in the new one, and in the best order
  /// found if any number of rules may change. Of a packet that a table misses in the end, counters
  /// show the jumps before that: these are added, the packet is not.
  double tried_before = 0.0;
  double tried_after = 0.0;
  double tried_best = 0.0;
};

/// `hits`: for each rule, in the order of tables, matchers and rules, how many packets hit it; a
/// rule that jumps is hit too. At most `most_rules` rules change their place. Without packets
/// nothing changes.
[[nodiscard]] Reordered reorder(const Layout& layout, const std::vector<double>& hits,
                                std::size_t most_rules);

/// Mean matchers tried by the packets counted: as reorder's tried_before.
[[nodiscard]] double tried_by_counted(const Layout& layout, const std::vector<double>& hits);

}  // namespace greynic::optimizer
