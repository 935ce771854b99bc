#include "greynic/optimizer/for_model.h"

#include <algorithm>
#include <chrono>
#include <set>

#include "greynic/optimizer/split.h"
#include "src/ambiguous.h"
#include "src/counted/walk.h"
#include "src/recipes/held.h"
#include "src/recipes/tagged.h"
#include "src/split/prove.h"

namespace greynic::optimizer {
namespace {

constexpr std::uint64_t kAway = std::uint64_t{1} << 32;  ///< beyond all tables

/// The layout as far as recipes go; what would be tried next goes to a table that is not there.
Layout held_part(const Layout& layout, const LayoutLimits& limits) {
  Layout held;
  std::size_t recipes = 0;
  for (const LayoutTable& table : layout.tables) {
    if (table.software) continue;
    LayoutTable part{table.id, {}};
    for (const Matcher& matcher : table.matchers) {
      const std::size_t own = limits.recipes(matcher.mask);
      if (own > limits.most_chained || recipes + own > limits.most_recipes) {
        FlowRule rest;
        rest.table = table.id;
        rest.actions = {Action::jump(kAway)};
        part.matchers.push_back({{}, static_cast<RulePriority>(part.matchers.size()), {rest}});
        break;
      }
      recipes += own;
      part.matchers.push_back(matcher);
    }
    held.tables.push_back(std::move(part));
  }
  return held;
}

/// The rules of one table, of which hardware holds what is chosen.
class WithinRecipes {
 public:
  /// What hardware does not hold jumps to table `slow`.
  WithinRecipes(const RuleSet& rules, const Traffic& traffic, const OptimizeOptions& options,
                std::uint32_t slow)
      : rules_(rules),
        traffic_(traffic),
        options_(options),
        id_(rules.rules.front().table),
        slow_(slow) {
    Effects effects;
    Problem all = make_problem(rules, rules_by_table(rules).at(id_), effects);
    packets_.emplace(entering(traffic, all.columns));
    auto hits = weigh(all, *packets_);
    const std::vector<bool> redundant = redundant_rows(all);
    std::vector<std::uint32_t> kept;
    for (std::uint32_t row = 0; row < redundant.size(); ++row) {
      if (!redundant[row]) kept.push_back(row);
    }
    problem_.emplace(part_of(all, kept));
    decider_ = among_kept(std::move(hits), redundant.size(), kept, *problem_, packets_->packets);
    dropped_ = redundant.size() - kept.size();
  }

  /// The hardware's tables, with fewer and fewer masks, until the order among them takes no more
  /// recipes than there are.
  Result<OptimizedLayout> lay_out() const {
    std::size_t most_masks = problem_->rows.size() + 1;
    while (true) {
      const recipes::Held held =
          recipes::choose_held(*problem_, *packets_, decider_, options_.limits, 1, most_masks);
      OptimizeOptions search = options_;
      search.cost = {};
      search.limits.most_ranges = 0;  // entries are parts of rules
      auto made = optimize(hardware_rules(held), traffic_, search);
      if (made) return made;
      if (made.error().code != ErrorCode::kTooBig || held.masks.empty()) return made;
      most_masks = held.masks.size() - 1;
    }
  }

  [[nodiscard]] std::size_t dropped() const { return dropped_; }

 private:
  [[nodiscard]] RuleSet hardware_rules(const recipes::Held& held) const {
    RuleSet made{{}, rules_.source};
    std::vector<recipes::Cut> cuts = held.cuts;
    std::stable_sort(cuts.begin(), cuts.end(),
                     [](const auto& a, const auto& b) { return a.row < b.row; });
    auto cut = cuts.begin();
    const Ternaries& t = problem_->rows;
    for (std::uint32_t row = 0; row < t.size(); ++row) {
      for (; cut != cuts.end() && cut->row == row; ++cut) {
        made.rules.push_back(entry(packets_->packets[cut->packet], held.masks[cut->mask], row));
      }
      if (std::binary_search(held.rows.begin(), held.rows.end(), row)) {
        made.rules.push_back(entry(t.value[row], {t.mask[row], t.mask[row] + t.words()}, row));
      }
    }
    FlowRule rest;
    rest.table = id_;
    rest.actions = {Action::jump(slow_)};
    made.rules.push_back(std::move(rest));
    for (std::size_t i = 0; i < made.rules.size(); ++i) {
      made.rules[i].priority = static_cast<RulePriority>(i);
    }
    return made;
  }

  [[nodiscard]] FlowRule entry(const Word* value, const std::vector<Word>& mask,
                               std::uint32_t row) const {
    std::vector<Word> cut(mask.size());
    for (std::size_t w = 0; w < mask.size(); ++w) cut[w] = value[w] & mask[w];
    const FlowRule& rule = rules_.rules[problem_->rule[row]];
    FlowRule made;
    made.match = problem_->columns.unpack(cut.data(), mask.data());
    made.table = id_;
    made.actions = rule.actions;
    made.from = rule.from;
    return made;
  }

