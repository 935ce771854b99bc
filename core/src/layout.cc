#include <algorithm>
#include <map>
#include <numeric>
#include <unordered_map>

#include "greynic/core/flow_rule.h"

namespace greynic {
namespace {

constexpr int kMostJumps = 64;  // a chain longer than this is a loop

const FlowRule* first_match(const Matcher& matcher, const Packet& packet) {
  for (const FlowRule& rule : matcher.rules) {
    if (rule.match.matches(packet)) return &rule;
  }
  return nullptr;
}

const Action* jump_of(const FlowRule& rule) {
  for (const Action& action : rule.actions) {
    if (action.kind == ActionKind::kJump) return &action;
  }
  return nullptr;
}

bool changes_packet(const FlowRule& rule) {
  return std::any_of(rule.actions.begin(), rule.actions.end(), [](const Action& action) {
    switch (action.kind) {
      case ActionKind::kForward:
      case ActionKind::kDrop:
      case ActionKind::kJump:
      case ActionKind::kCount:
      case ActionKind::kMeter:
        return false;
      default:
        return true;
    }
  });
}

struct MaskHash {
  std::size_t operator()(const Mask& mask) const { return mask.hash(); }
};

}  // namespace

std::size_t Layout::matcher_count() const {
  return std::accumulate(
      tables.begin(), tables.end(), std::size_t{0},
      [](std::size_t sum, const LayoutTable& table) { return sum + table.matchers.size(); });
}

std::size_t Layout::rule_count() const {
  std::size_t count = 0;
  for (const LayoutTable& table : tables) {
    for (const Matcher& matcher : table.matchers) count += matcher.rules.size();
  }
  return count;
}

Lookup look_up(const Layout& layout, const Packet& packet, std::uint32_t first_table) {
  Lookup result;
  std::uint64_t wanted = first_table;
  for (int jumps = 0; jumps <= kMostJumps; ++jumps) {
    const auto table =
        std::find_if(layout.tables.begin(), layout.tables.end(),
                     [&](const LayoutTable& candidate) { return candidate.id == wanted; });
    if (table == layout.tables.end()) return result;
    const FlowRule* hit = nullptr;
    for (const Matcher& matcher : table->matchers) {
      ++result.matchers_tried;
      hit = first_match(matcher, packet);
      if (hit != nullptr) break;
    }
    if (hit == nullptr) return result;
    result.rule = hit;
    const Action* jump = jump_of(*hit);
    if (jump == nullptr) return result;
    wanted = jump->number;
  }
  return result;
}

std::optional<std::size_t> endless_jumps(const Layout& layout) {
  std::map<std::uint64_t, std::size_t> place;
  for (std::size_t i = 0; i < layout.tables.size(); ++i) place[layout.tables[i].id] = i;
  // Tables that nothing leads to leave first, then those that only these led to: a loop stays.
  std::vector<std::vector<std::size_t>> next(layout.tables.size());
  std::vector<std::size_t> entrances(layout.tables.size(), 0);
  for (std::size_t i = 0; i < layout.tables.size(); ++i) {
    for (const Matcher& matcher : layout.tables[i].matchers) {
      for (const FlowRule& rule : matcher.rules) {
        const Action* const jump = jump_of(rule);
        const auto to = jump == nullptr ? place.end() : place.find(jump->number);
        if (to == place.end() || changes_packet(rule)) continue;
        next[i].push_back(to->second);
        ++entrances[to->second];
      }
    }
  }
  std::vector<std::size_t> free;
  for (std::size_t i = 0; i < entrances.size(); ++i) {
    if (entrances[i] == 0) free.push_back(i);
  }
  while (!free.empty()) {
    const std::size_t from = free.back();
    free.pop_back();
    for (const std::size_t to : next[from]) {
      if (--entrances[to] == 0) free.push_back(to);
    }
  }
  const auto left =
      std::find_if(entrances.begin(), entrances.end(), [](std::size_t count) { return count > 0; });
  if (left == entrances.end()) return std::nullopt;
  return static_cast<std::size_t>(left - entrances.begin());
}

const FlowRule* look_up(const RuleSet& rules, std::uint32_t table, const Packet& packet) {
  const FlowRule* best = nullptr;
  for (const FlowRule& rule : rules.rules) {
    if (rule.table != table || !rule.match.matches(packet)) continue;
    if (best == nullptr || rule.priority < best->priority) best = &rule;
  }
  return best;
}

Layout flat_layout(const RuleSet& rules) {
  std::map<std::uint32_t, std::vector<const FlowRule*>> by_table;
  for (const FlowRule& rule : rules.rules) by_table[rule.table].push_back(&rule);
  Layout layout;
  for (auto& [id, members] : by_table) {
    std::stable_sort(members.begin(), members.end(), [](const FlowRule* a, const FlowRule* b) {
      return a->priority < b->priority;
    });
    LayoutTable table;
    table.id = id;
    // Within one priority the earlier rule wins only where two overlap, so a rule may join the
    // matcher of its mask unless a rule between them overlaps it.
    std::unordered_map<Mask, std::size_t, MaskHash> matcher_of;
    const FlowRule* previous = nullptr;
    for (const FlowRule* rule : members) {
      if (previous != nullptr && previous->priority != rule->priority) matcher_of.clear();
      previous = rule;
      const Mask mask = rule->match.mask();
      const auto known = matcher_of.find(mask);
      bool may_join = known != matcher_of.end();
      for (std::size_t later = may_join ? known->second + 1 : table.matchers.size();
           may_join && later < table.matchers.size(); ++later) {
        for (const FlowRule& other : table.matchers[later].rules) {
          if (other.match.overlaps(rule->match)) may_join = false;
        }
      }
      if (!may_join) {
        matcher_of[mask] = table.matchers.size();
        table.matchers.push_back(
            Matcher{mask, static_cast<RulePriority>(table.matchers.size()), {}});
      }
      table.matchers[matcher_of[mask]].rules.push_back(*rule);
    }
    layout.tables.push_back(std::move(table));
  }
  return layout;
}

double expected_matchers_tried(const Layout& layout, const Traffic& traffic) {
  double tried = 0.0;
  double weight = 0.0;
  for (const TrafficFlow& flow : traffic.flows) {
    tried +=
        flow.weight * static_cast<double>(look_up(layout, flow.packet, flow.table).matchers_tried);
    weight += flow.weight;
  }
  return weight > 0.0 ? tried / weight : 0.0;
}

bool has_idle(const Layout& layout) {
  return std::any_of(layout.tables.begin(), layout.tables.end(), [](const LayoutTable& table) {
    return std::any_of(table.matchers.begin(), table.matchers.end(),
                       [](const Matcher& matcher) { return matcher.idle_seconds > 0; });
  });
}

Layout without_idle(Layout layout) {
  for (LayoutTable& table : layout.tables) {
    std::erase_if(table.matchers, [](const Matcher& matcher) { return matcher.idle_seconds > 0; });
  }
  return layout;
}

}  // namespace greynic
