#include "greynic/optimizer/explanation.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "src/counted/walk.h"

namespace greynic::optimizer {
namespace {

/// The mask of the rule that decided a flow, and the matchers tried until then.
struct FlowEnd {
  std::size_t tried = 0;
  const FlowRule* rule = nullptr;
};

std::vector<FlowEnd> ends_of(const Layout& layout, const Traffic& traffic) {
  std::vector<FlowEnd> ends(traffic.flows.size());
  walk(layout, traffic, [&](const Step& step) {
    ends[step.flow].tried += step.tried;
    if (step.last) ends[step.flow].rule = step.rule;
  });
  return ends;
}

void count_masks(const Layout& layout, std::map<Mask, MaskChange>& masks, bool before) {
  for (const LayoutTable& table : layout.tables) {
    for (const Matcher& matcher : table.matchers) {
      MaskChange& change = masks[matcher.mask];
      ++(before ? change.matchers_before : change.matchers_after);
      if (before) change.rules += matcher.rules.size();
    }
  }
}

std::vector<MaskChange> mask_changes(const Layout& before, const Layout& after,
                                     const Traffic& traffic, double all) {
  std::map<Mask, MaskChange> masks;
  count_masks(before, masks, true);
  count_masks(after, masks, false);
  const std::vector<FlowEnd> old_ends = ends_of(before, traffic);
  const std::vector<FlowEnd> new_ends = ends_of(after, traffic);
  for (std::size_t i = 0; i < traffic.flows.size(); ++i) {
    if (old_ends[i].rule == nullptr) continue;
    MaskChange& change = masks[old_ends[i].rule->match.mask()];
    const double part = traffic.flows[i].weight / all;
    change.share += part;
    change.tried_before += part * static_cast<double>(old_ends[i].tried);
    change.tried_after += part * static_cast<double>(new_ends[i].tried);
  }
  std::vector<MaskChange> changes;
  for (auto& [mask, change] : masks) {
    change.mask = mask;
    changes.push_back(std::move(change));
  }
  // Still weighted by share: what the mask's packets saved of the whole traffic's mean.
  std::stable_sort(changes.begin(), changes.end(), [](const MaskChange& a, const MaskChange& b) {
    return a.tried_before - a.tried_after > b.tried_before - b.tried_after;
  });
  for (MaskChange& change : changes) {
    if (!(change.share > 0.0)) continue;
    change.tried_before /= change.share;
    change.tried_after /= change.share;
  }
  return changes;
}

/// The jumps into each table, and the packets that took them.
struct WaysIn {
  std::size_t rules = 0;
  std::map<std::pair<std::uint32_t, Mask>, double> share_of;
};

std::vector<TableRole> table_roles(const Layout& layout, const Traffic& traffic, double all) {
  std::map<std::uint32_t, TableRole> roles;
  std::map<std::uint32_t, WaysIn> ways;
  for (const LayoutTable& table : layout.tables) {
    TableRole& role = roles[table.id];
    role.id = table.id;
    role.matchers = table.matchers.size();
    for (const Matcher& matcher : table.matchers) {
      role.rules += matcher.rules.size();
      for (const FlowRule& rule : matcher.rules) {
        for (const Action& action : rule.actions) {
          if (action.kind != ActionKind::kJump) continue;
          WaysIn& into = ways[static_cast<std::uint32_t>(action.number)];
          ++into.rules;
          into.share_of[{table.id, matcher.mask}] += 0.0;
        }
      }
    }
  }
  for (const TrafficFlow& flow : traffic.flows) {
    if (const auto role = roles.find(flow.table); role != roles.end()) role->second.entered = true;
  }
  walk(layout, traffic, [&](const Step& step) {
    if (step.table == nullptr) return;
    const double part = traffic.flows[step.flow].weight / all;
    TableRole& role = roles[step.table->id];
    role.share += part;
    role.tried += part * static_cast<double>(step.tried);
    if (step.last) return;
    for (const Action& action : step.rule->actions) {
      if (action.kind != ActionKind::kJump) continue;
      ways[static_cast<std::uint32_t>(action.number)]
          .share_of[{step.table->id, step.rule->match.mask()}] += part;
    }
  });
  std::vector<TableRole> found;
  for (auto& [id, role] : roles) {
    if (role.share > 0.0) role.tried /= role.share;
    const WaysIn& into = ways[id];
    role.ways_in = into.rules;
    const auto widest =
        std::max_element(into.share_of.begin(), into.share_of.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    if (widest != into.share_of.end()) {
      role.way_in_table = widest->first.first;
      role.way_in_mask = widest->first.second;
    }
    found.push_back(std::move(role));
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const TableRole& a, const TableRole& b) { return a.share > b.share; });
  return found;
}

/// The ways of the flows of a small traffic.
std::vector<std::vector<FlowStep>> ways_of(const Layout& layout, const Traffic& traffic,
                                           std::vector<FlowChange>* decided) {
  std::vector<std::vector<FlowStep>> ways(traffic.flows.size());
  walk(layout, traffic, [&](const Step& step) {
    if (step.table == nullptr) return;
    FlowStep& made = ways[step.flow].emplace_back();
    made.table = step.table->id;
    made.tried = step.tried;
    if (step.rule == nullptr) return;
    made.match = step.rule->match;
    if (step.last && decided != nullptr) (*decided)[step.flow].decided_by = step.rule->from;
  });
  return ways;
}

std::vector<FlowChange> flow_changes(const Layout& before, const Layout& after,
                                     const Traffic& traffic, double all, std::size_t most) {
  std::vector<std::uint32_t> order(traffic.flows.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return traffic.flows[a].weight > traffic.flows[b].weight;
  });
  order.resize(std::min(order.size(), most));
  Traffic hottest;
  std::vector<FlowChange> changes;
  for (const std::uint32_t i : order) {
    hottest.flows.push_back(traffic.flows[i]);
    changes.push_back({traffic.flows[i].packet, traffic.flows[i].weight / all, {}, {}, {}});
  }
  auto old_ways = ways_of(before, hottest, &changes);
  auto new_ways = ways_of(after, hottest, nullptr);
  for (std::size_t i = 0; i < changes.size(); ++i) {
    changes[i].before = std::move(old_ways[i]);
    changes[i].after = std::move(new_ways[i]);
  }
  return changes;
}

}  // namespace

Explanation explain(const Layout& before, const Layout& after, const Traffic& traffic,
                    std::size_t most_flows) {
  double all = 0.0;
  for (const TrafficFlow& flow : traffic.flows) all += flow.weight;
  return {mask_changes(before, after, traffic, all), table_roles(after, traffic, all),
          flow_changes(before, after, traffic, all, most_flows)};
}

std::size_t tried_on(const std::vector<FlowStep>& way) {
  std::size_t tried = 0;
  for (const FlowStep& step : way) tried += step.tried;
  return tried;
}

}  // namespace greynic::optimizer
