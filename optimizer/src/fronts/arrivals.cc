#include "src/fronts/arrivals.h"

#include <map>
#include <unordered_map>

#include "src/counted/walk.h"

namespace greynic::optimizer {

std::vector<std::vector<Arrival>> arrivals_of(const Layout& layout, const Traffic& traffic) {
  std::map<const LayoutTable*, std::size_t> place;
  std::vector<std::unordered_map<const FlowRule*, std::uint32_t>> row(layout.tables.size());
  for (std::size_t i = 0; i < layout.tables.size(); ++i) {
    place[&layout.tables[i]] = i;
    for (const Matcher& matcher : layout.tables[i].matchers) {
      for (const FlowRule& rule : matcher.rules) {
        const auto next = static_cast<std::uint32_t>(row[i].size());
        row[i].emplace(&rule, next);
      }
    }
  }
  std::vector<std::vector<Arrival>> arrivals(layout.tables.size());
  walk(layout, traffic, [&](const Step& step) {
    if (step.table == nullptr) return;
    const std::size_t table = place.at(step.table);
    const std::uint32_t hit = step.rule == nullptr ? kNoRow : row[table].at(step.rule);
    arrivals[table].push_back({step.flow, hit, static_cast<double>(step.tried), *step.packet});
  });
  return arrivals;
}

}  // namespace greynic::optimizer
