#include "src/chained/chained.h"

#include <algorithm>
#include <map>

#include "src/chained/plan_search.h"
#include "src/ranged/matchers.h"

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
    for (const PlanMatcher& given : plan_[number].matchers) {
      const PlanMatcher planned = ranged::with_masks(units_, given);
      Matcher matcher{matcher_mask(planned, columns), position(), {}};
      matcher.rules.reserve(planned.entries.size());
      for (std::size_t i = 0; i < planned.entries.size(); ++i) {
        const PlanEntry& entry = planned.entries[i];
        FlowRule rule;
        if (entry.unit == kNowhere) {
          rule.actions = {Action::jump(id_of(entry.table))};
        } else {
          const FlowRule& of_rules = rules_.rules[units_.rule[entry.unit]];
          rule.actions = of_rules.actions;
          rule.from = of_rules.from;
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

  /// Numbers of a slot are the highest bits of its field.
  void set_range(Match& match, std::size_t field, const ranged::Span& span) const {
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

std::size_t recipes_of(const Plan& plan, const Units& units, const LayoutLimits& limits) {
  std::size_t sum = 0;
  for (std::size_t number = 0; number < plan.size(); ++number) {
    const PlanTable& table = plan[number];
    for (const PlanMatcher& matcher : table.matchers) {
      sum +=
          limits.recipes(matcher_mask(ranged::with_masks(units, matcher), units.problem->columns));
    }
    if (table.exit != kNowhere) sum += limits.recipes(Mask{});
  }
  return sum;
}

}  // namespace

TableSearch::TableSearch(const RuleSet& rules, const Problem& problem, const Rows& packets,
                         const std::vector<double>& packet_weight,
                         std::vector<std::uint32_t> decider, std::size_t most_ranges, bool codes)
    : rules_(rules),
      packet_weight_(packet_weight),
      units_(problem, most_ranges, codes),
      packets_(units_.coded(packets)),
      decider_(std::move(decider)) {
  for (std::uint32_t& row : decider_) {
    if (row != kNoRow) row = units_.unit_of_row[row];
  }
}

TableAttempt TableSearch::attempt(const TableOptions& options) {
  PlanLimits limits{options.most_rules, options.most_tables, options.least_price};
  limits.chains_as_made = options.chains_as_made;
  limits.uniting = options.uniting;
  limits.filters = options.filters;
  if (options.limits != nullptr && options.limits->most_recipes != LayoutLimits::kNoLimit) {
    limits.prices = 16;
    limits.keeps_to = [this, most = options.limits](const Plan& plan) {
      return recipes_of(plan, units_, *most) <= most->most_recipes;
    };
  }
  auto conflicts =
      std::make_unique<Conflicts>(conflicts_of(units_, units_.rows, options.most_conflicts));
  PlanSearch plans({units_, *conflicts, packets_, packet_weight_, decider_}, std::move(limits));
  return {*this, options, std::move(conflicts), std::move(plans)};
}

LaidOut TableSearch::lay_out(const TableOptions& options) {
  TableAttempt made = attempt(options);
  made.improve();
  made.refine();
  return made.lay_out();
}

TableAttempt::TableAttempt(TableSearch& search, const TableOptions& options,
                           std::unique_ptr<Conflicts> conflicts, PlanSearch plans)
    : search_(&search),
      options_(options),
      conflicts_(std::move(conflicts)),
      plans_(std::move(plans)) {
  plans_.begin();
}

LaidOut TableAttempt::lay_out() {
  const FoundPlans found = plans_.found();
  const auto written = [&](const Plan& plan) {
    return Writer(search_->rules_, search_->units_, plan, options_).run();
  };
  LaidOut result{written(found.best), {}, {}, found.price};
  if (!found.other.empty()) result.other = written(found.other);
  if (const Plan ranges = plans_.best_with_ranges(); !ranges.empty())
    result.ranges = written(ranges);
  return result;
}

}  // namespace greynic::optimizer::chained
