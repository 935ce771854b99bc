#include "greynic/optimizer/split.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <numeric>
#include <set>

#include "src/ambiguous.h"
#include "src/chain.h"
#include "src/counted/walk.h"
#include "src/key_table.h"
#include "src/split/choose.h"
#include "src/split/prove.h"

namespace greynic::optimizer {
namespace {

using split::Candidates;
using split::Choosing;
using split::Chosen;

/// The one table of the rules, with the packets that its rules decide.
struct SplitTable {
  std::uint32_t id = 0;
  std::uint32_t slow = 0;  ///< the slow path's table
  Problem deciding;
  Entering entering;
  std::vector<std::uint32_t> decider;
  Candidates candidates;
};

Result<void> check_split(const RuleSet& rules, const SplitOptions& options) {
  if (rules.rules.empty()) return fail(ErrorCode::kBadInput, "there are no rules to lay out");
  if (!(options.new_flows >= 0.0 && options.new_flows <= 1.0)) {
    return fail(ErrorCode::kBadInput, "the share of new flows lies between 0 and 1");
  }
  if (options.entries < 2) {
    return fail(ErrorCode::kBadInput, "the hardware must hold at least 2 entries");
  }
  if (!(options.slow_path > 0.0) || !std::isfinite(options.slow_path)) {
    return fail(ErrorCode::kBadInput, "the price of the slow path must be positive and finite");
  }
  const bool several =
      std::any_of(rules.rules.begin(), rules.rules.end(),
                  [&](const FlowRule& rule) { return rule.table != rules.rules.front().table; });
  if (several) {
    return fail(ErrorCode::kUnsupported,
                rules.source +
                    ": rules of several tables cannot be split between hardware and slow "
                    "path; split the megaflows that the switch makes of them");
  }
  return {};
}

SplitTable split_table(const RuleSet& rules, const Traffic& traffic, std::size_t entries) {
  const std::uint32_t id = rules.rules.front().table;
  const auto members = rules_by_table(rules).at(id);
  Effects effects;
  Problem all = make_problem(rules, members, effects);
  Entering packets = entering(traffic, all.columns);
  auto hits = weigh(all, packets);
  const std::vector<bool> redundant = redundant_rows(all);
  std::vector<std::uint32_t> kept;
  for (std::uint32_t row = 0; row < redundant.size(); ++row) {
    if (!redundant[row]) kept.push_back(row);
  }
  Problem deciding = part_of(all, kept);
  hits = among_kept(std::move(hits), redundant.size(), kept, deciding, packets.packets);
  std::fill(deciding.weight.begin(), deciding.weight.end(), 0.0);
  for (std::size_t i = 0; i < hits.size(); ++i) {
    if (hits[i] != kNoRow) deciding.weight[hits[i]] += packets.weight[i];
  }
  constexpr std::size_t kRulesForEachEntry = 4;
  Candidates candidates =
      split::find_candidates(deciding, packets, hits, kRulesForEachEntry * entries);
  return {id,
          first_free_table(rules),
          std::move(deciding),
          std::move(packets),
          std::move(hits),
          std::move(candidates)};
}

/// A way to choose, and what the choice costs as one chain.
struct SplitTry {
  Chosen chosen;
  bool hyper = false;
  double cost = 0.0;  ///< with the price of flows that nobody has seen
};

/// Makes rules of what was chosen, and layouts of these.
class Splitter {
 public:
  Splitter(const RuleSet& rules, const Traffic& traffic, const SplitTable& table,
           const SplitOptions& options)
      : rules_(rules), traffic_(traffic), table_(table), options_(options) {}

  /// All entries but those of the hyper mask, as rules of which the first decides. The last sends
  /// all that is left to the slow path.
  [[nodiscard]] RuleSet cascade_rules(const Chosen& chosen) const {
    RuleSet made{{}, rules_.source};
    for (const std::uint32_t place : chosen.pieces) {
      const auto& piece = table_.candidates.pieces[place];
      const Word* const packet =
          table_.entering.packets[table_.candidates.flows[piece.flows.front()].packet];
      made.rules.push_back(entry(packet, table_.candidates.masks[piece.mask], piece.decider));
    }
    std::vector<std::uint32_t> rows;
    std::merge(chosen.rows.begin(), chosen.rows.end(), chosen.covers.begin(), chosen.covers.end(),
               std::back_inserter(rows));
    const std::set<std::uint32_t> real(chosen.rows.begin(), chosen.rows.end());
    for (const std::uint32_t row : rows) {
      const Ternaries& t = table_.deciding.rows;
      made.rules.push_back(entry(t.value[row], {t.mask[row], t.mask[row] + t.words()}, row));
      if (!real.contains(row)) made.rules.back().actions = {Action::jump(table_.slow)};
    }
    FlowRule rest;
    rest.table = table_.id;
    rest.actions = {Action::jump(table_.slow)};
    made.rules.push_back(std::move(rest));
    for (std::size_t i = 0; i < made.rules.size(); ++i) {
      made.rules[i].priority = static_cast<RulePriority>(i);
    }
    return made;
  }

