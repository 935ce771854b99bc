#include "src/chained/plan.h"

#include <algorithm>

namespace greynic::optimizer::chained {

double weight_of(const PlanMatcher& matcher) {
  double weight = 0.0;
  for (const PlanEntry& entry : matcher.entries) weight += entry.weight;
  return weight;
}

std::size_t entries_in(const PlanTable& table) {
  std::size_t count = table.exit == kNowhere ? 0 : 1;
  for (const PlanMatcher& matcher : table.matchers) count += matcher.entries.size();
  return count;
}

std::size_t entries_of(const Plan& plan) {
  std::size_t count = 0;
  for (std::size_t table = 0; table < plan.size(); ++table) count += entries_in(plan[table]);
  return count;
}

double tried_from(const PlanTable& table, std::size_t begin) {
  double tried = 0.0;
  double position = 0.0;
  for (std::size_t i = begin; i < table.matchers.size(); ++i) {
    position += 1.0;
    tried += position * weight_of(table.matchers[i]);
  }
  return tried + (table.exit == kNowhere ? position : position + 1.0) * table.missing;
}

double tried_in(const Plan& plan) {
  double tried = 0.0;
  for (std::size_t table = 0; table < plan.size(); ++table) tried += tried_from(plan[table], 0);
  return tried;
}

std::size_t longest_way(const Plan& plan) {
  std::vector<std::size_t> from(plan.size(), 0);  // jumps from here on, and one
  const auto measure = [&](const auto& self, std::uint32_t number) -> std::size_t {
    if (from[number] > 0) return from[number];
    std::size_t most = 0;
    const auto go = [&](std::uint32_t next) {
      if (next != kNowhere) most = std::max(most, self(self, next));
    };
    go(plan[number].exit);
    for (const PlanMatcher& matcher : plan[number].matchers) {
      for (const PlanEntry& entry : matcher.entries) go(entry.table);
    }
    return from[number] = most + 1;
  };
  return measure(measure, 0) - 1;
}

}  // namespace greynic::optimizer::chained
