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
#include "src/counted/walk.h"
#include "table_cut.h"

namespace greynic::optimizer {
namespace {

/// The packets that come to one table, packed for it.
struct Entering {
  Rows packets;
  std::vector<double> weight;
};

Entering entering(const Traffic& traffic, const Columns& columns) {
  Entering result{Rows(columns.words()), {}};
  for (const TrafficFlow& flow : traffic.flows) {
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
/// A trace of equal weight keeps rules that the traffic misses from being thrown about. Returns the
/// row that decides each packet.
std::vector<std::uint32_t> weigh(Problem& problem, const Entering& traffic) {
  double all = 0.0;
  auto hits = first_matches(problem.rows, traffic.packets);
  for (std::size_t i = 0; i < hits.size(); ++i) {
    if (hits[i] == kNoRow) continue;
    problem.weight[hits[i]] += traffic.weight[i];
    all += traffic.weight[i];
  }
  const double part = 1.0 / static_cast<double>(problem.weight.size());
  for (double& weight : problem.weight) {
    weight = all > 0.0 ? (weight / all + kTrace * part) / (1.0 + kTrace) : part;
  }
  return hits;
}

/// The row that decides each packet once only the rows `kept` are there, as numbered in `deciding`.
std::vector<std::uint32_t> among_kept(std::vector<std::uint32_t> hits, std::size_t rows,
                                      const std::vector<std::uint32_t>& kept,
                                      const Problem& deciding, const Rows& packets) {
  std::vector<std::uint32_t> number(rows, kNoRow);
  for (std::uint32_t i = 0; i < kept.size(); ++i) number[kept[i]] = i;
  Rows again(packets.words());
  std::vector<std::size_t> asked;
  for (std::size_t i = 0; i < hits.size(); ++i) {
    if (hits[i] == kNoRow) continue;
    hits[i] = number[hits[i]];
    if (hits[i] != kNoRow) continue;
    again.add(packets[i]);
    asked.push_back(i);
  }
  const auto found = first_matches(deciding.rows, again);
  for (std::size_t i = 0; i < asked.size(); ++i) hits[asked[i]] = found[i];
  return hits;
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

RuleSet rules_of(const RuleSet& rules, const std::vector<std::uint32_t>& members) {
  RuleSet part{{}, rules.source};
  for (const std::uint32_t index : members) part.rules.push_back(rules.rules[index]);
  return part;
}

/// Layout tables, and the mean of matchers tried in them.
struct Costed {
  std::vector<LayoutTable> tables;
  double cost = 0.0;
  std::size_t p99 = 0;  ///< 99 % of the packets try at most so many
};

/// One input table in all the ways there are; the cheapest under its traffic is taken.
class TablePlanner {
 public:
  TablePlanner(const RuleSet& rules, const Problem& problem, const Entering& entering,
               const Traffic& traffic, std::vector<std::uint32_t> decider)
      : rules_(rules),
        problem_(problem),
        entering_(entering),
        traffic_(traffic),
        decider_(std::move(decider)) {}

  /// By cuts with a way back. Where some packets try many matchers, rules that much must come before
  /// are what they wait for: these leave the rests when more of that is listed, which elsewhere costs
  /// more copies than it saves.
  Costed joined(chained::TableOptions options) {
    constexpr std::size_t kLong = 64;
    constexpr std::size_t kMore = 3;
    chained::TableSearch search(rules_, problem_, entering_.packets, entering_.weight, decider_);
    Costed best = with_filters_or_without(search, options);
    if (best.p99 <= kLong) return best;
    options.most_conflicts *= kMore;
    Costed again = with_filters_or_without(search, options);
    return again.cost < best.cost ? again : best;
  }

  /// The order given, a tree of cuts without a way back, or a chain.
  Costed without_way_back(const TreeOptions& options) {
    Costed best = costed(layout_in_rule_order(rules_of(rules_, problem_.rule)).tables);
    consider(options, best);
    TreeOptions chain = options;
    chain.single_table = true;
    // A chain cannot do better than if no precedence stood against the weights.
    if (!options.single_table && !(best.cost <= hoped_cost(problem_, missing_weight()))) {
      consider(chain, best);
    }
    return best;
  }

  /// No chain comes near these tables, nor is it worth a search for others: on every set measured,
  /// cuts without a way back saved less.
  [[nodiscard]] bool suffices(const Costed& layout) const {
    return layout.cost < 0.5 * hoped_cost(problem_, 0.0);
  }

 private:
  [[nodiscard]] Costed costed(std::vector<LayoutTable> tables) const {
    Layout layout{std::move(tables)};
    const LayoutCost cost = cost_of(layout, traffic_);
    return {std::move(layout.tables), cost.matchers_tried, cost.matchers_tried_p99};
  }

  [[nodiscard]] Costed with_filters_or_without(chained::TableSearch& search,
                                               chained::TableOptions options) const {
    auto filtered = search.lay_out(options);
    Costed best = costed(std::move(filtered.tables));
    if (!filtered.filtered) return best;
    options.filters = false;
    Costed without = costed(search.lay_out(options).tables);
    return without.cost < best.cost ? without : best;
  }

  void consider(const TreeOptions& options, Costed& best) {
    Costed made =
        costed(build_tree(rules_, problem_, entering_.packets, entering_.weight, options));
    if (made.cost < best.cost) best = std::move(made);
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
  std::vector<std::uint32_t> decider_;  ///< row of the problem by packet
};

/// The packets that come to each input table: from outside, and by the rules' own jumps.
std::map<std::uint32_t, Traffic> traffic_by_table(const Layout& in_order, const Traffic& traffic) {
  std::map<std::uint32_t, Traffic> by_table;
  if (in_order.tables.size() == 1) {  // nothing but this table decides
    const std::uint32_t only = in_order.tables.front().id;
    for (const TrafficFlow& flow : traffic.flows) {
      if (flow.table == only) by_table[only].flows.push_back(flow);
    }
    return by_table;
  }
  walk(in_order, traffic, [&](const Step& step) {
    if (step.table == nullptr) return;
    const TrafficFlow& flow = traffic.flows[step.flow];
    by_table[step.table->id].flows.push_back({flow.packet, flow.weight, step.table->id});
  });
  return by_table;
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
  bool proves(const RuleSet& rules, const Layout& layout, Proof& proof) {
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

/// The packets that come to one table against those that enter: more than 1 when some come by
/// several tables' jumps.
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
  const Layout in_order = layout_in_rule_order(rules);
  auto arriving = traffic_by_table(in_order, traffic);
  for (const auto& [id, members] : rules_by_table(rules)) {
    Problem problem = make_problem(rules, members, effects);
    const Traffic& arriving_here = arriving[id];
    const Entering traffic_here = entering(arriving_here, problem.columns);
    const std::vector<std::uint32_t> hits = weigh(problem, traffic_here);
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
    const Problem deciding = part_of(problem, kept);
    const RuleSet rules_here = rules_of(rules, members);
    TablePlanner planner(rules, deciding, traffic_here, arriving_here,
                         among_kept(hits, redundant.size(), kept, deciding, traffic_here.packets));
    add_bound(deciding, traffic_share(traffic, arriving_here), result.bound);
    Costed made;
    bool proven = false;
    const auto prove_made = [&] {
      Layout layout{std::move(made.tables)};
      proven = quick.proves(rules_here, layout, result.proof);
      made.tables = std::move(layout.tables);
    };
    if (!options.single_table) {
      made = planner.joined({id, next_table, tree.most_rules, tree.most_tables});
      if (planner.suffices(made)) prove_made();
    }
    if (!proven) {
      Costed other = planner.without_way_back(tree);
      if (!made.tables.empty() && !planner.suffices(made) && made.cost < other.cost) prove_made();
      if (!proven) made = std::move(other);
    }
    std::vector<LayoutTable>& tables = made.tables;
    if (!proven) {
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

  result.before = cost_of(in_order, traffic);
  result.after = cost_of(result.layout, traffic);
  for (LayoutCost* cost : {&result.before, &result.after}) {
    if (const auto predicted = predict(*cost, options.cost); !predicted) return pass_on(predicted);
  }
  result.rules_given = rules.rules.size();
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace greynic::optimizer