  [[nodiscard]] Traffic behind_hyper(const Chosen& chosen, double& share) const {
    std::vector<bool> gone(traffic_.flows.size(), false);
    std::unordered_map<std::vector<Word>, bool, RowHash> hot;
    const std::size_t words = table_.entering.packets.words();
    for (const std::uint32_t flow : chosen.flows) {
      const Word* const packet = table_.entering.packets[table_.candidates.flows[flow].packet];
      hot[{packet, packet + words}] = true;
    }
    Traffic left;
    share = 0.0;
    for (std::uint32_t i = 0; i < traffic_.flows.size(); ++i) {
      const Word* const packet = table_.entering.packets[i];
      if (hot.contains({packet, packet + words})) {
        share += table_.entering.weight[i];
      } else {
        left.flows.push_back(traffic_.flows[i]);
      }
    }
    return left;
  }

  /// As one chain: quick, and close enough to compare choices.
  [[nodiscard]] double chain_cost(const Chosen& chosen) const {
    double share = 0.0;
    const Traffic left = behind_hyper(chosen, share);
    const double front = chosen.flows.empty() ? 0.0 : 1.0;
    if (left.flows.empty()) return front;
    const RuleSet cascade = cascade_rules(chosen);
    std::vector<std::uint32_t> all(cascade.rules.size());
    std::iota(all.begin(), all.end(), 0U);
    Effects effects;
    Problem problem = make_problem(cascade, all, effects);
    const Entering packets = entering(left, problem.columns);
    const auto hits = weigh(problem, packets);
    double slow = 0.0;
    for (std::size_t i = 0; i < hits.size(); ++i) {
      if (goes_slow(cascade.rules[hits[i]])) slow += packets.weight[i];
    }
    return front + (1.0 - share) *
                       (weighted_position(build_chain(problem, all)) + slow * options_.slow_path);
  }

  /// What the packets of new flows cost on top, mean over all packets.
  [[nodiscard]] double more_for_new(const Chosen& chosen) const {
    return options_.new_flows * (chosen.slow_new - chosen.slow_seen) * options_.slow_path;
  }

  /// Hardware and slow path.
  Result<Split> lay_out(const Chosen& chosen) const {
    Split made;
    Traffic left = behind_hyper(chosen, made.hyper_share);
    if (left.flows.empty()) left = uniform_rest();
    made.hyper_entries = chosen.flows.size();
    made.slow_table = table_.slow;
    const RuleSet cascade = cascade_rules(chosen);
    OptimizeOptions search = options_.search;
    search.cost = {};
    search.limits.most_ranges = 0;  // entries are parts of rules, which ranges would join again
    const std::size_t room = options_.entries - std::min(options_.entries, chosen.flows.size());
    search.max_growth =
        std::max(1.0, static_cast<double>(room) / static_cast<double>(cascade.rules.size()));
    auto cascaded = optimize(cascade, left, search);
    if (!cascaded) return cascaded.error().while_doing("laying out the hardware's entries");
    made.made = std::move(*cascaded);
    Layout& layout = made.made.layout;
    for (LayoutTable& table : layout.tables) {
      for (Matcher& matcher : table.matchers) {
        for (FlowRule& rule : matcher.rules) rule.weight *= 1.0 - made.hyper_share;
      }
    }
    put_hyper_in_front(chosen, layout);
    made.cost = split_cost(layout, traffic_, table_.slow, options_.slow_path, made.slow_share);
    made.cost_for_new = made.cost + (chosen.slow_new - chosen.slow_seen) * options_.slow_path;
    made.cost_expected = made.cost + more_for_new(chosen);
    return made;
  }

