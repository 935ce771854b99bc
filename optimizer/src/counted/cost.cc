/// What a layout costs under traffic.

#include <algorithm>
#include <map>

#include "greynic/optimizer/optimize.h"
#include "src/counted/walk.h"

namespace greynic::optimizer {

LayoutCost cost_of(const Layout& layout, const Traffic& traffic) {
  LayoutCost cost;
  cost.tables = layout.tables.size();
  cost.matchers = layout.matcher_count();
  cost.rules = layout.rule_count();
  std::vector<std::size_t> tried_by(traffic.flows.size(), 0);
  std::map<std::size_t, double> weight_by_tried;
  double tried = 0.0;
  double jumped = 0.0;
  double weight = 0.0;
  walk(layout, traffic, [&](const Step& step) {
    const double part = traffic.flows[step.flow].weight;
    tried_by[step.flow] += step.tried;
    if (!step.last) {
      jumped += part;
      return;
    }
    const std::size_t all = tried_by[step.flow];
    tried += part * static_cast<double>(all);
    weight += part;
    weight_by_tried[all] += part;
    cost.most_matchers_tried = std::max(cost.most_matchers_tried, all);
  });
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
