#pragma once

/// Ways around tables: what later tables do to packets of which much is known, in small tables of the layout's own.
///
/// A packet that was just found to be of an address class and to go to port 80 is looked up again by address and port a few
/// tables on. What it can still meet there are few rules: those that ask for what is not known yet. So the rule
/// that knows so much jumps to a table of these alone, and this does all at once. What is left is the same for many
/// rules, and one table serves all of them.
///
/// Example: table 42 lets each address of a set reach each port of a list, and marks that; 46 has the same lists, behind
/// a rule for broken connections. Each entry of 42 leads to one table of two rules: broken connections are
/// marked and dropped, all else is marked and goes on to 47.
///
/// Tables that only the layout has are come to by many rules. There, an entry is led around where all of
/// them leave the same.

#include <cstdint>

#include "greynic/core/flow_rule.h"

namespace greynic::optimizer {

struct ShortcutOptions {
  std::uint32_t first_added = 0;  ///< tables from here on are of the layout alone
  std::uint32_t first_free = 0;   ///< ids from here on are free
  std::uint32_t last_table = 0;
  std::size_t most_added = 0;  ///< rules more
  double least_share = 1e-4;   ///< of the packets, times tables passed by, for each rule more
};

struct ShortcutRules {
  RuleSet rules;              ///< every table does to every packet what it did
  std::size_t shortcuts = 0;  ///< rules that lead around a table
};

/// Nothing is done where jumps may lead in a circle.
[[nodiscard]] ShortcutRules with_shortcuts(const RuleSet& rules, const Traffic& traffic,
                                           const ShortcutOptions& options);

}  // namespace greynic::optimizer
