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
#include <cstdint>

#include "greynic/core/flow_rule.h"

namespace greynic::optimizer {

struct JoinedRules {
  RuleSet rules;          ///< of the same tables; priorities numbered anew where a table changed
  std::size_t joins = 0;  ///< rules that were written as what becomes of their packets
};

struct JoinOptions {
  static constexpr std::uint32_t kNoTables = 0xffffffff;
  std::size_t most_added = 0;  ///< rules more
  double least_share = 1e-4;   ///< of the packets, for each rule more
  /// Tables from here on are of the layout alone: rules do nothing else when they jump there.
  std::uint32_t first_added = kNoTables;
};

/// Nothing is joined where jumps may lead in a circle.
[[nodiscard]] JoinedRules join_tables(const RuleSet& rules, const Traffic& traffic,
                                      const JoinOptions& options);

}  // namespace greynic::optimizer
