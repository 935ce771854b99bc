#include "switch/layout_walk.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace greynic::twin {
namespace {

constexpr int kMostJumps = 64;  ///< as in the reference lookup
constexpr unsigned kWordBits = 16;

/// The group that fixes all that the table looks at; end when there is none.
auto exact_matcher(const LayoutTable& table) {
  return std::ranges::find_if(table.matchers, [&](const Matcher& candidate) {
    const auto whole = [](const FieldMask& field) { return field.bits == full_mask(field.field); };
    return std::ranges::all_of(candidate.mask.fields(), whole) &&
           std::ranges::all_of(table.matchers, [&](const Matcher& other) {
             return candidate.mask.covers(other.mask);
           });
  });
}

/// Where the packet is decided in a table: the matcher, and the rule in it.
struct Decision {
  std::size_t matcher = 0, rule = 0;
  bool hit = false;
};

Decision decide(const LayoutTable& table, const Packet& packet) {
  for (std::size_t m = 0; m < table.matchers.size(); ++m) {
    const auto& rules = table.matchers[m].rules;
    const auto hit = std::ranges::find_if(
        rules, [&](const FlowRule& rule) { return rule.match.matches(packet); });
    if (hit != rules.end()) return {m, static_cast<std::size_t>(hit - rules.begin()), true};
  }
  return {table.matchers.size(), 0, false};
}

double tried_in(const LayoutTable& table, const Decision& decision, const Grouping& grouping) {
  std::size_t exact = table.matchers.size();
  if (grouping.exact_first) {
    exact = static_cast<std::size_t>(exact_matcher(table) - table.matchers.begin());
    if (exact < table.matchers.size() && decision.hit && decision.matcher == exact) return 1;
  }
  const auto is_large = [&](std::size_t m) {
    return !grouping.large_groups || static_cast<double>(m) < *grouping.large_groups || m == exact;
  };
  double tried = exact < table.matchers.size() ? 1 : 0;
  for (std::size_t m = 0; m < decision.matcher; ++m) {
    if (m == exact) continue;
    tried += is_large(m) ? 1 : static_cast<double>(table.matchers[m].rules.size());
  }
  if (decision.hit) {
    tried += is_large(decision.matcher) ? 1 : static_cast<double>(decision.rule + 1);
  }
  return tried;
}

}  // namespace

double groups_of_masks(double masks, double rules_per_mask, const Grouping& grouping) {
  if (!grouping.large_groups) return masks;
  return std::min(masks, *grouping.large_groups) +
         std::max(0.0, masks - *grouping.large_groups) * rules_per_mask;
}

double lone_rule_share(double masks, const Grouping& grouping) {
  if (!grouping.large_groups || masks <= *grouping.large_groups) return 0;
  return 1 - *grouping.large_groups / masks;
}

double groups_tried(const Layout& layout, Packet packet, const Grouping& grouping,
                    std::uint32_t table_of_entry) {
  double tried = 0;
  std::uint64_t wanted = table_of_entry;
  for (int jumps = 0; jumps <= kMostJumps; ++jumps) {
    const auto table = std::ranges::find_if(
        layout.tables, [&](const LayoutTable& candidate) { return candidate.id == wanted; });
    if (table == layout.tables.end()) return tried;
    const Decision decision = decide(*table, packet);
    tried += tried_in(*table, decision, grouping);
    if (!decision.hit) return tried;
    const auto& actions = table->matchers[decision.matcher].rules[decision.rule].actions;
    const auto jump = std::ranges::find(actions, ActionKind::kJump, &Action::kind);
    if (jump == actions.end()) return tried;
    wanted = jump->number;
    for (const Action& action : actions) {
      if (action.kind != ActionKind::kSetField) continue;
      const U128 kept = packet.value(action.field) & ~action.bits;
      packet.set(action.field, kept | (action.value & action.bits));
    }
  }
  return tried;
}

GroupWalk walk_of(const Layout& layout, const Traffic* traffic, const Grouping& grouping) {
  std::map<double, double> weights;
  double total = 0;
  const auto add = [&](const Packet& packet, double weight, std::uint32_t table = 0) {
    weights[groups_tried(layout, packet, grouping, table)] += weight;
    total += weight;
  };
  if (traffic != nullptr) {
    for (const TrafficFlow& flow : traffic->flows) add(flow.packet, flow.weight, flow.table);
  } else {
    for (const LayoutTable& table : layout.tables) {
      if (table.id != 0) continue;
      for (const Matcher& matcher : table.matchers) {
        for (const FlowRule& rule : matcher.rules) {
          Packet packet;
          for (const FieldMatch& field : rule.match.fields()) packet.set(field.field, field.value);
          for (const FieldRange& range : rule.match.ranges()) packet.set(range.field, range.low);
          add(packet, rule.weight > 0 ? rule.weight : 1.0);
        }
      }
    }
  }
  GroupWalk walk;
  double sum = 0;
  for (const auto& [groups, weight] : weights) {
    if (weight <= 0) continue;
    sum += weight;
    walk.shares.push_back(sum / total);
    walk.share_groups.push_back(groups);
  }
  if (walk.shares.size() == 1) return {.groups = walk.share_groups.front()};
  walk.groups = walk.shares.empty() ? 0 : walk.share_groups.back();
  return walk;
}

double recipes_of(const Mask& mask, double words) {
  double looked_at = 0;
  for (const FieldMask& field : mask.fields()) {
    for (unsigned bit = 0; bit < info(field.field).width_bits; bit += kWordBits) {
      looked_at += ((field.bits >> bit) & 0xffffU) != 0 ? 1 : 0;
    }
  }
  for (const MatchField field : mask.ranges()) {
    looked_at += std::ceil(static_cast<double>(info(field).width_bits) / kWordBits);
  }
  const double alone = std::max(1.0, std::ceil(looked_at / words));
  return alone > 1 ? alone + 1 : 1;
}

LayoutLimits layout_limits(const Parameters& rnic) {
  const auto count = [](double limit) {
    return limit > 0 ? static_cast<std::size_t>(limit) : LayoutLimits::kNoLimit;
  };
  LayoutLimits limits;
  if (rnic.table_limit > 0) limits.last_table = static_cast<std::uint32_t>(rnic.table_limit) - 1;
  limits.most_rules = count(rnic.table_rule_limit);
  limits.most_ranges = static_cast<std::size_t>(rnic.range_field_count);
  limits.most_recipes = count(rnic.mask_shape_limit);
  limits.shared_tables = rnic.table_rejoin != 0;
  if (rnic.recipe_word_count > 0) {
    limits.most_chained = count(rnic.recipe_chain_limit);
    limits.recipes_of = [words = rnic.recipe_word_count](const Mask& mask) {
      return static_cast<std::size_t>(recipes_of(mask, words));
    };
  }
  return limits;
}

}  // namespace greynic::twin
