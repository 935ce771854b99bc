#include "src/chained/plan.h"

#include <algorithm>
#include <queue>

namespace greynic::optimizer::chained {
namespace {

std::size_t entries_in(const PlanTable& table) {
  std::size_t count = table.exit == kNowhere ? 0 : 1;
  for (const PlanMatcher& matcher : table.matchers) count += matcher.entries.size();
  return count;
}

/// How often each table is jumped to, exits included.
std::vector<std::uint32_t> entrances_of(const Plan& plan) {
  std::vector<std::uint32_t> entrances(plan.size(), 0);
  const auto enter = [&](std::uint32_t table) {
    if (table != kNowhere) ++entrances[table];
  };
  for (const PlanTable& table : plan) {
    enter(table.exit);
    for (const PlanMatcher& matcher : table.matchers) {
      for (const PlanEntry& entry : matcher.entries) enter(entry.table);
    }
  }
  return entrances;
}

class ExitInliner {
 public:
  ExitInliner(Plan& plan, std::size_t room)
      : plan_(plan), room_(static_cast<double>(room)), entrances_(entrances_of(plan)) {}

  void run() {
    for (std::uint32_t table = 0; table < plan_.size(); ++table) offer(table);
    while (!offers_.empty()) {
      const Offer offer_now = offers_.top();
      offers_.pop();
      PlanTable& table = plan_[offer_now.table];
      if (table.exit == kNowhere) continue;
      const double price = price_of(table);
      if (price > room_) continue;
      if (price > offer_now.price) {  // it has become dearer since
        offers_.push({table.missing / std::max(price, 0.5), price, offer_now.table});
        continue;
      }
      room_ -= price;
      take_in(table);
      offer(offer_now.table);
    }
  }

 private:
  struct Offer {
    double worth;
    double price;
    std::uint32_t table;
    bool operator<(const Offer& other) const {
      return worth != other.worth ? worth < other.worth : table > other.table;
    }
  };

  [[nodiscard]] double price_of(const PlanTable& table) const {
    if (entrances_[table.exit] == 1) return -1.0;  // the exit's own entry goes
    const PlanTable& next = plan_[table.exit];
    return static_cast<double>(entries_in(next)) - 1.0;
  }

  void offer(std::uint32_t number) {
    const PlanTable& table = plan_[number];
    if (table.exit == kNowhere) return;
    const double price = price_of(table);
    if (price > 0.0 && !(table.missing > 0.0)) return;
    offers_.push({table.missing / std::max(price, 0.5), price, number});
  }

  /// Of the packets that come to the exit, those who miss here make the same share everywhere.
  void take_in(PlanTable& table) {
    const std::uint32_t from = table.exit;
    const bool last = --entrances_[from] == 0;
    PlanTable& next = plan_[from];
    double all = next.missing;
    for (const PlanMatcher& matcher : next.matchers) {
      for (const PlanEntry& entry : matcher.entries) all += entry.weight;
    }
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

  Plan& plan_;
  double room_;
  std::vector<std::uint32_t> entrances_;
  std::priority_queue<Offer> offers_;
};

}  // namespace

std::size_t entries_of(const Plan& plan) {
  std::size_t count = 0;
  for (const PlanTable& table : plan) count += entries_in(table);
  return count;
}

double tried_in(const Plan& plan) {
  double tried = 0.0;
  for (const PlanTable& table : plan) {
    double position = 0.0;
    for (const PlanMatcher& matcher : table.matchers) {
      position += 1.0;
      for (const PlanEntry& entry : matcher.entries) tried += position * entry.weight;
    }
    tried += (table.exit == kNowhere ? position : position + 1.0) * table.missing;
  }
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

void inline_exits(Plan& plan, std::size_t room) { ExitInliner(plan, room).run(); }

}  // namespace greynic::optimizer::chained
