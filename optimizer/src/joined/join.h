#pragma once

/// Tables of a pipeline joined: rules that do at once what packets do in several tables.
///
/// Each table that a packet goes through costs it a matcher at least, also where all that comes by some
/// rule does the same there. So a rule that jumps on may be written as what becomes of its packets in
/// the next table: one rule for each rule there that they can still match, and so on from these. Rules
/// that most packets come by for each rule that is added come first. Other packets, and those of
/// other tables, find the tables as they were.
///
/// Example: 17 rules send each network's packets from table 47 to 48; there one port of each goes its own
/// way, and 17 rules send all others to 49. Joined, table 47 has the rules for the ports, and 17 that send
/// packets to 49 at once.
///
/// Sound for every packet that comes to a table in any way: fields that a rule sets on the way are
/// known (Action kSetField), and behind actions of which this room knows nothing only tables are joined
/// whose first rule takes every packet.

#include <cstddef>

#include "greynic/core/flow_rule.h"

namespace greynic::optimizer {

struct JoinedRules {
  RuleSet rules;          ///< of the same tables; priorities numbered anew where a table changed
  std::size_t joins = 0;  ///< rules that were written as what becomes of their packets
};

/// At most `most_added` rules more, each for at least `least_share` of the packets. Nothing is joined
/// where jumps may lead in a circle.
[[nodiscard]] JoinedRules join_tables(const RuleSet& rules, const Traffic& traffic,
                                      std::size_t most_added, double least_share);

}  // namespace greynic::optimizer