 private:
  [[nodiscard]] bool goes_slow(const FlowRule& rule) const {
    return std::any_of(rule.actions.begin(), rule.actions.end(), [&](const Action& action) {
      return action.kind == ActionKind::kJump && action.number == table_.slow;
    });
  }

  [[nodiscard]] FlowRule entry(const Word* value, const std::vector<Word>& mask,
                               std::uint32_t decider) const {
    std::vector<Word> cut(mask.size());
    for (std::size_t w = 0; w < mask.size(); ++w) cut[w] = value[w] & mask[w];
    const FlowRule& rule = rules_.rules[table_.deciding.rule[decider]];
    FlowRule made;
    made.match = table_.deciding.columns.unpack(cut.data(), mask.data());
    made.table = table_.id;
    made.actions = rule.actions;
    made.from = rule.from;
    return made;
  }

  /// Stands for traffic where the hyper mask takes all there is.
  [[nodiscard]] Traffic uniform_rest() const {
    Traffic one;
    one.flows.push_back(traffic_.flows.front());
    return one;
  }

  void put_hyper_in_front(const Chosen& chosen, Layout& layout) const {
    if (chosen.flows.empty()) return;
    std::vector<Word> all(table_.entering.packets.words(), 0);
    for (std::size_t column = 0; column < table_.deciding.columns.count(); ++column) {
      all[column / 64] |= Word{1} << column % 64;
    }
    Matcher hyper;
    hyper.mask = table_.deciding.columns.unpack_mask(all.data());
    hyper.idle_seconds = options_.idle_seconds;
    for (const std::uint32_t place : chosen.flows) {
      const auto& flow = table_.candidates.flows[place];
      FlowRule rule = entry(table_.entering.packets[flow.packet], all, flow.decider);
      rule.weight = flow.weight;
      hyper.rules.push_back(std::move(rule));
    }
    for (LayoutTable& table : layout.tables) {
      if (table.id != table_.id) continue;
      table.matchers.insert(table.matchers.begin(), std::move(hyper));
      for (std::size_t i = 0; i < table.matchers.size(); ++i) {
        table.matchers[i].priority = static_cast<RulePriority>(i);
        for (FlowRule& rule : table.matchers[i].rules) rule.priority = table.matchers[i].priority;
      }
    }
  }

