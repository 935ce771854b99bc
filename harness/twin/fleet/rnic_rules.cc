#include "fleet/rnic_rules.h"

#include <algorithm>
#include <string>
#include <unordered_map>

namespace greynic::twin {
namespace {

constexpr int kMostJumps = 64;  ///< as in the reference lookup

/// A group, looked up as hardware does.
struct Group {
  const Matcher* matcher = nullptr;
  bool held = true;
  std::unordered_map<std::string, const FlowRule*> rules;  ///< not for groups that compare ranges

  [[nodiscard]] std::string key(const Packet& packet) const {
    std::string key;
    for (const FieldMask& field : matcher->mask.fields()) {
      const U128 value = packet.value(field.field) & field.bits;
      key.append(reinterpret_cast<const char*>(&value), sizeof(value));
    }
    return key;
  }
  [[nodiscard]] std::string key(const Match& match) const {
    std::string key;
    for (const FieldMatch& field : match.fields()) {
      key.append(reinterpret_cast<const char*>(&field.value), sizeof(field.value));
    }
    return key;
  }
  [[nodiscard]] const FlowRule* find(const Packet& packet) const {
    if (matcher->mask.ranges().empty()) {
      const auto found = rules.find(key(packet));
      return found == rules.end() ? nullptr : found->second;
    }
    const auto hit = std::ranges::find_if(
        matcher->rules, [&](const FlowRule& rule) { return rule.match.matches(packet); });
    return hit == matcher->rules.end() ? nullptr : &*hit;
  }
};

struct Walked {
  double groups = 0;
  double missed = 0;  ///< when the rule that decides were not there
  bool software = false;
  const FlowRule* rule = nullptr;
  const Matcher* matcher = nullptr;
};

class Walker {
 public:
  Walker(const Layout& layout, const LayoutLimits& limits) {
    std::size_t recipes = 0;
    for (const LayoutTable& table : layout.tables) {
      std::vector<Group>& groups = tables_[table.id];
      if (table.software) {
        software_[table.id] = true;
        continue;
      }
      for (const Matcher& matcher : table.matchers) {
        Group group{&matcher, true, {}};
        const std::size_t own = limits.recipes(matcher.mask);
        group.held = own <= limits.most_chained && recipes + own <= limits.most_recipes;
        if (group.held) recipes += own;
        for (const FlowRule& rule : matcher.rules) {
          if (matcher.mask.ranges().empty()) group.rules.try_emplace(group.key(rule.match), &rule);
          for (const std::uint32_t line : rule.from) ++entries_[line];
        }
        groups.push_back(std::move(group));
      }
    }
  }

  [[nodiscard]] Walked walk(Packet packet, std::uint32_t first) const {
    Walked walked;
    std::uint64_t wanted = first;
    for (int jumps = 0; jumps <= kMostJumps; ++jumps) {
      const auto table = tables_.find(wanted);
      if (table == tables_.end()) return walked;
      if (software_.contains(wanted)) {
        walked.software = true;
        return walked;
      }
      const double before = walked.groups;
      walked.rule = nullptr;
      for (const Group& group : table->second) {
        if (!group.held) {
          walked.software = true;
          return walked;
        }
        ++walked.groups;
        walked.rule = group.find(packet);
        walked.matcher = group.matcher;
        if (walked.rule != nullptr) break;
      }
      walked.missed = before + static_cast<double>(table->second.size());
      if (walked.rule == nullptr) return walked;
      const auto& actions = walked.rule->actions;
      const auto jump = std::ranges::find(actions, ActionKind::kJump, &Action::kind);
      if (jump == actions.end()) return walked;
      for (const Action& action : actions) {
        if (action.kind != ActionKind::kSetField) continue;  // a tag, for the table behind
        packet.set(action.field,
                   (packet.value(action.field) & ~action.bits) | (action.value & action.bits));
      }
      wanted = jump->number;
    }
    return walked;
  }

  /// Entries that serve the same line as this rule, besides it.
  [[nodiscard]] double others(const FlowRule& rule) const {
    if (rule.from.empty()) return 0;
    return static_cast<double>(entries_.at(rule.from.front()) - 1);
  }

 private:
  std::unordered_map<std::uint64_t, std::vector<Group>> tables_;
  std::unordered_map<std::uint64_t, bool> software_;
  std::unordered_map<std::uint32_t, std::size_t> entries_;
};

Traffic traffic_of_rules(const Layout& layout) {
  Traffic traffic;
  for (const LayoutTable& table : layout.tables) {
    if (table.id != 0) continue;
    for (const Matcher& matcher : table.matchers) {
      for (const FlowRule& rule : matcher.rules) {
        Packet packet;
        for (const FieldMatch& field : rule.match.fields()) packet.set(field.field, field.value);
        for (const FieldRange& range : rule.match.ranges()) packet.set(range.field, range.low);
        traffic.flows.push_back({packet, rule.weight > 0 ? rule.weight : 1.0, 0});
      }
    }
  }
  return traffic;
}

}  // namespace

RnicRules rules_of(const Layout& layout, const Traffic* traffic, const LayoutLimits& limits) {
  const Walker walker(layout, limits);
  const Traffic own = traffic == nullptr ? traffic_of_rules(layout) : Traffic();
  const Traffic& packets = traffic == nullptr ? own : *traffic;
  RnicRules rules;
  double total = 0;
  for (const TrafficFlow& flow : packets.flows) {
    const Walked walked = walker.walk(flow.packet, flow.table);
    total += flow.weight;
    rules.groups += flow.weight * walked.groups;
    FlowNeeds needs{.until = total, .groups_missed = walked.groups, .software = walked.software};
    if (walked.software) {
      rules.software_share += flow.weight;
    } else if (walked.rule != nullptr) {
      needs.groups_missed = walked.missed;
      needs.group_rules = static_cast<double>(walked.matcher->rules.size());
      needs.other_entries = walker.others(*walked.rule);
    }
    rules.flows.push_back(needs);
  }
  if (total <= 0) return {};
  rules.groups /= total;
  rules.software_share /= total;
  for (FlowNeeds& flow : rules.flows) flow.until /= total;
  return rules;
}

LayoutLimits strictest(const std::vector<LayoutLimits>& all) {
  LayoutLimits limits = all.front();
  for (const LayoutLimits& other : all) {
    limits.last_table = std::min(limits.last_table, other.last_table);
    limits.cuts_pay = limits.cuts_pay && other.cuts_pay;
    limits.shared_tables = limits.shared_tables && other.shared_tables;
    limits.most_ranges = std::min(limits.most_ranges, other.most_ranges);
    limits.most_rules = std::min(limits.most_rules, other.most_rules);
    limits.most_recipes = std::min(limits.most_recipes, other.most_recipes);
    limits.most_chained = std::min(limits.most_chained, other.most_chained);
  }
  limits.recipes_of = [all](const Mask& mask) {
    std::size_t most = 1;
    for (const LayoutLimits& one : all) most = std::max(most, one.recipes(mask));
    return most;
  };
  return limits;
}

}  // namespace greynic::twin
