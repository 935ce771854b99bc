#pragma once

/// Small pipelines whose tables jump to one another, and what becomes of each packet in them.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "../random_rules.h"

namespace greynic {

/// For every packet that comes to the table.
inline FlowRule rule_for_all(std::uint32_t table, RulePriority priority,
                             std::vector<Action> actions) {
  FlowRule rule;
  rule.table = table;
  rule.priority = priority;
  rule.actions = std::move(actions);
  return rule;
}

/// `tables` tables. Some rules jump to a later one, of which some set bits on their way, and some do what
/// nobody knows; many tables end with a rule for all packets.
inline RuleSet small_random_pipeline(std::size_t count, std::uint32_t tables, std::uint64_t seed) {
  RuleSet set = small_random_rules(count, 3, seed, tables);
  std::mt19937_64 random(seed ^ 0x5eed);
  const auto jump = [&](FlowRule& rule) {
    if (rule.table + 1 >= tables) return;
    const std::uint64_t left = tables - rule.table - 1;
    const std::uint64_t to = rule.table + 1 + (random() % 2 == 0 ? 0 : random() % left);
    if (random() % 3 != 0) rule.actions.clear();
    if (random() % 3 == 0) {
      const U128 bits = 1 + random() % 15;
      rule.actions.push_back({.kind = ActionKind::kSetField,
                              .field = MatchField::kIpv4Dst,
                              .value = random() & bits,
                              .bits = bits});
    }
    if (random() % 6 == 0) rule.actions.push_back(Action::other("learn"));
    rule.actions.push_back(Action::jump(to));
  };
  for (FlowRule& rule : set.rules) {
    if (random() % 2 == 0) jump(rule);
    if (random() % 9 == 0) rule.actions = {Action::drop()};
  }
  for (std::uint32_t table = 0; table < tables; ++table) {
    const bool empty =
        std::ranges::none_of(set.rules, [&](const FlowRule& rule) { return rule.table == table; });
    if (!empty && random() % 4 == 0) continue;
    FlowRule rest;
    rest.priority = 1'000'000;
    rest.table = table;
    rest.actions = {Action::forward("rest")};
    rest.from = {static_cast<std::uint32_t>(set.rules.size())};
    jump(rest);
    set.rules.push_back(std::move(rest));
  }
  return set;
}

/// What an action of unknown kind does to a packet, in one of some ways.
inline void change_somehow(Packet& packet, unsigned way) {
  const unsigned turned = 5 * way + 3 * (way / 2);
  packet.set(MatchField::kIpv4Src, packet.value(MatchField::kIpv4Src) ^ (turned & 15));
  packet.set(MatchField::kIpv4Dst, packet.value(MatchField::kIpv4Dst) ^ ((turned >> 1) & 15));
  packet.set(MatchField::kIpProtocol, packet.value(MatchField::kIpProtocol) ^ (way & 3));
}

/// All that is done to a packet, one action after the other, for each of some ways in which actions of unknown
/// kind may change it. `find(table, packet)` gives the rule that is hit.
template <typename Find>
std::string whole_way(std::uint32_t first, const Packet& entered, const Find& find) {
  constexpr unsigned kWays = 4;
  std::string text;
  for (unsigned way = 0; way < kWays; ++way) {
    Packet packet = entered;
    std::uint32_t table = first;
    bool ended = false;
    for (int tables = 0; tables < 64 && !ended; ++tables) {
      const FlowRule* const rule = find(table, packet);
      if (rule == nullptr) text += "; at " + std::to_string(table) + " no match";
      ended = true;
      if (rule == nullptr) break;
      for (const Action& action : rule->actions) {
        if (action.kind == ActionKind::kJump) {
          table = static_cast<std::uint32_t>(action.number);
          ended = false;
          break;
        }
        if (action.kind == ActionKind::kDrop) continue;
        text += to_string(action) + "; ";
        if (action.kind == ActionKind::kSetField) {
          packet.set(action.field,
                     (packet.value(action.field) & ~action.bits) | (action.value & action.bits));
        }
        if (action.kind == ActionKind::kOther) change_somehow(packet, way);
      }
    }
    text += ended ? "| " : "for ever | ";
  }
  return text;
}

inline std::string way_by_rules(const RuleSet& rules, std::uint32_t table, const Packet& packet) {
  return whole_way(table, packet,
                   [&](std::uint32_t at, const Packet& now) { return look_up(rules, at, now); });
}

/// The rule of a layout that a packet ends at. Tables that only the layout has belong to the one that leads
/// to them.
inline const FlowRule* hit_in_layout(const Layout& layout, const RuleSet& rules, std::uint32_t at,
                                     const Packet& packet) {
  const auto only_the_layouts = [&](std::uint64_t id) {
    return std::ranges::any_of(layout.tables,
                               [&](const LayoutTable& table) { return table.id == id; }) &&
           std::ranges::none_of(rules.rules,
                                [&](const FlowRule& rule) { return rule.table == id; });
  };
  for (int jumps = 0; jumps < 64; ++jumps) {
    const auto table = std::ranges::find(layout.tables, at, &LayoutTable::id);
    if (table == layout.tables.end()) return nullptr;
    const FlowRule* hit = nullptr;
    for (const Matcher& matcher : table->matchers) {
      for (const FlowRule& rule : matcher.rules) {
        if (hit == nullptr && rule.match.matches(packet)) hit = &rule;
      }
    }
    if (hit == nullptr || hit->actions.empty() || hit->actions.back().kind != ActionKind::kJump ||
        !only_the_layouts(hit->actions.back().number)) {
      return hit;
    }
    at = static_cast<std::uint32_t>(hit->actions.back().number);
  }
  return nullptr;
}

inline std::string way_by_layout(const Layout& layout, const RuleSet& rules, std::uint32_t table,
                                 const Packet& packet) {
  return whole_way(table, packet, [&](std::uint32_t at, const Packet& now) {
    return hit_in_layout(layout, rules, at, now);
  });
}

}  // namespace greynic
