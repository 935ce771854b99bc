#include "src/joined/arrivals_by_rule.h"

#include "greynic/optimizer/optimize.h"
#include "src/counted/walk.h"

namespace greynic::optimizer::joined {

ArrivalsByRule arrivals_by_rule(const Pipeline& pipeline, const Traffic& traffic,
                                std::uint32_t first) {
  double all = 0.0;
  for (const TrafficFlow& flow : traffic.flows) all += flow.weight;
  const Layout layout = layout_in_rule_order(pipeline.rules());
  std::map<const FlowRule*, Place> places;
  for (const LayoutTable& table : layout.tables) {
    std::uint32_t row = 0;
    for (const Matcher& matcher : table.matchers) {
      for (const FlowRule& rule : matcher.rules) places[&rule] = {table.id, row++};
    }
  }
  ArrivalsByRule arrivals;
  walk(layout, traffic, [&](const Step& step) {
    if (step.rule == nullptr || step.table->id < first) return;
    Arrivals& here =
        arrivals.try_emplace(places.at(step.rule), Arrivals{Rows(pipeline.words()), {}})
            .first->second;
    pipeline.columns().pack(*step.packet, here.packets.add());
    here.share.push_back(traffic.flows[step.flow].weight / all);
  });
  return arrivals;
}

}  // namespace greynic::optimizer::joined