  const RuleSet& rules_;
  const Traffic& traffic_;
  const OptimizeOptions& options_;
  std::uint32_t id_;
  std::uint32_t slow_;
  std::optional<Entering> packets_;
  std::optional<Problem> problem_;
  std::vector<std::uint32_t> decider_;
  std::size_t dropped_ = 0;
};

/// Hardware where one table tells packets apart by what all rules look at, and sets a tag; the rules
/// then ask for the tag in its place, which takes fewer recipes. Empty where that saves none.
std::optional<Layout> lay_out_tagged(const RuleSet& rules, const Traffic& traffic,
                                     OptimizeOptions options, std::uint32_t slow) {
  const auto tags = recipes::tag_rules(rules, traffic, options.limits, slow + 1);
  if (!tags) return std::nullopt;
  // The first table's matcher, and its entry that sends all else to software.
  const std::size_t taken = options.limits.recipes(tags->asked_first) + 1;
  if (taken >= options.limits.most_recipes) return std::nullopt;
  options.limits.most_recipes -= taken;
  auto made = WithinRecipes(tags->rules, tags->traffic, options, slow).lay_out();
  if (!made) return std::nullopt;
  Layout layout{{recipes::first_table(*tags, made->layout, slow)}};
  for (LayoutTable& table : made->layout.tables) layout.tables.push_back(std::move(table));
  return layout;
}

}  // namespace

HeldCost held_cost(const Layout& layout, const Traffic& traffic, const LayoutLimits& limits,
                   double slow_path) {
  std::set<std::uint64_t> software = {kAway};
  for (const LayoutTable& table : layout.tables) {
    if (table.software) software.insert(table.id);
  }
  HeldCost held;
  double all = 0.0;
  std::vector<bool> slow(traffic.flows.size(), false);
  const Layout part = held_part(layout, limits);
  walk(part, traffic, [&](const Step& step) {
    const double weight = traffic.flows[step.flow].weight;
    held.tried += weight * static_cast<double>(step.tried);
    if (step.last) {
      all += weight;
      held.slow_share += slow[step.flow] ? weight : 0.0;
      return;
    }
    for (const Action& action : step.rule->actions) {
      if (action.kind != ActionKind::kJump || !software.contains(action.number)) continue;
      slow[step.flow] = true;
      // Packets leave before the entry that stands for what is not held: it is no matcher.
      if (action.number == kAway) held.tried -= weight;
    }
  });
  if (all <= 0.0) return {};
  held.tried /= all;
  held.slow_share /= all;
  held.cost = held.tried + held.slow_share * slow_path;
  return held;
}

Result<ForModel> optimize_for(const RuleSet& rules, const Traffic& traffic,
                              const OptimizeOptions& options, const ModelLimits& model) {
  const auto start = std::chrono::steady_clock::now();
  OptimizeOptions own = options;
  own.limits = model.limits;
  auto whole = optimize(rules, traffic, own);
  const bool few = model.limits.most_recipes != LayoutLimits::kNoLimit && model.slow_path > 0.0;
  const bool one_table =
      !rules.rules.empty() && std::ranges::all_of(rules.rules, [&](const FlowRule& rule) {
        return rule.table == rules.rules.front().table;
      });
  if (!whole && !(few && one_table && whole.error().code == ErrorCode::kTooBig)) {
    return pass_on(whole);
  }
  const Layout in_order = layout_in_rule_order(rules);
  const auto held = [&](const Layout& layout) {
    return held_cost(layout, traffic, model.limits, model.slow_path);
  };
  ForModel best;
  best.before = held(in_order);
  if (whole) {
    best.after = held(whole->layout);
    best.made = std::move(*whole);
    if (!few || !one_table) return best;
  } else {
    best.after = best.before;
    best.made.layout = in_order;
    best.made.notes = ambiguous_pairs(rules);
    best.made.rules_given = rules.rules.size();
  }
  const std::uint32_t slow = first_free_table(rules);
  const auto consider = [&](Layout hardware) {
    add_slow_path(rules, slow, hardware);
    const HeldCost after = held(hardware);
    if (!(after.cost < best.after.cost)) return;
    best.made.layout = std::move(hardware);
    best.after = after;
  };
  const WithinRecipes within(rules, traffic, own, slow);
  auto made = within.lay_out();
  if (!made) return pass_on(made);
  consider(std::move(made->layout));
  if (model.tags && best.after.slow_share > 0.0) {
    if (auto tagged = lay_out_tagged(rules, traffic, own, slow)) consider(std::move(*tagged));
  }
  OptimizedLayout& taken = best.made;
  taken.rules_given = rules.rules.size();
  taken.rules_dropped = within.dropped();
  if (const auto proven = prove_split(rules, taken.layout, taken.proof); !proven)
    return pass_on(proven);
  taken.before = cost_of(in_order, traffic);
  taken.after = cost_of(hardware_of(taken.layout), traffic);
  taken.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return best;
}

}  // namespace greynic::optimizer
