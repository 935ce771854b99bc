/// What a layout costs under traffic: table by table, all packets of a table at once.

#include <algorithm>
#include <map>

#include "greynic/optimizer/optimize.h"
#include "ternary.h"

namespace greynic::optimizer {
namespace {

constexpr int kMostJumps = 64;  // as core's look_up

struct Walker {
  std::uint32_t flow;
  std::size_t tried;
};

/// A table's rules in the order in which they are tried, with each one's matcher and jump.
struct WalkedTable {
  WalkedTable(const LayoutTable& table, const Columns& packed_columns)
      : columns(packed_columns), rows(packed_columns.words()) {
    for (std::size_t m = 0; m < table.matchers.size(); ++m) {
      for (const FlowRule& rule : table.matchers[m].rules) {
        Word* const value = rows.value.add();
        Word* const mask = rows.mask.add();
        columns.pack(rule.match, value, mask);
        matcher.push_back(m);
        const auto jump = std::find_if(rule.actions.begin(), rule.actions.end(),
                                       [](const Action& a) { return a.kind == ActionKind::kJump; });
        target.push_back(jump == rule.actions.end() ? -1 : static_cast<std::int64_t>(jump->number));
      }
    }
  }
  const Columns& columns;
  Ternaries rows;
  std::vector<std::size_t> matcher;
  std::vector<std::int64_t> target;  ///< -1: the rule ends the walk
};

Columns columns_of(const LayoutTable& table) {
  Mask all;
  for (const Matcher& matcher : table.matchers) {
    for (const FieldMask& entry : matcher.mask.fields()) all.add(entry.field, entry.bits);
    for (const FlowRule& rule : matcher.rules) {
      for (const FieldMatch& entry : rule.match.fields()) all.add(entry.field, entry.bits);
    }
  }
  return Columns(all);
}

}  // namespace

LayoutCost cost_of(const Layout& layout, const Traffic& traffic) {
  LayoutCost cost;
  cost.tables = layout.tables.size();
  cost.matchers = layout.matcher_count();
  cost.rules = layout.rule_count();
  std::map<std::int64_t, const LayoutTable*> table_of;
  for (const LayoutTable& table : layout.tables) table_of.try_emplace(table.id, &table);

  std::map<std::int64_t, std::vector<Walker>> at;
  for (std::uint32_t i = 0; i < traffic.flows.size(); ++i) {
    at[traffic.flows[i].table].push_back({i, 0});
  }
  std::map<std::size_t, double> weight_by_tried;
  double tried = 0.0;
  double jumped = 0.0;
  double weight = 0.0;
  const auto finish = [&](const Walker& walker) {
    tried += traffic.flows[walker.flow].weight * static_cast<double>(walker.tried);
    weight += traffic.flows[walker.flow].weight;
    weight_by_tried[walker.tried] += traffic.flows[walker.flow].weight;
    cost.most_matchers_tried = std::max(cost.most_matchers_tried, walker.tried);
  };
  for (int jumps = 0; jumps <= kMostJumps && !at.empty(); ++jumps) {
    std::map<std::int64_t, std::vector<Walker>> next;
    for (const auto& [id, walkers] : at) {
      const auto found = table_of.find(id);
      if (found == table_of.end()) {
        for (const Walker& walker : walkers) finish(walker);
        continue;
      }
      const Columns columns = columns_of(*found->second);
      const WalkedTable table(*found->second, columns);
      Rows packets(columns.words());
      for (const Walker& walker : walkers) {
        columns.pack(traffic.flows[walker.flow].packet, packets.add());
      }
      const auto hits = first_matches(table.rows, packets);
      for (std::size_t i = 0; i < walkers.size(); ++i) {
        Walker walker = walkers[i];
        const bool missed = hits[i] == kNoRow;
        walker.tried += missed ? found->second->matchers.size() : table.matcher[hits[i]] + 1;
        if (missed || table.target[hits[i]] < 0) {
          finish(walker);
        } else {
          jumped += traffic.flows[walker.flow].weight;
          next[table.target[hits[i]]].push_back(walker);
        }
      }
    }
    at = std::move(next);
  }
  for (const auto& [id, walkers] : at) {
    for (const Walker& walker : walkers) finish(walker);
  }
  if (!(weight > 0.0)) return cost;
  cost.matchers_tried = tried / weight;
  cost.jumps = jumped / weight;
  double so_far = 0.0;
  for (const auto& [count, part] : weight_by_tried) {
    if (so_far < 0.99 * weight) cost.matchers_tried_p99 = count;
    so_far += part;
    cost.shares_by_tried.emplace_back(count, part / weight);
  }
  return cost;
}

}  // namespace greynic::optimizer
