#pragma once

/// What the packets of a rule usually meet in the next table, done at once.
///
/// A rule that jumps on may send its packets to many rules of the next table. Most of them look alike to all
/// rules there: connections are new, no mark is set. For these, what they do there is written before the rule: a rule
/// that asks for all that the next table looks at. All others go on as before.
///
/// Example: port 80 goes to table 49, where two marks are told apart, which hardly any packet has: `port 80, no marks`
/// does at once what 49 does to packets without marks, then `port 80` jumps to 49.

#include <cstdint>

#include "greynic/core/flow_rule.h"

namespace greynic::optimizer {

struct UsualOptions {
  std::uint32_t first_added = 0;  ///< tables from here on are of the layout alone
  std::size_t most_added = 0;     ///< rules more
  double least_share = 2e-5;      ///< of the packets, for each rule more
};

struct UsualRules {
  RuleSet rules;          ///< every table does to every packet what it did
  std::size_t added = 0;  ///< rules
};

/// Nothing is done where jumps may lead in a circle.
[[nodiscard]] UsualRules with_usual_ways(const RuleSet& rules, const Traffic& traffic,
                                         const UsualOptions& options);

}  // namespace greynic::optimizer
