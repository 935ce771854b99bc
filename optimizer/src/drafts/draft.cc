#include "src/drafts/draft.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "src/entering.h"
#include "src/table_cut.h"

namespace greynic::optimizer {
namespace {

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

/// Masks of the rules, and their mean position if the weights alone set the order. Packets that
/// miss try all masks, which is no less. The trace that weigh() adds is taken off again. A search for
/// a chain knows more of its matchers than the number of masks: `least_chain`.
void add_bound(const Problem& problem, std::size_t least_chain, ChainBound& bound) {
  std::vector<std::uint32_t> rows(problem.rows.size());
  std::iota(rows.begin(), rows.end(), 0U);
  const std::size_t masks = groups_by_mask(problem, rows).size();
  bound.matchers += std::max(masks, least_chain);
  bound.matchers_tried +=
      std::max(0.0, hoped_cost(problem, 0.0) - kWeightTrace * static_cast<double>(masks));
}

/// The layouts that the searches find, the best first that can be proven.
class Drafting {
 public:
  Drafting(const RuleSet& rules_here, const OptimizeOptions& options, TablePlanner& planner,
           QuickProver& quick, TableDraft& draft)
      : rules_(rules_here),
        cuts_(!options.single_table && options.limits.cuts_pay),
        planner_(planner),
        quick_(quick),
        draft_(draft) {
    if (cuts_ && options.limits.shared_tables) joined_ = planner.joined();
  }

  /// Are the rules left out that decide nothing?
  bool run(bool some_decide_nothing) {
    bool suffices = take_what_suffices();
    constexpr bool kNoFilters = false;  // what they send away is harder to prove, too
    using enum spend::Uniting;
    for (const auto uniting : {kAny, kFewStayFew, kNone}) {
      if (!suffices || draft_.proven) break;
      joined_ = planner_.joined(uniting, kNoFilters);
      suffices = take_what_suffices();
    }
    if (draft_.proven) return true;
    bool drops = true;
    Costed other = planner_.without_way_back(!cuts_);
    // A rule that others behind it could replace answers before they are tried.
    Costed given =
        some_decide_nothing ? planner_.costed(layout_in_rule_order(rules_).tables) : Costed();
    if (given.cost < other.cost) {
      other = std::move(given);
      drops = false;
    }
    for (Costed& candidate : joined_) {
      if (draft_.proven || candidate.tables.empty() || !(candidate.cost < other.cost)) continue;
      take(candidate);
    }
    if (!draft_.proven) draft_.tables = std::move(other.tables);
    return drops || draft_.proven;
  }

 private:
  /// Whether anything does; the best of it that can be proven is taken.
  bool take_what_suffices() {
    bool some = false;
    for (Costed& candidate : joined_) {
      if (draft_.proven || !planner_.suffices(candidate)) continue;
      some = true;
      take(candidate);
    }
    return some;
  }

  void take(Costed& candidate) {
    Layout layout{std::move(candidate.tables)};
    candidate.tables.clear();
    draft_.proven = quick_.proves(rules_, layout, draft_.proof);
    draft_.tables = std::move(layout.tables);
  }

  const RuleSet& rules_;
  bool cuts_;
  TablePlanner& planner_;
  QuickProver& quick_;
  TableDraft& draft_;
  std::vector<Costed> joined_;
};

}  // namespace

bool QuickProver::proves(const RuleSet& rules, const Layout& layout, Proof& proof) {
  if (later_) return true;
  verify::VerifyOptions options;
  options.quick = true;
  options.most_comparisons = std::min(most_once_, left_);
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

bool TableDraft::is_for(const RuleSet& all, const std::vector<std::uint32_t>& members,
                        const Traffic& packets) const {
  if (members.size() != rules.rules.size() || packets.flows.size() != arriving.flows.size()) {
    return false;
  }
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (!(all.rules[members[i]] == rules.rules[i])) return false;
  }
  return std::ranges::equal(packets.flows, arriving.flows,
                            [](const TrafficFlow& a, const TrafficFlow& b) {
                              return a.weight == b.weight && a.packet == b.packet;
                            });
}

bool TableDraft::renumber(std::uint32_t to, std::uint32_t last_table) {
  const std::uint32_t from = first_free;
  for (const LayoutTable& table : tables) {
    if (table.id >= from && std::uint64_t{table.id} - from + to > last_table) return false;
  }
  for (LayoutTable& table : tables) {
    if (table.id >= from) table.id = table.id - from + to;
    for (Matcher& matcher : table.matchers) {
      for (FlowRule& rule : matcher.rules) {
        rule.table = table.id;
        for (Action& action : rule.actions) {
          if (action.kind == ActionKind::kJump && action.number >= from) {
            action.number = action.number - from + to;
          }
        }
      }
    }
  }
  first_free = to;
  return true;
}

TableDraft draft_table(const RuleSet& rules, const std::vector<std::uint32_t>& members,
                       const Traffic& arriving, const OptimizeOptions& options, TableRoom room,
                       Effects& effects, QuickProver& quick) {
  TableDraft draft;
  draft.first_free = room.first_free;
  draft.rules = rules_of(rules, members);
  draft.arriving = arriving;
  Problem problem = make_problem(rules, members, effects);
  const Entering entered = entering(arriving, problem.columns);
  const std::vector<std::uint32_t> hits = weigh(problem, entered);
  const std::vector<bool> redundant = redundant_rows(problem);
  std::vector<std::uint32_t> kept;
  for (std::uint32_t row = 0; row < redundant.size(); ++row) {
    if (!redundant[row]) kept.push_back(row);
  }
  room.most_rules = std::max(kept.size(), room.most_rules);
  room.quick = options.quick;
  const Problem deciding = part_of(problem, kept);
  TablePlanner planner(rules, deciding, entered, arriving,
                       among_kept(hits, redundant.size(), kept, deciding, entered.packets), room);
  std::optional<Problem> whole;
  if (room.limits.most_ranges > 0) {
    const auto lines = whole_lines(rules, members, redundant);
    whole = part_of(problem, lines);
    planner.compare_ranges(*whole,
                           among_kept(hits, redundant.size(), lines, *whole, entered.packets));
  }
  const bool drops =
      Drafting(draft.rules, options, planner, quick, draft).run(kept.size() < members.size());
  if (drops) draft.dropped = redundant.size() - kept.size();
  add_bound(deciding, planner.least_chain(), draft.bound);
  return draft;
}

UndividedTable undivided(const RuleSet& rules, const std::vector<std::uint32_t>& members,
                         const Traffic& arriving, Effects& effects) {
  Problem problem = make_problem(rules, members, effects);
  weigh(problem, entering(arriving, problem.columns));
  const std::vector<bool> redundant = redundant_rows(problem);
  std::vector<std::uint32_t> kept;
  for (std::uint32_t row = 0; row < redundant.size(); ++row) {
    if (!redundant[row]) kept.push_back(row);
  }
  UndividedTable table{redundant.size() - kept.size(), {}};
  add_bound(part_of(problem, kept), 0, table.bound);
  return table;
}

}  // namespace greynic::optimizer