  const RuleSet& rules_;
  const Traffic& traffic_;
  const SplitTable& table_;
  const SplitOptions& options_;
};

/// Choices for several prices of a matcher, with and without what may be taken, and as if more of the
/// flows were new: what serves these is now and then the best for known ones.
std::vector<SplitTry> split_choices(const SplitTable& table, const Splitter& splitter,
                                    const SplitOptions& options) {
  constexpr std::array kPrices = {0.25, 1.0, 4.0};
  constexpr std::array kShares = {1.0, 0.75};  // of the entries; jumps may take the others
  std::vector<Choosing> ways;
  for (const double news : std::set<double>{options.new_flows, 0.5, 1.0}) {
    for (const bool hyper : {false, true}) {
      for (const bool covers : {false, true}) {
        if (covers && table.candidates.covered.empty()) continue;
        for (const double price : kPrices) {
          for (const double share : kShares) {
            const auto entries = static_cast<std::size_t>(
                std::max(1.0, share * static_cast<double>(options.entries - 1)));
            ways.push_back({entries, options.slow_path, hyper, covers, price, news});
          }
        }
      }
    }
  }
  std::vector<SplitTry> tried;
  for (const Choosing& way : ways) {
    SplitTry one{split::choose(table.deciding, table.candidates, way), way.hyper, 0.0};
    one.cost = splitter.chain_cost(one.chosen) + splitter.more_for_new(one.chosen);
    tried.push_back(std::move(one));
  }
  std::stable_sort(tried.begin(), tried.end(),
                   [](const SplitTry& a, const SplitTry& b) { return a.cost < b.cost; });
  return tried;
}

/// The best of the first few, with a hyper mask or without.
Result<std::optional<Split>> best_split(const std::vector<SplitTry>& tried,
                                        const Splitter& splitter, bool hyper) {
  constexpr int kMost = 3;
  std::optional<Split> best;
  int looked_at = 0;
  for (const SplitTry& one : tried) {
    if (one.hyper != hyper || looked_at++ >= kMost) continue;
    auto made = splitter.lay_out(one.chosen);
    if (!made) return pass_on(made);
    if (!best || made->cost_expected < best->cost_expected) best = std::move(*made);
  }
  return best;
}

}  // namespace

Layout hardware_of(const Layout& layout) {
  Layout hardware;
  for (const LayoutTable& table : layout.tables) {
    if (!table.software) hardware.tables.push_back(table);
  }
  return hardware;
}

void add_slow_path(const RuleSet& rules, std::uint32_t id, Layout& layout) {
  Layout slow = layout_in_rule_order(rules);
  for (LayoutTable& table : slow.tables) {
    table.id = id;
    table.software = true;
    for (Matcher& matcher : table.matchers) {
      for (FlowRule& rule : matcher.rules) {
        rule.table = id;
        rule.priority = matcher.priority;
        rule.weight = 0.0;
      }
    }
    layout.tables.push_back(std::move(table));
  }
}

double split_cost(const Layout& hardware, const Traffic& traffic, std::uint32_t slow_table,
                  double slow_path, double& slow_share) {
  double tried = 0.0;
  double slow = 0.0;
  double all = 0.0;
  std::vector<bool> missed(traffic.flows.size(), false);
  walk(hardware, traffic, [&](const Step& step) {
    const double weight = traffic.flows[step.flow].weight;
    tried += weight * static_cast<double>(step.tried);
    if (!step.last) {
      for (const Action& action : step.rule->actions) {
        missed[step.flow] =
            missed[step.flow] || (action.kind == ActionKind::kJump && action.number == slow_table);
      }
      return;
    }
    all += weight;
    const bool nothing_hit = step.table != nullptr && step.rule == nullptr;
    if (missed[step.flow] || nothing_hit) slow += weight;
  });
  slow_share = all > 0.0 ? slow / all : 0.0;
  return all > 0.0 ? tried / all + slow_share * slow_path : 0.0;
}

Result<Split> split_hardware(const RuleSet& rules, const Traffic& given,
                             const SplitOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  if (const auto checked = check_split(rules, options); !checked) return pass_on(checked);
  for (const TrafficFlow& flow : given.flows) {
    if (!(flow.weight > 0.0) || !std::isfinite(flow.weight)) {
      return fail(ErrorCode::kBadInput, "every weight of the traffic must be positive and finite");
    }
  }
  Traffic traffic;
  for (const TrafficFlow& flow : given.flows) {
    if (flow.table == rules.rules.front().table) traffic.flows.push_back(flow);
  }
  if (traffic.flows.empty()) {
    return fail(ErrorCode::kBadInput, "no packet of the traffic enters the rules' table");
  }
  const SplitTable table = split_table(rules, traffic, options.entries);
  const Splitter splitter(rules, traffic, table, options);
  const auto tried = split_choices(table, splitter, options);
  auto plain = best_split(tried, splitter, false);
  if (!plain) return pass_on(plain);
  auto fronted = best_split(tried, splitter, true);
  if (!fronted) return pass_on(fronted);
  const double without = (*plain)->cost_expected;
  const bool hyper = (*fronted)->hyper_entries > 0 &&
                     (*fronted)->cost_expected < without * (1.0 - options.act_above);
  Split best = std::move(hyper ? **fronted : **plain);
  best.cost_without_hyper = without;
  const Layout hardware = best.made.layout;
  if (const auto kept = keeps_to(hardware, options.search.limits); !kept) {
    return kept.error().while_doing("laying out the hardware's entries");
  }
  add_slow_path(rules, table.slow, best.made.layout);
  if (const auto proven = prove_split(rules, best.made.layout, best.made.proof); !proven) {
    return pass_on(proven);
  }
  best.made.before = cost_of(layout_in_rule_order(rules), traffic);
  best.made.after = cost_of(hardware, traffic);
  if (options.search.cost) {
    auto before = options.search.cost(best.made.before.shares_by_tried);
    if (!before) return pass_on(before);
    auto after = options.search.cost({{best.cost, 1.0}});
    if (!after) return pass_on(after);
    best.made.before.prediction = std::move(*before);
    best.made.after.prediction = std::move(*after);
  }
  best.made.notes = ambiguous_pairs(rules);
  best.made.rules_given = rules.rules.size();
  best.made.rules_dropped = rules.rules.size() - table.deciding.rows.size();
  best.made.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return best;
}

}  // namespace greynic::optimizer
