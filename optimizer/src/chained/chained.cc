#include "src/chained/chained.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "src/chained/grow.h"

namespace greynic::optimizer::chained {
namespace {

Mask matcher_mask(const PlanMatcher& planned, const Columns& columns) {
  Mask mask = columns.unpack_mask(planned.mask.data());
  for (std::size_t field = 0; field < kPortFields; ++field) {
    if (planned.as_range[field]) mask.add_range(kPorts[field]);
  }
  return mask;
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
    table.matchers.reserve(plan_[number].matchers.size() + 1);
    const auto position = [&] { return static_cast<RulePriority>(table.matchers.size()); };
    for (const PlanMatcher& planned : plan_[number].matchers) {
      Matcher matcher{mask_of(planned), position(), {}};
      matcher.rules.reserve(planned.entries.size());
      for (std::size_t i = 0; i < planned.entries.size(); ++i) {
        const PlanEntry& entry = planned.entries[i];
        FlowRule rule;
        if (entry.unit == kNowhere) {
          rule.actions = {Action::jump(id_of(entry.table))};
        } else {
          const FlowRule& given = rules_.rules[units_.rule[entry.unit]];
          rule.actions = given.actions;
          rule.from = given.from;
        }
        rule.match = columns.unpack(planned.values[i], planned.mask.data());
        for (std::size_t field = 0; field < kPortFields; ++field) {
          if (planned.as_range[field]) set_range(rule.match, field, entry.spans[field]);
        }
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

  [[nodiscard]] Mask mask_of(const PlanMatcher& planned) const {
    return matcher_mask(planned, units_.problem->columns);
  }

  /// Numbers of a slot are the highest bits of its field.
  void set_range(Match& match, std::size_t field, const Span& span) const {
    const MatchField ports = kPorts[field];
    const auto shift = static_cast<unsigned>(info(ports).width_bits - units_.slot[field].count);
    const std::uint32_t below = (1U << shift) - 1;
    match.set_range(ports, span.low << shift, span.high << shift | below);
  }

  const RuleSet& rules_;
  const Units& units_;
  const Plan& plan_;
  const TableOptions& options_;
  std::vector<std::uint32_t> id_;  ///< by table of the plan
  std::vector<std::uint32_t> order_;
  std::vector<LayoutTable> tables_;
};

std::size_t recipes_of(const Plan& plan, const Columns& columns, const LayoutLimits& limits) {
  std::size_t sum = 0;
  for (const PlanTable& table : plan) {
    for (const PlanMatcher& matcher : table.matchers) {
      sum += limits.recipes(matcher_mask(matcher, columns));
    }
    if (table.exit != kNowhere) sum += limits.recipes(Mask{});
  }
  return sum;
}

}  // namespace

TableSearch::TableSearch(const RuleSet& rules, const Problem& problem, const Rows& packets,
                         const std::vector<double>& packet_weight,
                         std::vector<std::uint32_t> decider, std::size_t most_ranges)
    : rules_(rules),
      packets_(packets),
      packet_weight_(packet_weight),
      units_(problem, most_ranges),
      decider_(std::move(decider)) {
  for (std::uint32_t& row : decider_) {
    if (row != kNoRow) row = units_.unit_of_row[row];
  }
}

LaidOut TableSearch::lay_out(const TableOptions& options) {
  constexpr double kDearer = 2.5;
  const bool few_recipes =
      options.limits != nullptr && options.limits->most_recipes != LayoutLimits::kNoLimit;
  const int rounds = few_recipes ? 16 : 8;
  constexpr std::size_t kMostJumps = 60;  // devices and core's look_up follow 64
  const double least_price =
      std::max(options.least_price, 1.0 / static_cast<double>(options.most_rules));
  double price = least_price;
  if (conflicts_.most != options.most_conflicts) {
    conflicts_ = conflicts_of(units_, units_.rows, options.most_conflicts);
  }
  // A plan with filters and one without, each at the first price at which it fits.
  Plan filtered;
  Plan without;
  double first_price = 0.0;
  const auto grow = [&](const GrowOptions& limits) {
    return grow_plan(units_, conflicts_, packets_, packet_weight_, decider_, limits);
  };
  const auto fits = [&](Plan& plan) {
    const std::size_t entries = entries_of(plan);
    if (plan.empty() || entries > options.most_rules || plan.size() > options.most_tables + 1) {
      return false;
    }
    if (!few_recipes) inline_exits(plan, options.most_rules - entries);  // copies matchers
    if (few_recipes &&
        recipes_of(plan, units_.problem->columns, *options.limits) > options.limits->most_recipes) {
      return false;
    }
    if (longest_way(plan) > kMostJumps) return false;
    if (first_price == 0.0) first_price = price;
    return true;
  };
  for (int round = 0; round < rounds && (filtered.empty() || without.empty());
       ++round, price *= kDearer) {
    GrowOptions limits{price, options.most_tables, options.most_rules, kMostJumps};
    limits.chains_as_made = options.chains_as_made;
    if (filtered.empty()) {
      limits.without_too = without.empty();
      Grown grown = grow(limits);
      const bool complete = !grown.plan.empty();
      if (fits(grown.plan)) filtered = std::move(grown.plan);
      if (!grown.filtered && !filtered.empty()) break;  // without filters it is the same
      if (without.empty() && fits(grown.without)) without = std::move(grown.without);
      if (complete || !grown.filtered) continue;
    }
    if (!without.empty()) continue;
    limits.filters = false;
    if (Plan plan = grow(limits).plan; fits(plan)) without = std::move(plan);
  }
  // Below the first price that fits there may be room for more, or a price between it and one that does not fit.
  const bool with =
      without.empty() || (!filtered.empty() && tried_in(filtered) <= tried_in(without));
  Plan& best = with ? filtered : without;
  if (!best.empty() && (first_price > least_price || options.least_price == 0.0)) {
    const double lower = first_price > least_price ? std::sqrt(kDearer) : kDearer;
    GrowOptions limits{first_price / lower, options.most_tables, options.most_rules, kMostJumps};
    limits.chains_as_made = options.chains_as_made;
    limits.filters = with;
    Plan plan = grow(limits).plan;
    if (fits(plan) && tried_in(plan) < tried_in(best)) best = std::move(plan);
  }
  if (filtered.empty()) {
    filtered = grow({price, 0, static_cast<std::size_t>(-1), 0, false}).plan;
  }
  LaidOut result{Writer(rules_, units_, filtered, options).run(), {}, first_price};
  filtered = {};
  if (!without.empty()) result.without = Writer(rules_, units_, without, options).run();
  return result;
}

}  // namespace greynic::optimizer::chained
