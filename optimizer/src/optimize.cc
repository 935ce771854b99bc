#include "greynic/optimizer/optimize.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "ambiguous.h"
#include "greynic/verify/verify.h"
#include "problem.h"
#include "src/counted/walk.h"
#include "src/entering.h"
#include "src/fronts/fronts.h"
#include "src/scan/proof.h"
#include "src/table_planner.h"
#include "table_cut.h"

namespace greynic::optimizer {
namespace {

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

/// The rows to lay out with ranges. Those that a reader wrote out of one line stay together: all are
/// kept when one of them is.
std::vector<std::uint32_t> whole_lines(const RuleSet& rules,
                                       const std::vector<std::uint32_t>& members,
                                       const std::vector<bool>& redundant) {
  std::vector<std::uint32_t> kept;
  for (std::uint32_t begin = 0; begin < members.size();) {
    const FlowRule& first = rules.rules[members[begin]];
    std::uint32_t end = begin + 1;
    bool needed = !redundant[begin];
    for (; end < members.size() && !first.from.empty(); ++end) {
      const FlowRule& rule = rules.rules[members[end]];
      if (rule.from != first.from || rule.actions != first.actions) break;
      needed = needed || !redundant[end];
    }
    for (; begin < end; ++begin) {
      if (needed) kept.push_back(begin);
    }
  }
  return kept;
}

/// Recipes for each input table: what the tables before leave, but for one matcher for each mask of
/// those that are still to come.
class RecipeShares {
 public:
  RecipeShares(const RuleSet& rules, const LayoutLimits& limits)
      : limits_(limits), left_(limits.most_recipes) {
    if (left_ == LayoutLimits::kNoLimit) return;
    std::map<std::uint32_t, std::set<Mask>> masks;
    for (const FlowRule& rule : rules.rules) masks[rule.table].insert(rule.match.mask());
    for (const auto& [table, held] : masks) {
      for (const Mask& mask : held) least_[table] += limits.recipes(mask);
    }
  }
  std::size_t left_for(std::uint32_t table) {
    if (left_ == LayoutLimits::kNoLimit) return left_;
    least_.erase(table);
    std::size_t others = 0;
    for (const auto& entry : least_) others += entry.second;
    return left_ - std::min(left_, others);
  }
  void take(const std::vector<LayoutTable>& tables) {
    if (left_ == LayoutLimits::kNoLimit) return;
    left_ -= std::min(left_, recipes_of(tables, limits_));
  }

 private:
  const LayoutLimits& limits_;
  std::size_t left_;
  std::map<std::uint32_t, std::size_t> least_;  ///< by table
};

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
    if (has_ranges(layout)) options.most_comparisons = std::min(options.most_comparisons, kRanges);
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
  static constexpr std::uint64_t kRanges = 200'000'000;  ///< masks are there, should this not do
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
/// miss try all masks, which is no less. The trace that weigh() adds is taken off again. A search for
/// a chain knows more of its matchers than the number of masks: `least_chain`.
void add_bound(const Problem& problem, double share, std::size_t least_chain, ChainBound& bound) {
  std::vector<std::uint32_t> rows(problem.rows.size());
  std::iota(rows.begin(), rows.end(), 0U);
  const std::size_t masks = groups_by_mask(problem, rows).size();
  bound.matchers += std::max(masks, least_chain);
  bound.matchers_tried +=
      share * std::max(0.0, hoped_cost(problem, 0.0) - kWeightTrace * static_cast<double>(masks));
}

/// In pipelines, what most packets do in a table goes in front where that pays, with what is left of
/// the growth; not where each table is to be one chain of the rules' masks. Proven as a whole; where
/// that does not work out, the layout stays.
void add_fronts(const RuleSet& rules, const Traffic& traffic, const OptimizeOptions& options,
                OptimizedLayout& result) {
  const auto room =
      static_cast<std::size_t>(options.max_growth * static_cast<double>(rules.rules.size()));
  const std::size_t used = result.layout.rule_count();
  if (options.single_table || !options.limits.cuts_pay || used >= room) return;
  Layout fronted = with_fronts(result.layout, traffic, room - used);
  if (fronted == result.layout || !keeps_to(fronted, options.limits)) return;
  verify::VerifyOptions bounded;
  bounded.most_regions = 5'000'000;
  const auto verdict = verify::verify(rules, fronted, bounded);
  if (!verdict || !verdict->equivalent) {
    if (verdict)
      result.notes.emplace_back("a front was wrong, and left out; please report the rules");
    return;
  }
  result.proof = {fronted.tables.size(), verdict->comparisons, verdict->regions};
  result.layout = std::move(fronted);
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
  const LayoutLimits& limits = options.limits;
  RecipeShares recipes(rules, limits);
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
    TableRoom room{id, next_table, 0, 0, limits};
    room.most_tables = limits.last_table < next_table ? 0 : limits.last_table - next_table + 1;
    room.most_rules = std::max(
        kept.size(),
        static_cast<std::size_t>(options.max_growth * static_cast<double>(members.size())));
    room.limits.most_recipes = recipes.left_for(id);
    const Problem deciding = part_of(problem, kept);
    const RuleSet rules_here = rules_of(rules, members);
    TablePlanner planner(rules, deciding, traffic_here, arriving_here,
                         among_kept(hits, redundant.size(), kept, deciding, traffic_here.packets),
                         room);
    std::optional<Problem> whole;
    if (limits.most_ranges > 0) {
      const auto lines = whole_lines(rules, members, redundant);
      whole = part_of(problem, lines);
      planner.compare_ranges(
          *whole, among_kept(hits, redundant.size(), lines, *whole, traffic_here.packets));
    }
    Costed made;
    bool proven = false;
    const auto prove_made = [&] {
      Layout layout{std::move(made.tables)};
      proven = quick.proves(rules_here, layout, result.proof);
      made.tables = std::move(layout.tables);
    };
    const bool cuts = !options.single_table && limits.cuts_pay;
    std::vector<Costed> joined;
    if (cuts && limits.shared_tables) joined = planner.joined();
    for (Costed& candidate : joined) {
      if (proven || !planner.suffices(candidate)) continue;
      made = std::move(candidate);
      prove_made();
    }
    bool drops = true;
    if (!proven) {
      Costed other = planner.without_way_back(!cuts);
      // A rule that others behind it could replace answers before they are tried.
      Costed given = kept.size() < members.size()
                         ? planner.costed(layout_in_rule_order(rules_here).tables)
                         : Costed();
      if (given.cost < other.cost) {
        other = std::move(given);
        drops = false;
      }
      for (Costed& candidate : joined) {
        if (proven || candidate.tables.empty() || !(candidate.cost < other.cost)) continue;
        made = std::move(candidate);
        prove_made();
      }
      if (!proven) made = std::move(other);
      drops |= proven;
    }
    if (drops) result.rules_dropped += redundant.size() - kept.size();
    add_bound(deciding, traffic_share(traffic, arriving_here), planner.least_chain(), result.bound);
    std::vector<LayoutTable>& tables = made.tables;
    recipes.take(tables);
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
  if (const auto kept = keeps_to(result.layout, limits); !kept) {
    return kept.error().while_doing("laying out " + std::to_string(rules.rules.size()) +
                                    " rules for a device that takes " + to_string(limits));
  }
  if (const auto proven = prove_either_way(unproven, unproven_layout, result.proof); !proven) {
    return pass_on(proven);
  }

  if (in_order.tables.size() > 1) add_fronts(rules, traffic, options, result);
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
