#include "src/chained/chained.h"

#include <algorithm>
#include <map>

#include "src/chained/grow.h"

namespace greynic::optimizer::chained {
namespace {

/// Mean matchers tried, as the plan's own weights say.
double tried(const Plan& plan) {
  double sum = 0.0;
  for (const PlanTable& table : plan) {
    double position = 0.0;
    for (const PlanMatcher& matcher : table.matchers) {
      position += 1.0;
      for (const PlanEntry& entry : matcher.entries) sum += position * entry.weight;
    }
    sum += table.missing * (position + (table.exit == kNowhere ? 0.0 : 1.0));
  }
  return sum;
}

class Writer {
 public:
  Writer(const RuleSet& rules, const Units& units, const Plan& plan, const TableOptions& options)
      : rules_(rules), units_(units), plan_(plan), options_(options), id_(plan.size(), kNowhere) {}

  std::vector<LayoutTable> run() {
    id_[0] = options_.table;
    order_ = {0};
    for (std::size_t i = 0; i < order_.size(); ++i) write(order_[i]);
    return std::move(tables_);
  }

 private:
  std::uint32_t id_of(std::uint32_t table) {
    if (id_[table] == kNowhere) {
      id_[table] = options_.first_free + static_cast<std::uint32_t>(order_.size()) - 1;
      order_.push_back(table);
    }
    return id_[table];
  }

  void write(std::uint32_t number) {
    const Columns& columns = units_.problem->columns;
    LayoutTable table{id_[number], {}};
    const auto position = [&] { return static_cast<RulePriority>(table.matchers.size()); };
    for (const PlanMatcher& planned : plan_[number].matchers) {
      Matcher matcher{columns.unpack_mask(planned.mask.data()), position(), {}};
      for (std::size_t i = 0; i < planned.entries.size(); ++i) {
        const PlanEntry& entry = planned.entries[i];
        FlowRule rule;
        if (entry.unit != kNowhere) rule = rules_.rules[units_.rule[entry.unit]];
        if (entry.unit == kNowhere) rule.actions = {Action::jump(id_of(entry.table))};
        rule.match = columns.unpack(planned.values[i], planned.mask.data());
        rule.priority = matcher.priority;
        rule.table = table.id;
        rule.weight = std::min(1.0, entry.weight);  // sums of shares round
        matcher.rules.push_back(std::move(rule));
      }
      table.matchers.push_back(std::move(matcher));
    }
    if (plan_[number].exit != kNowhere) {
      FlowRule rule;
      rule.actions = {Action::jump(id_of(plan_[number].exit))};
      rule.priority = position();
      rule.table = table.id;
      rule.weight = std::min(1.0, plan_[number].missing);
      table.matchers.push_back({{}, position(), {std::move(rule)}});
    }
    tables_.push_back(std::move(table));
  }

  const RuleSet& rules_;
  const Units& units_;
  const Plan& plan_;
  const TableOptions& options_;
  std::vector<std::uint32_t> id_;  ///< by table of the plan
  std::vector<std::uint32_t> order_;
  std::vector<LayoutTable> tables_;
};

}  // namespace

std::vector<LayoutTable> lay_out(const RuleSet& rules, const Problem& problem, const Rows& packets,
                                 const std::vector<double>& packet_weight,
                                 const TableOptions& options) {
  Units units(problem);
  std::vector<std::uint32_t> decider = first_matches(problem.rows, packets);
  for (std::uint32_t& row : decider) {
    if (row != kNoRow) row = units.unit_of_row[row];
  }
  const auto most = static_cast<double>(options.most_rules);
  double price = 1.0 / most;
  Plan best;
  double best_tried = 0.0;
  constexpr int kRounds = 4;
  for (int round = 0; round < kRounds; ++round) {
    GrowOptions grow{price, options.most_tables};
    Plan plan = grow_plan(units, packets, packet_weight, decider, grow);
    const std::size_t entries = entries_of(plan);
    const bool fits = entries <= options.most_rules && plan.size() <= options.most_tables + 1;
    if (fits) inline_exits(plan, options.most_rules - entries);
    if (fits && (best.empty() || tried(plan) < best_tried)) {
      best_tried = tried(plan);
      best = std::move(plan);
    }
    if (fits) break;
    price *= 4.0;
  }
  if (best.empty()) {
    best = grow_plan(units, packets, packet_weight, decider, {price, 0});
  }
  return Writer(rules, units, best, options).run();
}

}  // namespace greynic::optimizer::chained
