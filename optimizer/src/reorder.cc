#include "greynic/optimizer/reorder.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "chain.h"
#include "problem.h"

namespace greynic::optimizer {
namespace {

using Order = std::vector<std::uint32_t>;  // matchers of a table, by their places before

/// One table and the best order that was found for it.
struct TableOrder {
  std::size_t table;            ///< place in the layout
  std::vector<double> weights;  ///< by matcher
  Order best;
  double gain = 0.0;  ///< of the best order
};

Order best_order(const LayoutTable& table, const std::vector<double>& weights) {
  RuleSet rules;
  std::vector<Group> groups;
  for (std::size_t m = 0; m < table.matchers.size(); ++m) {
    groups.push_back({{}, weights[m]});
    for (const FlowRule& rule : table.matchers[m].rules) {
      groups.back().rows.push_back(static_cast<std::uint32_t>(rules.rules.size()));
      rules.rules.push_back(rule);
    }
  }
  std::vector<std::uint32_t> all(rules.rules.size());
  std::iota(all.begin(), all.end(), 0U);
  Effects effects;
  return order_groups(weights, precedence(make_problem(rules, all, effects), groups));
}

/// On the way from the order given to the best one, matcher by matcher: as far as it gains most
/// while at most so many rules change their place.
struct PartOfTheWay {
  Order order;
  std::size_t rules_changed = 0;
  double gain = 0.0;
};

PartOfTheWay part_of_the_way(const LayoutTable& table, const TableOrder& wanted,
                             std::size_t most_rules) {
  PartOfTheWay best;
  Order order(wanted.best.size());
  std::iota(order.begin(), order.end(), 0U);
  best.order = order;
  double gain = 0.0;
  for (std::size_t to = 0; to < order.size(); ++to) {
    if (order[to] == wanted.best[to]) continue;
    const auto from = std::find(order.begin(), order.end(), wanted.best[to]);
    // All that it passes may come later: the best order has them all behind it.
    const auto first = order.begin() + static_cast<std::ptrdiff_t>(to);
    gain += wanted.weights[*from] * static_cast<double>(from - first);
    for (auto passed = first; passed != from; ++passed) gain -= wanted.weights[*passed];
    std::rotate(first, from, from + 1);
    if (!(gain > best.gain)) continue;
    std::size_t changed = 0;
    for (std::uint32_t i = 0; i < order.size(); ++i) {
      if (order[i] != i) changed += table.matchers[order[i]].rules.size();
    }
    if (changed <= most_rules) best = {order, changed, gain};
  }
  return best;
}

LayoutTable in_order(const LayoutTable& table, const Order& order) {
  LayoutTable result{table.id, {}};
  for (const std::uint32_t place : order) {
    result.matchers.push_back(table.matchers[place]);
    Matcher& matcher = result.matchers.back();
    matcher.priority = static_cast<RulePriority>(result.matchers.size() - 1);
    for (FlowRule& rule : matcher.rules) rule.priority = matcher.priority;
  }
  return result;
}

/// Calls visit(table, matcher, rule, hits) for each rule, in the order of the layout.
template <typename Visit>
void for_each_rule(const Layout& layout, const std::vector<double>& hits, Visit visit) {
  std::size_t next = 0;
  for (std::size_t t = 0; t < layout.tables.size(); ++t) {
    for (std::size_t m = 0; m < layout.tables[t].matchers.size(); ++m) {
      for (const FlowRule& rule : layout.tables[t].matchers[m].rules)
        visit(t, m, rule, hits[next++]);
    }
  }
}

/// Matchers x packets, and packets: those that a rule ends.
struct Tried {
  double all = 0.0;
  double packets = 0.0;
  [[nodiscard]] double mean(double gain) const {
    return packets > 0.0 ? (all - gain) / packets : 0.0;
  }
};

Tried tried_in(const Layout& layout, const std::vector<double>& hits) {
  std::set<std::uint64_t> ids;
  for (const LayoutTable& table : layout.tables) ids.insert(table.id);
  Tried tried;
  for_each_rule(layout, hits, [&](std::size_t, std::size_t m, const FlowRule& rule, double count) {
    tried.all += count * static_cast<double>(m + 1);
    const bool goes_on =
        std::any_of(rule.actions.begin(), rule.actions.end(), [&](const Action& action) {
          return action.kind == ActionKind::kJump && ids.contains(action.number);
        });
    if (!goes_on) tried.packets += count;
  });
  return tried;
}

}  // namespace

double tried_by_counted(const Layout& layout, const std::vector<double>& hits) {
  return tried_in(layout, hits).mean(0.0);
}

Reordered reorder(const Layout& layout, const std::vector<double>& hits, std::size_t most_rules) {
  std::vector<std::vector<double>> weights;
  for (const LayoutTable& table : layout.tables) weights.emplace_back(table.matchers.size(), 0.0);
  for_each_rule(layout, hits, [&](std::size_t t, std::size_t m, const FlowRule&, double count) {
    weights[t][m] += count;
  });
  std::vector<TableOrder> wanted;
  double best_gain = 0.0;
  for (std::size_t t = 0; t < layout.tables.size(); ++t) {
    // Weights that fall already are in the best order there is.
    if (std::is_sorted(weights[t].rbegin(), weights[t].rend())) continue;
    TableOrder order{t, weights[t], best_order(layout.tables[t], weights[t]), 0.0};
    // The search for it may end a little behind a place that the way to it comes by.
    const PartOfTheWay best = part_of_the_way(layout.tables[t], order, layout.rule_count());
    if (best.rules_changed == 0) continue;
    order.best = best.order;
    order.gain = best.gain;
    best_gain += order.gain;
    wanted.push_back(std::move(order));
  }
  // Where most is to be gained, first.
  std::stable_sort(wanted.begin(), wanted.end(),
                   [](const TableOrder& a, const TableOrder& b) { return a.gain > b.gain; });
  const Tried tried = tried_in(layout, hits);
  Reordered result{layout, 0, tried.packets, tried.mean(0.0), 0.0, tried.mean(best_gain)};
  double gain = 0.0;
  for (const TableOrder& order : wanted) {
    const LayoutTable& table = layout.tables[order.table];
    const PartOfTheWay part = part_of_the_way(table, order, most_rules - result.rules_changed);
    if (part.rules_changed == 0) continue;
    result.layout.tables[order.table] = in_order(table, part.order);
    result.rules_changed += part.rules_changed;
    gain += part.gain;
  }
  result.tried_after = tried.mean(gain);
  return result;
}

}  // namespace greynic::optimizer
