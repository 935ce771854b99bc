#pragma once

/// One input table as a Problem: packed, in order of precedence, with effects numbered.

#include <map>

#include "overlap.h"

namespace greynic::optimizer {

/// Actions to numbers: equal numbers do the same to a packet. An empty list and a lone drop are
/// one.
class Effects {
 public:
  std::uint32_t number(const std::vector<Action>& actions);

 private:
  std::map<std::vector<Action>, std::uint32_t> known_;
};

/// Indices of a table's rules: smaller priority number first, then input order.
using RulesOfTable = std::map<std::uint32_t, std::vector<std::uint32_t>>;
[[nodiscard]] RulesOfTable rules_by_table(const RuleSet& rules);

/// The mask of everything that these rules look at.
[[nodiscard]] Mask all_bits(const RuleSet& rules, const std::vector<std::uint32_t>& members);

/// Packs `members`, in their order; weights are 0.
[[nodiscard]] Problem make_problem(const RuleSet& rules, const std::vector<std::uint32_t>& members,
                                   Effects& effects);

/// The rows `members` of a problem as a problem of its own, in their order; columns stay.
[[nodiscard]] Problem part_of(const Problem& problem, const std::vector<std::uint32_t>& members);

}  // namespace greynic::optimizer
