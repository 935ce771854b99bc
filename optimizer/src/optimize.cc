#include "greynic/optimizer/optimize.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <string_view>

#include "ambiguous.h"
#include "greynic/verify/verify.h"
#include "problem.h"
#include "src/counted/walk.h"
#include "src/drafts/draft.h"
#include "src/entering.h"
#include "src/factored/factor.h"
#include "src/fronts/fronts.h"
#include "src/joined/join.h"
#include "src/joined/shortcuts.h"
#include "src/joined/usual.h"
#include "src/scan/proof.h"
#include "src/table_planner.h"
#include "table_cut.h"

namespace greynic::optimizer {
namespace {

/// Are there several tables?
bool is_pipeline(const RuleSet& rules) {
  return std::ranges::any_of(rules.rules, [&](const FlowRule& rule) {
    return rule.table != rules.rules.front().table;
  });
}

/// The packets that come to each input table: from outside, and by the rules' own jumps.
std::map<std::uint32_t, Traffic> traffic_by_table(const RuleSet& rules, const Traffic& traffic) {
  std::map<std::uint32_t, Traffic> by_table;
  if (!is_pipeline(rules)) {  // nothing but this table decides
    const std::uint32_t only = rules.rules.front().table;
    for (const TrafficFlow& flow : traffic.flows) {
      if (flow.table == only) by_table[only].flows.push_back(flow);
    }
    return by_table;
  }
  walk(layout_in_rule_order(rules), traffic, [&](const Step& step) {
    if (step.table == nullptr) return;
    const TrafficFlow& flow = traffic.flows[step.flow];
    by_table[step.table->id].flows.push_back({*step.packet, flow.weight, step.table->id});
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
  auto prediction = model(cost.shares_by_tried);
  if (!prediction) {
    return prediction.error().while_doing(
        fmt::format("predicting for {:.1f} matchers tried", cost.matchers_tried));
  }
  cost.prediction = std::move(*prediction);
  return {};
}

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

/// In pipelines, what most packets do in a table goes in front where that pays, up to `room` rules; not where
/// each table is to be one chain of the rules' masks.
Layout fronted_up_to(std::size_t room, const Traffic& traffic, const OptimizeOptions& options,
                     const Layout& layout) {
  const std::size_t used = layout.rule_count();
  if (options.single_table || !options.limits.cuts_pay || used >= room) return layout;
  Layout fronted = with_fronts(layout, traffic, room - used, options.limits.whole_fields);
  return keeps_to(fronted, options.limits) ? fronted : layout;
}

/// Takes the layout where it is proven as a whole against the rules; else all stays.
void take_if_proven(const RuleSet& rules, Layout layout, std::string_view name,
                    OptimizedLayout& result) {
  if (layout == result.layout) return;
  verify::VerifyOptions bounded;
  bounded.most_regions = 5'000'000;
  const auto verdict = verify::verify(rules, layout, bounded);
  if (!verdict || !verdict->equivalent) {
    if (verdict) {
      result.notes.push_back(
          fmt::format("{} was wrong, and left out; please report the rules", name));
    }
    return;
  }
  result.proof = {layout.tables.size(), verdict->comparisons, verdict->regions};
  result.layout = std::move(layout);
}

enum class Proven : std::uint8_t { kTableByTable, kLater };

/// Each table by itself. Of `drafts`, those of tables that have the same rules and packets are taken; it gets
/// those that were made. What is proven later is no result before that.
Result<OptimizedLayout> lay_out_tables(const RuleSet& rules, const Traffic& traffic,
                                       const OptimizeOptions& options, Proven proven,
                                       Drafts& drafts) {
  OptimizedLayout result;
  Effects effects;
  QuickProver quick(proven == Proven::kLater);
  RuleSet unproven{{}, rules.source};  // where there are several tables
  Layout unproven_layout;
  bool all_unproven = false;
  const LayoutLimits& limits = options.limits;
  RecipeShares recipes(rules, limits);
  std::uint32_t next_table = first_free_table(rules);
  auto arriving = traffic_by_table(rules, traffic);
  const RulesOfTable tables = rules_by_table(rules);
  // Where tables are few, those that more cuts take are missed elsewhere.
  const bool cuts_more = tables.size() > 1 && limits.last_table == LayoutLimits().last_table;
  for (const auto& [id, members] : tables) {
    TableRoom room{id, next_table, 0, 0, limits, cuts_more};
    room.most_tables = limits.last_table < next_table ? 0 : limits.last_table - next_table + 1;
    room.most_rules =
        static_cast<std::size_t>(options.max_growth * static_cast<double>(members.size()));
    room.limits.most_recipes = recipes.left_for(id);
    const bool limited = limits.most_recipes != LayoutLimits::kNoLimit;
    auto known = drafts.find(id);
    if (known == drafts.end() || limited || !known->second.is_for(rules, members, arriving[id]) ||
        !known->second.renumber(next_table, limits.last_table)) {
      known = drafts
                  .insert_or_assign(
                      id, draft_table(rules, members, arriving[id], options, room, effects, quick))
                  .first;
    }
    TableDraft& draft = known->second;
    result.rules_dropped += draft.dropped;
    result.bound.matchers += draft.bound.matchers;
    result.bound.matchers_tried +=
        traffic_share(traffic, arriving[id]) * draft.bound.matchers_tried;
    result.proof.tables += draft.proof.tables;
    result.proof.pairs += draft.proof.pairs;
    result.proof.regions += draft.proof.regions;
    recipes.take(draft.tables);
    if (tables.size() == 1) {  // nobody asks for this draft again
      result.layout.tables = std::move(draft.tables);
      draft.rules = {};
      all_unproven = !draft.proven;
      break;
    }
    if (!draft.proven) {
      unproven.rules.insert(unproven.rules.end(), draft.rules.rules.begin(),
                            draft.rules.rules.end());
      unproven_layout.tables.insert(unproven_layout.tables.end(), draft.tables.begin(),
                                    draft.tables.end());
    }
    for (const LayoutTable& table : draft.tables) {
      next_table = std::max(next_table, table.id + 1);
      result.layout.tables.push_back(table);
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
  if (proven == Proven::kLater) return result;
  const auto shown = all_unproven ? prove_either_way(rules, result.layout, result.proof)
                                  : prove_either_way(unproven, unproven_layout, result.proof);
  if (!shown) return pass_on(shown);
  return result;
}

/// The pipeline with joined tables, fronts included, up to `room` rules; none where no tables are joined and
/// that is `asked`, or where more rules would come out than may.
std::optional<Layout> joined_layout(const RuleSet& rules, const Traffic& traffic,
                                    const OptimizeOptions& options, std::size_t room,
                                    const JoinOptions& joining, bool asked, Drafts& drafts) {
  JoinedRules joined = join_tables(rules, traffic, joining);
  if (joined.joins == 0 && asked) return std::nullopt;
  if (joining.first_added != JoinOptions::kNoTables) {
    ShortcutOptions around;
    around.first_added = joining.first_added;
    around.first_free = first_free_table(joined.rules);
    around.last_table = options.limits.last_table;
    around.most_added = joining.most_added;
    joined.rules = with_shortcuts(joined.rules, traffic, around).rules;
    UsualOptions usual;
    usual.first_added = joining.first_added;
    usual.most_added = joining.most_added;
    joined.rules = with_usual_ways(joined.rules, traffic, usual).rules;
  }
  auto made = lay_out_tables(joined.rules, traffic, options, Proven::kLater, drafts);
  if (made && made->layout.rule_count() > room) {
    OptimizeOptions smaller = options;
    smaller.max_growth =
        std::max(1.0, static_cast<double>(room) / static_cast<double>(joined.rules.rules.size()));
    Drafts anew;
    made = lay_out_tables(joined.rules, traffic, smaller, Proven::kLater, anew);
  }
  if (!made || made->layout.rule_count() > room) return std::nullopt;
  return fronted_up_to(room, traffic, options, made->layout);
}

std::size_t room_for(const RuleSet& rules, const OptimizeOptions& options) {
  return static_cast<std::size_t>(options.max_growth * static_cast<double>(rules.rules.size()));
}

/// The pipeline with its products taken apart, tables joined, and fronts; none where it has no products, or the
/// layout is not proven. What products save is spent on all tables.
std::optional<OptimizedLayout> lay_out_products(const RuleSet& rules, const Traffic& traffic,
                                                const OptimizeOptions& options,
                                                std::vector<std::string>& notes) {
  constexpr double kPrice = 0.3;      // of as many entries as rules, in matchers tried by a packet
  constexpr double kForTables = 0.8;  // of the room that products leave; the rest is for fronts
  FactorOptions factoring;
  factoring.first_free = first_free_table(rules);
  factoring.last_table = options.limits.last_table;
  factoring.whole_fields = options.limits.whole_fields;
  factoring.price = kPrice / static_cast<double>(rules.rules.size());
  factoring.all_weight = 0.0;
  for (const TrafficFlow& flow : traffic.flows) factoring.all_weight += flow.weight;
  const auto arriving = traffic_by_table(rules, traffic);
  const FactoredRules factored = factor_tables(rules, arriving, factoring);
  const std::size_t room = room_for(rules, options);
  const std::size_t used = factored.rules.rules.size();
  if (factored.products == 0 || used >= room) return std::nullopt;
  OptimizeOptions wider = options;
  wider.max_growth =
      std::max(1.0, kForTables * static_cast<double>(room) / static_cast<double>(used));
  JoinOptions joining;
  joining.most_added = (room - used) / 4;
  joining.first_added = factoring.first_free;
  Drafts drafts;
  auto layout = joined_layout(factored.rules, traffic, wider, room, joining, false, drafts);
  if (!layout) return std::nullopt;
  OptimizedLayout made;
  take_if_proven(rules, std::move(*layout), "a product", made);
  if (made.layout.tables.empty()) {
    notes = std::move(made.notes);
    return std::nullopt;
  }
  Effects effects;
  for (const auto& [id, members] : rules_by_table(rules)) {
    const auto packets = arriving.find(id);
    const Traffic none;
    const Traffic& here = packets == arriving.end() ? none : packets->second;
    const UndividedTable table = undivided(rules, members, here, effects);
    made.rules_dropped += table.dropped;
    made.bound.matchers += table.bound.matchers;
    made.bound.matchers_tried += traffic_share(traffic, here) * table.bound.matchers_tried;
  }
  return made;
}

/// Table by table, or with joined tables.
Result<OptimizedLayout> lay_out(const RuleSet& rules, const Traffic& traffic,
                                const OptimizeOptions& options) {
  const bool several = is_pipeline(rules);
  const bool joins =
      several && options.join_tables && !options.single_table && options.limits.cuts_pay;
  std::vector<std::string> notes;
  if (joins && options.limits.shared_tables) {
    if (auto made = lay_out_products(rules, traffic, options, notes)) return std::move(*made);
  }
  Drafts drafts;
  auto made = lay_out_tables(rules, traffic, options, Proven::kTableByTable, drafts);
  if (!made || !several) return made;
  OptimizedLayout& result = *made;
  result.notes.insert(result.notes.end(), notes.begin(), notes.end());
  const std::size_t room = room_for(rules, options);
  Layout apart = fronted_up_to(room, traffic, options, result.layout);
  std::optional<Layout> joined;
  if (joins) {
    JoinOptions joining;
    joining.most_added = (room - rules.rules.size()) / 2;
    joined = joined_layout(rules, traffic, options, room, joining, true, drafts);
  }
  // The cheapest that is proven.
  const bool joined_is_cheaper =
      joined && cost_of(*joined, traffic).matchers_tried < cost_of(apart, traffic).matchers_tried;
  const Layout without = result.layout;
  if (joined_is_cheaper) take_if_proven(rules, std::move(*joined), "a joined table", result);
  if (result.layout == without) take_if_proven(rules, std::move(apart), "a front", result);
  return made;
}

}  // namespace

CostModel mask_cost(const model::Model& model, Configuration at, Hop hop) {
  return [&model, at = std::move(at), hop](const model::MaskShares& tried) {
    return model.predict_uneven(at, hop, tried);
  };
}

Result<OptimizedLayout> optimize(const RuleSet& rules, const Traffic& traffic,
                                 const OptimizeOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  if (const auto checked = check(rules, traffic, options); !checked) return pass_on(checked);
  auto made = lay_out(rules, traffic, options);
  if (!made) return made;
  OptimizedLayout& result = *made;
  auto notes = ambiguous_pairs(rules);
  result.notes.insert(result.notes.begin(), std::make_move_iterator(notes.begin()),
                      std::make_move_iterator(notes.end()));
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
