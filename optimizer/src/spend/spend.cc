#include "src/spend/spend.h"

#include <optional>

#include "src/spend/exits.h"
#include "src/spend/unions.h"

namespace greynic::optimizer::spend {
namespace {

Entrances entrances_of(const chained::Plan& plan) {
  Entrances entrances(plan.size(), 0);
  const auto enter = [&](std::uint32_t table) {
    if (table != chained::kNowhere) ++entrances[table];
  };
  for (std::size_t number = 0; number < plan.size(); ++number) {
    const chained::PlanTable& table = plan[number];
    enter(table.exit);
    for (const chained::PlanMatcher& matcher : table.matchers) {
      for (const chained::PlanEntry& entry : matcher.entries) enter(entry.table);
    }
  }
  return entrances;
}

}  // namespace

void spend(chained::Plan& plan, std::size_t room, const std::vector<std::uint32_t>& effect,
           Uniting uniting) {
  Entrances entrances = entrances_of(plan);
  Exits exits(plan, entrances);
  std::optional<Unions> unions;
  if (uniting != Uniting::kNone) {
    unions.emplace(plan, entrances, effect, uniting == Uniting::kFewStayFew);
  }
  auto left = static_cast<double>(room);
  while (true) {
    const auto copy = exits.best(left);
    const auto one = unions ? unions->best(left) : std::nullopt;
    if (!copy && !one) return;
    const bool copies = copy && (!one || copy->worth >= one->worth);
    const Taken taken = copies ? exits.take() : unions->take();
    left -= taken.entries;
    for (const std::uint32_t table : {taken.table, taken.other}) {
      if (table == chained::kNowhere || !unions) continue;
      if (copies) unions->look_at(table);
      unions->offer(table, left);
    }
  }
}

}  // namespace greynic::optimizer::spend
