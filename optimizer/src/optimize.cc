#include "greynic/optimizer/optimize.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include "ambiguous.h"
#include "chained/chained.h"
#include "cut_tree.h"
#include "greynic/verify/verify.h"
#include "problem.h"
#include "proof.h"
#include "table_cut.h"

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
  // As shares of the table's traffic, so that rules get shares for weights.
  double all = 0.0;
  for (const double weight : result.weight) all += weight;
  for (double& weight : result.weight) weight /= all;
  return result;
}

constexpr double kTrace = 1e-6;

/// Sets the weight of each row to the traffic that it decides; where there is none, to equal parts.
/// A trace of equal weight keeps rules that the traffic misses from being thrown about.
void weigh(Problem& problem, const Entering& traffic) {
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

/// The first id that neither a table nor a jump of the input uses.
std::uint32_t first_free_table(const RuleSet& rules) {
  std::uint64_t highest = 0;
  for (const FlowRule& rule : rules.rules) {
    highest = std::max<std::uint64_t>(highest, rule.table);
    for (const Action& action : rule.actions) {
      if (action.kind == ActionKind::kJump) highest = std::max(highest, action.number);
    }
  }
  return static_cast<std::uint32_t>(highest) + 1;
}

/// One input table in all the ways there are; the cheapest under its traffic is taken.
class TablePlanner {
 public:
  TablePlanner(const RuleSet& rules, const Problem& problem, const Entering& entering,
               const Traffic& traffic)
      : rules_(rules), problem_(problem), entering_(entering), traffic_(traffic) {}

  std::vector<LayoutTable> cheapest(const TreeOptions& options) {
    consider(options);
    TreeOptions chain = options;
    chain.single_table = true;
    // A chain cannot do better than if no precedence stood against the weights.
    const double missing = missing_weight();
    if (!options.single_table && !(best_cost_ <= hoped_cost(problem_, missing))) consider(chain);
    return std::move(best_);
  }

  /// No chain comes near these tables, nor is it worth a search for others: on every set measured,
  /// cuts without a way back saved less.
  [[nodiscard]] bool suffices(const std::vector<LayoutTable>& tables) const {
    return cost(tables) < 0.5 * hoped_cost(problem_, 0.0);
  }

  [[nodiscard]] double cost(const std::vector<LayoutTable>& tables) const {
    return cost_of(Layout{tables}, traffic_).matchers_tried;
  }

  /// The layout that changes nothing, should it be the cheapest.
  void consider(std::vector<LayoutTable> tables) {
    const double tried = cost(tables);
    if (best_.empty() || tried < best_cost_) {
      best_ = std::move(tables);
      best_cost_ = tried;
    }
  }

 private:
  void consider(const TreeOptions& options) {
    consider(build_tree(rules_, problem_, entering_.packets, entering_.weight, options));
  }

  [[nodiscard]] double missing_weight() const {
    double all = 0.0;
    for (const double weight : problem_.weight) all += weight;
    return std::max(0.0, 1.0 - all);
  }

  const RuleSet& rules_;
  const Problem& problem_;
  const Entering& entering_;
  const Traffic& traffic_;
  std::vector<LayoutTable> best_;
  double best_cost_ = 0.0;
};

/// The part of the traffic that enters at one table.
Traffic traffic_of(const Traffic& traffic, std::uint32_t table) {
  Traffic part;
  for (const TrafficFlow& flow : traffic.flows) {
    if (flow.table == table) part.flows.push_back(flow);
  }
  return part;
}

RuleSet rules_of(const RuleSet& rules, const std::vector<std::uint32_t>& members) {
  RuleSet part{{}, rules.source};
  for (const std::uint32_t index : members) part.rules.push_back(rules.rules[index]);
  return part;
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

/// Proves layouts of single tables by the verifier, until all of them together used up the
/// comparisons: a count, so that the same input gives the same layout on every machine.
class QuickProver {
 public:
  bool proves(const RuleSet& rules, const std::vector<LayoutTable>& tables, Proof& proof) {
    const Layout layout{tables};
    verify::VerifyOptions options;
    options.quick = true;
    options.most_comparisons = std::min(options.most_comparisons, left_);
    const auto verdict = verify::verify(rules, layout, options);
    if (!verdict) {
      left_ -= options.most_comparisons;
      return false;
    }
    left_ -= std::min(left_, verdict->comparisons);
    if (!verdict->equivalent) {
      ++refuted_;
      return false;
    }
    proof.tables += layout.tables.size();
    proof.pairs += verdict->comparisons;
    proof.regions += verdict->regions;
    return true;
  }
  /// Layouts that were wrong: faults of the search, which nobody should have to take on trust.
  [[nodiscard]] std::size_t refuted() const { return refuted_; }

 private:
  std::uint64_t left_ = 1'000'000'000;
  std::size_t refuted_ = 0;
};

/// The overlap scan proves chains and cuts without a way back, and is quick. It may refuse a layout
/// that is right, where only several rules together take the packets that it asks for: then the
/// verifier decides.
Result<void> prove_either_way(const RuleSet& rules, const Layout& layout, Proof& proof) {
  if (const auto scanned = prove(rules, layout)) {
    proof.tables += scanned->tables;
    proof.pairs += scanned->pairs;
    return {};
  }
  const auto verdict = verify::verify(rules, layout);
  if (!verdict) return verdict.error().while_doing("proving the layout");
  if (!verdict->equivalent) {
    return fail(ErrorCode::kInternal,
                fmt::format("the layout is wrong for the packet {}; please report the rules",
                            to_string(verdict->counterexample->packet)));
  }
  proof.tables += layout.tables.size();
  proof.pairs += verdict->comparisons;
  proof.regions += verdict->regions;
  return {};
}

/// The part of all packets that enters at one table.
double traffic_share(const Traffic& all, const Traffic& part) {
  const auto weight = [](const Traffic& traffic) {
    double sum = 0.0;
    for (const TrafficFlow& flow : traffic.flows) sum += flow.weight;
    return sum;
  };
  return all.flows.empty() ? 0.0 : weight(part) / weight(all);
}

/// Masks of the rules, and their mean position if the weights alone set the order. Packets that
/// miss try all masks, which is no less. The trace that weigh() adds is taken off again.
void add_bound(const Problem& problem, double share, ChainBound& bound) {
  std::vector<std::uint32_t> rows(problem.rows.size());
  std::iota(rows.begin(), rows.end(), 0U);
  const std::size_t masks = groups_by_mask(problem, rows).size();
  bound.matchers += masks;
  bound.matchers_tried +=
      share * std::max(0.0, hoped_cost(problem, 0.0) - kTrace * static_cast<double>(masks));
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
  const auto start = std::chrono::steady_clock::now();
  if (const auto checked = check(rules, traffic, options); !checked) return pass_on(checked);
  OptimizedLayout result;
  result.notes = ambiguous_pairs(rules);
  Effects effects;
  QuickProver quick;
  RuleSet unproven{{}, rules.source};
  Layout unproven_layout;
  std::uint32_t next_table = first_free_table(rules);
  for (const auto& [id, members] : rules_by_table(rules)) {
    Problem problem = make_problem(rules, members, effects);
    const Entering traffic_here = entering(traffic, id, problem.columns);
    weigh(problem, traffic_here);
    const std::vector<bool> redundant = redundant_rows(problem);
    std::vector<std::uint32_t> kept;
    for (std::uint32_t row = 0; row < redundant.size(); ++row) {
      if (!redundant[row]) kept.push_back(row);
    }
    result.rules_dropped += redundant.size() - kept.size();
    TreeOptions tree{id, next_table, 0, 0, options.single_table};
    tree.most_tables = options.last_table < next_table ? 0 : options.last_table - next_table + 1;
    tree.most_rules = std::max(
        kept.size(),
        static_cast<std::size_t>(options.max_growth * static_cast<double>(members.size())));
    const Traffic entering_here = traffic_of(traffic, id);
    const Problem deciding = part_of(problem, kept);
    const RuleSet rules_here = rules_of(rules, members);
    TablePlanner planner(rules, deciding, traffic_here, entering_here);
    planner.consider(layout_in_rule_order(rules_of(rules, deciding.rule)).tables);
    add_bound(deciding, traffic_share(traffic, entering_here), result.bound);
    std::vector<LayoutTable> joined;
    for (const bool filters : {true, false}) {
      if (options.single_table) break;
      auto made = chained::lay_out(rules, deciding, traffic_here.packets, traffic_here.weight,
                                   {id, next_table, tree.most_rules, tree.most_tables, filters});
      if (joined.empty() || planner.cost(made) < planner.cost(joined)) joined = std::move(made);
    }
    std::vector<LayoutTable> tables;
    bool proven = false;
    if (!joined.empty() && planner.suffices(joined)) {
      proven = quick.proves(rules_here, joined, result.proof);
    }
    if (!proven) {
      tables = planner.cheapest(tree);
      proven = !joined.empty() && !planner.suffices(joined) &&
               planner.cost(joined) < planner.cost(tables) &&
               quick.proves(rules_here, joined, result.proof);
    }
    if (proven) {
      tables = std::move(joined);
    } else {
      unproven.rules.insert(unproven.rules.end(), rules_here.rules.begin(), rules_here.rules.end());
      unproven_layout.tables.insert(unproven_layout.tables.end(), tables.begin(), tables.end());
    }
    for (LayoutTable& table : tables) {
      next_table = std::max(next_table, table.id + 1);
      result.layout.tables.push_back(std::move(table));
    }
  }
  if (quick.refuted() > 0) {
    result.notes.push_back(fmt::format(
        "{} tables cut with a way back were wrong, and left out; please report the rules",
        quick.refuted()));
  }
  if (const auto proven = prove_either_way(unproven, unproven_layout, result.proof); !proven) {
    return pass_on(proven);
  }

  result.before = cost_of(layout_in_rule_order(rules), traffic);
  result.after = cost_of(result.layout, traffic);
  for (LayoutCost* cost : {&result.before, &result.after}) {
    if (const auto predicted = predict(*cost, options.cost); !predicted) return pass_on(predicted);
  }
  result.rules_given = rules.rules.size();
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace greynic::optimizer
