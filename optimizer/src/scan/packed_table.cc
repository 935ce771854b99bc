#include "packed_table.h"

#include <fmt/core.h>

namespace greynic::optimizer {

Result<LayoutTables> LayoutTables::sort_out(const RulesOfTable& input, const RuleSet& rules,
                                            const Layout& layout) {
  LayoutTables tables;
  for (const LayoutTable& table : layout.tables) {
    if (!tables.all_.try_emplace(table.id, &table).second) {
      return fail(ErrorCode::kInternal, fmt::format("the layout has table {} twice", table.id));
    }
    if (!input.contains(table.id)) tables.added_.insert(table.id);
  }
  for (const FlowRule& rule : rules.rules) {
    for (const Action& action : rule.actions) {
      if (action.kind == ActionKind::kJump && action.number <= kNone &&
          tables.added_.contains(static_cast<std::uint32_t>(action.number))) {
        return fail(
            ErrorCode::kInternal,
            fmt::format("the layout adds table {}, to which an input rule jumps", action.number));
      }
    }
  }
  return tables;
}

std::uint32_t LayoutTables::added_target(const FlowRule& rule) const {
  if (rule.actions.size() != 1 || rule.actions.front().kind != ActionKind::kJump) return kNone;
  const std::uint64_t target = rule.actions.front().number;
  const bool added = target < kNone && added_.contains(static_cast<std::uint32_t>(target));
  return added ? static_cast<std::uint32_t>(target) : kNone;
}

std::vector<std::uint32_t> LayoutTables::reach(std::uint32_t id) const {
  std::vector<std::uint32_t> order = {id};
  std::set<std::uint32_t> seen = {id};
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (const Matcher& matcher : all_.at(order[i])->matchers) {
      for (const FlowRule& rule : matcher.rules) {
        const std::uint32_t target = added_target(rule);
        if (target != kNone && seen.insert(target).second) order.push_back(target);
      }
    }
  }
  return order;
}

Result<PackedTable> LayoutTables::packed(std::uint32_t id, const Problem& problem,
                                         Effects& effects) const {
  const LayoutTable& table = *all_.at(id);
  PackedTable result(problem.rows.words());
  for (std::uint32_t m = 0; m < table.matchers.size(); ++m) {
    for (const FlowRule& rule : table.matchers[m].rules) {
      if (rule.match.mask() != table.matchers[m].mask) {
        return fail(ErrorCode::kInternal,
                    fmt::format("the layout cannot be proven: table {}: {} is not under the mask "
                                "of its matcher",
                                table.id, to_string(rule.match)));
      }
      Word* const value = result.rows.value.add();
      Word* const mask = result.rows.mask.add();
      problem.columns.pack(rule.match, value, mask);
      if (problem.columns.unpack_mask(mask) != table.matchers[m].mask) {
        return fail(ErrorCode::kInternal,
                    fmt::format("the layout cannot be proven: table {}: {} looks at bits that no "
                                "input rule looks at",
                                table.id, to_string(rule.match)));
      }
      const std::uint32_t target = added_target(rule);
      result.matcher.push_back(m);
      result.target.push_back(target);
      result.effect.push_back(target == kNone ? effects.number(rule.actions) : kNone);
    }
  }
  return result;
}

}  // namespace greynic::optimizer
