#include "src/spend/exits.h"

#include <algorithm>

namespace greynic::optimizer::spend {
namespace {

using chained::kNowhere;
using chained::PlanEntry;
using chained::PlanMatcher;
using chained::PlanTable;

}  // namespace

Exits::Exits(chained::Plan& plan, Entrances& entrances) : plan_(plan), entrances_(entrances) {
  for (std::uint32_t table = 0; table < plan.size(); ++table) offer(table);
}

double Exits::price_of(const PlanTable& table) const {
  if (entrances_[table.exit] == 1) return -1.0;  // the exit's own entry goes
  return static_cast<double>(entries_in(plan_[table.exit])) - 1.0;
}

void Exits::offer(std::uint32_t number) {
  const PlanTable& table = plan_[number];
  if (table.exit == kNowhere) return;
  const double price = price_of(table);
  if (price > 0.0 && !(table.missing > 0.0)) return;
  offers_.push(offer_of(table.missing, price, number));
}

std::optional<Offer> Exits::best(double room) {
  while (!offers_.empty()) {
    const Offer offered = offers_.top();
    const PlanTable& table = plan_[offered.table];
    if (table.exit != kNowhere) {
      const Offer now = offer_of(table.missing, price_of(table), offered.table);
      if (now.price <= room && now.worth >= offered.worth) return now;
      offers_.pop();
      if (now.price <= room) offers_.push(now);  // it is worth less by now
      continue;
    }
    offers_.pop();
  }
  return std::nullopt;
}

Taken Exits::take() {
  const std::uint32_t number = offers_.top().table;
  offers_.pop();
  const Taken taken{price_of(plan_[number]), number, plan_[number].exit};
  take_in(plan_.edit(number));
  offer(number);
  return taken;
}

/// Of the packets that come to the exit, those who miss here make the same share everywhere.
void Exits::take_in(PlanTable& table) {
  const std::uint32_t from = table.exit;
  const bool last = --entrances_[from] == 0;
  PlanTable& next = plan_.edit(from);
  double all = next.missing;
  for (const PlanMatcher& matcher : next.matchers) all += weight_of(matcher);
  const double share = last ? 1.0 : all > 0.0 ? std::min(1.0, table.missing / all) : 0.0;
  for (PlanMatcher& matcher : next.matchers) {
    table.matchers.push_back(matcher);
    for (std::size_t i = 0; i < matcher.entries.size(); ++i) {
      PlanEntry& entry = matcher.entries[i];
      table.matchers.back().entries[i].weight = entry.weight * share;
      entry.weight *= 1.0 - share;
      if (!last && entry.table != kNowhere) ++entrances_[entry.table];
    }
  }
  table.exit = next.exit;
  table.missing = next.missing * share;
  next.missing *= 1.0 - share;
  if (next.exit != kNowhere && !last) ++entrances_[next.exit];
  if (last) next = {};
}

}  // namespace greynic::optimizer::spend
