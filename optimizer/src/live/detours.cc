#include "src/live/detours.h"

#include <algorithm>

#include "src/live/beside.h"

namespace greynic::optimizer::live {
namespace {

void number(LayoutTable& table) {
  for (std::size_t i = 0; i < table.matchers.size(); ++i) {
    table.matchers[i].priority = static_cast<RulePriority>(i);
    for (FlowRule& rule : table.matchers[i].rules) {
      rule.priority = table.matchers[i].priority;
      rule.table = table.id;
    }
  }
}

LayoutTable& table_of(Layout& layout, std::uint32_t id) {
  const auto found = std::ranges::find(layout.tables, id, &LayoutTable::id);
  if (found != layout.tables.end()) return *found;
  return layout.tables.emplace_back(LayoutTable{id, {}});
}

std::uint32_t first_free(const Layout& layout, const RuleSet& rules) {
  std::uint64_t last = 0;
  for (const LayoutTable& table : layout.tables) last = std::max<std::uint64_t>(last, table.id);
  for (const FlowRule& rule : rules.rules) {
    last = std::max<std::uint64_t>(last, rule.table);
    for (const Action& action : rule.actions) {
      if (action.kind == ActionKind::kJump) last = std::max(last, action.number);
    }
  }
  return static_cast<std::uint32_t>(last + 1);
}

}  // namespace

void Detours::clear() {
  told_.clear();
  matches_.clear();
  entries_ = 0;
}

void Detours::add(Told told, std::uint32_t table, std::vector<Match> matches) {
  told_.push_back(std::move(told));
  for (Match& match : matches) {
    std::vector<Match>& known = matches_[table][match.mask()];
    if (std::ranges::find(known, match) != known.end()) continue;
    known.push_back(std::move(match));
    ++entries_;
  }
}

void Detours::note(Told told) { told_.push_back(std::move(told)); }

Layout Detours::layout(const State& state, const std::string& source) const {
  std::vector<KeptRule> kept = state.rules();
  for (const Told& told : told_) tell(kept, told);
  const RuleSet rules = in_order(kept, source).rules;
  const Layout plain = layout_in_rule_order(rules);
  Layout layout = state.layout();
  std::uint32_t free = first_free(layout, rules);
  for (const auto& [id, by_mask] : matches_) {
    LayoutTable software{free++, {}, true};
    const auto all = std::ranges::find(plain.tables, id, &LayoutTable::id);
    if (all != plain.tables.end()) software.matchers = all->matchers;
    number(software);
    LayoutTable& table = table_of(layout, id);
    std::vector<Matcher> front;
    for (const auto& [mask, matches] : by_mask) {
      Matcher& matcher = front.emplace_back(Matcher{mask, 0, {}});
      for (const Match& match : matches) {
        FlowRule& rule = matcher.rules.emplace_back();
        rule.match = match;
        rule.actions = {Action::jump(software.id)};
      }
    }
    table.matchers.insert(table.matchers.begin(), front.begin(), front.end());
    number(table);
    layout.tables.push_back(std::move(software));
  }
  return layout;
}

}  // namespace greynic::optimizer::live
