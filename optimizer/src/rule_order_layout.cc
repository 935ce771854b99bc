/// layout_in_rule_order: rules in order of priority, one matcher for each change of mask.

#include "greynic/optimizer/optimize.h"
#include "problem.h"

namespace greynic::optimizer {
namespace {

/// Adds rules in order, a new matcher wherever the mask changes.
void append(LayoutTable& table, const FlowRule& rule) {
  const Mask mask = rule.match.mask();
  if (table.matchers.empty() || table.matchers.back().mask != mask) {
    table.matchers.push_back({mask, static_cast<RulePriority>(table.matchers.size()), {}});
  }
  table.matchers.back().rules.push_back(rule);
}

/// The rules of one priority by mask where no order among them matters, else as they stand.
std::vector<std::uint32_t> by_mask_if_free(const RuleSet& rules,
                                           const std::vector<std::uint32_t>& members) {
  if (members.size() < 2) return members;
  Effects effects;
  const Problem problem = make_problem(rules, members, effects);
  std::vector<std::uint32_t> rows(members.size());
  for (std::uint32_t i = 0; i < rows.size(); ++i) rows[i] = i;
  const std::vector<Group> groups = groups_by_mask(problem, rows);
  const BitMatrix before = precedence(problem, groups);
  std::vector<std::uint32_t> sorted;
  for (std::size_t a = 0; a < groups.size(); ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      if (before.test(a, b)) return members;
    }
    for (const std::uint32_t row : groups[a].rows) sorted.push_back(members[row]);
  }
  return sorted;
}

}  // namespace

Layout layout_in_rule_order(const RuleSet& rules) {
  Layout layout;
  for (const auto& [id, members] : rules_by_table(rules)) {
    LayoutTable table{id, {}};
    for (std::size_t begin = 0; begin < members.size();) {
      std::size_t end = begin;
      while (end < members.size() &&
             rules.rules[members[end]].priority == rules.rules[members[begin]].priority) {
        ++end;
      }
      const auto first = members.begin() + static_cast<std::ptrdiff_t>(begin);
      const auto last = members.begin() + static_cast<std::ptrdiff_t>(end);
      for (const std::uint32_t index : by_mask_if_free(rules, {first, last})) {
        append(table, rules.rules[index]);
      }
      begin = end;
    }
    layout.tables.push_back(std::move(table));
  }
  return layout;
}

}  // namespace greynic::optimizer
