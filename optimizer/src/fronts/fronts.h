#pragma once

/// Matchers in front of a table for what most of its packets do there.
///
/// A table of a pipeline often has a few rules for special packets, and behind them one for all
/// others, which most packets come to. An entry that agrees with a packet in what its rule looks at,
/// and in just enough bits to tell it from all that stand before that rule, may stand in front of
/// them all. Few such entries may do for most packets.
///
/// Example: `ct_state=new, port 1` is dropped, `ct_state=new, port 2` logged, all else goes on to the
/// next table. `ct_state=established` in front sends most packets on at the first matcher.
///
/// Where packets are drawn as examples (Traffic::drawn), an entry is judged without the flow that it owes most to: others
/// come in its place, and what serves only one flow would serve none of them.
///
/// Each table does afterwards what it did before; that this is so is for a proof to show.

#include <cstddef>
#include <set>

#include "greynic/core/flow_rule.h"

namespace greynic::optimizer {

/// The layout with at most `most_entries` rules more: those that save most matchers for each. `whole_fields`: of these
/// they look at no part, unless the rules do.
[[nodiscard]] Layout with_fronts(const Layout& layout, const Traffic& traffic,
                                 std::size_t most_entries,
                                 const std::set<MatchField>& whole_fields = {});

}  // namespace greynic::optimizer
