#pragma once

/// A layout as one list in which the first match decides: what its jumps do, written out.
///
/// A place is a matcher of a table, with all that is tried after it. Places that try the same are
/// one, however many tables hold them, and a matcher that takes every packet to a table is that
/// table. So each place has one next place, and the places form a tree whose root is the end, where
/// nothing is left to try. A jump leads to a place too: from there and from the next place the ways
/// meet again, at the latest at the end. Three cases:
///   - they meet at the next place: the jump's rules are tried first, for its packets, and the walk
///     goes on for all. Shared tables come out once, wherever they are entered from;
///   - they meet later: what lies between is tried by all packets but those of the jump;
///   - else the jump's rules are written down to the end, and a miss behind them.
/// The last one is always right. The first two keep the list short.

#include <cstdint>
#include <map>
#include <vector>

#include "difference.h"
#include "greynic/core/result.h"

namespace greynic::verify {

/// One rule of a layout table.
struct Arc {
  Cube cube;
  Entry entry;
};
/// By table: its matchers in the order in which they are tried, each with its rules.
using TableArcs = std::map<std::uint32_t, std::vector<std::vector<Arc>>>;

/// Appends the entries of `first_table` to the list of that table in the pool: they jump no more.
/// kUnsupported when jumps form a loop, whether or not a packet could walk it, or too many follow
/// one another; kTooBig beyond `most_entries`, or when the comparisons are used up.
[[nodiscard]] Result<void> flatten(const TableArcs& tables, std::uint32_t first_table,
                                   const Cube& whole, std::size_t most_entries,
                                   std::uint64_t& comparisons_left, Pool& pool);

}  // namespace greynic::verify
