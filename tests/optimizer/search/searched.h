#pragma once

/// Tables of made filters as the search takes them.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "greynic/rules/made_filters.h"
#include "greynic/rules/read_rules.h"
#include "greynic/rules/traffic.h"
#include "src/chained/plan_search.h"
#include "src/entering.h"
#include "src/overlap.h"
#include "src/problem.h"
#include "src/table_planner.h"

namespace greynic::optimizer {

/// What a plan comes to, whatever the numbers of its tables.
struct Sum {
  std::size_t entries = 0;
  std::size_t matchers = 0;
  std::vector<double> missing;
  explicit Sum(const chained::Plan& plan) : entries(entries_of(plan)) {
    for (std::size_t number = 0; number < plan.size(); ++number) {
      const chained::PlanTable& table = plan[number];
      matchers += table.matchers.size();
      if (table.exit != chained::kNowhere) missing.push_back(table.missing);
    }
    std::sort(missing.begin(), missing.end());
  }
  bool operator==(const Sum&) const = default;
};

/// A table of made filters as the search takes it.
struct Table {
  explicit Table(const RuleSet& rules)
      : traffic(rules::uniform_traffic(rules, 1)),
        problem(make_problem(rules, rules_by_table(rules).begin()->second, effects)),
        entered(entering(traffic, problem.columns)) {
    weigh(problem, entered);
    const std::vector<bool> redundant = redundant_rows(problem);
    std::vector<std::uint32_t> kept;
    for (std::uint32_t row = 0; row < redundant.size(); ++row) {
      if (!redundant[row]) kept.push_back(row);
    }
    problem = part_of(problem, kept);
    decider = weigh(problem, entered);
  }
  Traffic traffic;
  Effects effects;
  Problem problem;
  Entering entered;
  std::vector<std::uint32_t> decider;  ///< rows by packet
};

/// A table as plans are grown for it.
struct Searched {
  explicit Searched(const RuleSet& rules)
      : table(rules), units(table.problem), decider(table.decider) {
    for (std::uint32_t& row : decider) {
      if (row != kNoRow) row = units.unit_of_row[row];
    }
    conflicts = chained::conflicts_of(units, units.rows, 100);
  }
  chained::Growing growing() {
    return {units, conflicts, table.entered.packets, table.entered.weight, decider};
  }
  chained::Grown grow(const chained::GrowOptions& options) {
    return chained::grow_plan(units, conflicts, table.entered.packets, table.entered.weight,
                              decider, options);
  }
  Table table;
  chained::Units units;
  std::vector<std::uint32_t> decider;  ///< units by packet
  chained::Conflicts conflicts;
};

/// A table of its own, for layouts of twice as many rules.
inline TableRoom room_for(const RuleSet& rules) {
  TableRoom room;
  room.first_free = 1;
  room.most_rules = room.most_tables = 2 * rules.rules.size();
  return room;
}

inline RuleSet made(const std::string& family, std::size_t count, std::uint64_t seed,
                    const std::string& ports = "1024 : 65535") {
  auto text = rules::made_filters({family, count, seed}).value();
  const std::string given = "1024 : 65535";
  for (std::size_t at = 0; (at = text.find(given, at)) != std::string::npos; at += ports.size()) {
    text.replace(at, given.size(), ports);
  }
  return rules::parse_rules(text, family, rules::Format::kClassbench).value();
}

/// Does a matcher send what it takes to one table, all of it? So do filters.
inline bool sends_all_to_one(const auto& entries, auto target) {
  const std::uint32_t to = target(entries.front());
  return entries.size() > 2 && to != chained::kNowhere &&
         std::ranges::all_of(entries, [&](const auto& entry) { return target(entry) == to; });
}

}  // namespace greynic::optimizer
