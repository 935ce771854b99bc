#include "greynic/optimizer/optimize.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "chain.h"
#include "problem.h"
#include "proof.h"

namespace greynic::optimizer {
namespace {

/// The packets that enter at one table, packed for it.
struct Entering {
  Rows packets;
  std::vector<double> weight;
};

Entering entering(const Traffic& traffic, std::uint32_t table, const Columns& columns) {
  Entering result{Rows(columns.words()), {}};
  for (const TrafficFlow& flow : traffic.flows) {
    if (flow.table != table) continue;
    columns.pack(flow.packet, result.packets.add());
    result.weight.push_back(flow.weight);
  }
  return result;
}

/// Sets the weight of each row to the traffic that it decides; where there is none, to equal parts.
/// A trace of equal weight keeps rules that the traffic misses from being thrown about.
void weigh(Problem& problem, const Entering& traffic) {
  constexpr double kTrace = 1e-6;
  double all = 0.0;
  const auto hits = first_matches(problem.rows, traffic.packets);
  for (std::size_t i = 0; i < hits.size(); ++i) {
    if (hits[i] == kNoRow) continue;
    problem.weight[hits[i]] += traffic.weight[i];
    all += traffic.weight[i];
  }
  const double part = 1.0 / static_cast<double>(problem.weight.size());
  for (double& weight : problem.weight) {
    weight = all > 0.0 ? (weight / all + kTrace * part) / (1.0 + kTrace) : part;
  }
}

Matcher matcher_of(const Problem& problem, const RuleSet& rules, const Group& group,
                   std::size_t position) {
  Matcher matcher{problem.columns.unpack_mask(problem.rows.mask[group.rows.front()]),
                  static_cast<RulePriority>(position),
                  {}};
  for (const std::uint32_t row : group.rows) {
    FlowRule rule = rules.rules[problem.rule[row]];
    rule.priority = static_cast<RulePriority>(position);
    rule.weight = problem.weight[row];
    matcher.rules.push_back(std::move(rule));
  }
  return matcher;
}

Result<void> check(const RuleSet& rules, const Traffic& traffic, const OptimizeOptions& options) {
  if (rules.rules.empty()) return fail(ErrorCode::kBadInput, "there are no rules to lay out");
  for (const TrafficFlow& flow : traffic.flows) {
    if (!(flow.weight > 0.0) || !std::isfinite(flow.weight)) {
      return fail(ErrorCode::kBadInput, "every weight of the traffic must be positive and finite");
    }
  }
  if (!(options.max_growth >= 1.0) || !std::isfinite(options.max_growth)) {
    return fail(ErrorCode::kBadInput, "the growth of the rules must be at least 1");
  }
  return {};
}

Result<void> predict(LayoutCost& cost, const CostModel& model) {
  if (!model) return {};
  auto prediction = model(cost.matchers_tried);
  if (!prediction) {
    return prediction.error().while_doing(
        fmt::format("predicting for {:.1f} matchers tried", cost.matchers_tried));
  }
  cost.prediction = std::move(*prediction);
  return {};
}

}  // namespace

CostModel mask_cost(const model::Model& model, Configuration at, Hop hop) {
  return [&model, at = std::move(at), hop](double matchers_tried) {
    Configuration configuration = at;
    configuration.set(mask_factor(hop), matchers_tried);
    return model.predict(configuration);
  };
}

Result<OptimizedLayout> optimize(const RuleSet& rules, const Traffic& traffic,
                                 const OptimizeOptions& options) {
  if (const auto checked = check(rules, traffic, options); !checked) return pass_on(checked);
  OptimizedLayout result;
  Effects effects;
  for (const auto& [id, members] : rules_by_table(rules)) {
    Problem problem = make_problem(rules, members, effects);
    weigh(problem, entering(traffic, id, problem.columns));
    const std::vector<bool> redundant = redundant_rows(problem);
    std::vector<std::uint32_t> kept;
    for (std::uint32_t row = 0; row < redundant.size(); ++row) {
      if (!redundant[row]) kept.push_back(row);
    }
    result.rules_dropped += redundant.size() - kept.size();
    LayoutTable table{id, {}};
    for (const Group& group : build_chain(problem, kept)) {
      table.matchers.push_back(matcher_of(problem, rules, group, table.matchers.size()));
    }
    result.layout.tables.push_back(std::move(table));
  }
  auto proof = prove(rules, result.layout);
  if (!proof) return pass_on(proof);
  result.proof = *proof;

  result.before = cost_of(plain_layout(rules), traffic);
  result.after = cost_of(result.layout, traffic);
  for (LayoutCost* cost : {&result.before, &result.after}) {
    if (const auto predicted = predict(*cost, options.cost); !predicted) return pass_on(predicted);
  }
  return result;
}

}  // namespace greynic::optimizer
