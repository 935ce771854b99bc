#include "greynic/verify/verify.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <set>

#include "local_proof.h"
#include "register_use.h"
#include "src/search/difference.h"
#include "tags.h"

namespace greynic::verify {
namespace {

constexpr int kMostJumps = 64;  // as core's look_up; a longer chain is a loop

using TableIds = std::set<std::uint64_t>;

/// Texts of action lists, numbered; equal texts do the same. Nothing to do is a drop.
class EffectNames {
 public:
  std::uint32_t number(const std::vector<Action>& actions) {
    std::string text;
    for (const Action& action : actions) {
      if (!text.empty()) text += ", ";
      text += spelled(action);
    }
    if (text.empty()) text = "drop";
    const auto [place, fresh] = numbers_.try_emplace(text, names_.size());
    if (fresh) names_.push_back(text);
    return place->second;
  }
  [[nodiscard]] std::string name(std::uint32_t effect) const {
    return effect == kMiss ? "no match" : names_[effect];
  }

 private:
  /// to_string, kept apart from a foreign action of the same text.
  static std::string spelled(const Action& action) {
    const std::string text = to_string(action);
    return action.kind == ActionKind::kOther ? "'" + text + "'" : text;
  }
  std::map<std::string, std::uint32_t> numbers_;
  std::vector<std::string> names_;
};

/// The table that only the layout has to which a rule goes on; kNoJump when it ends there.
Result<std::uint32_t> continuation(const FlowRule& rule, const TableIds& added,
                                   const RegistersInUse& registers) {
  for (const Action& action : rule.actions) {
    if (action.kind != ActionKind::kJump || !added.contains(action.number)) continue;
    const bool only_jumps = std::all_of(
        rule.actions.begin(), rule.actions.end(),
        [&](const Action& other) { return &other == &action || registers.only_looks(other); });
    if (!only_jumps) {
      return fail(ErrorCode::kUnsupported,
                  fmt::format("the layout rule {} does more than jump on its way to table {}",
                              to_string(rule.match), action.number));
    }
    return static_cast<std::uint32_t>(action.number);
  }
  return kNoJump;
}

bool does_the_same(const FlowRule& a, const FlowRule& b) {
  const auto drops = [](const FlowRule& rule) {
    return rule.actions.empty() || rule.actions == std::vector<Action>{Action::drop()};
  };
  return a.actions == b.actions || (drops(a) && drops(b));
}

/// Of the rules of a matcher, two that some packet matches and that differ: no device says which of
/// them wins, or one may leave. Without ranges rules of one mask are alike or apart.
std::optional<std::pair<const FlowRule*, const FlowRule*>> rivals_in(const Matcher& matcher) {
  std::map<std::vector<FieldMatch>, std::vector<const FlowRule*>> alike_but_for_ranges;
  for (const FlowRule& rule : matcher.rules) {
    alike_but_for_ranges[rule.match.fields()].push_back(&rule);
  }
  for (auto& entry : alike_but_for_ranges) {
    auto& rules = entry.second;
    const auto first_range = [](const FlowRule* rule) {
      const auto& ranges = rule->match.ranges();
      return ranges.empty() ? FieldRange{} : ranges.front();
    };
    std::sort(rules.begin(), rules.end(), [&](const FlowRule* a, const FlowRule* b) {
      return first_range(a).low < first_range(b).low;
    });
    for (std::size_t i = 0; i < rules.size(); ++i) {
      for (std::size_t j = i + 1; j < rules.size(); ++j) {
        if (first_range(rules[j]).low > first_range(rules[i]).high) break;
        const auto& some = rules[i]->match.ranges();
        const auto& others = rules[j]->match.ranges();
        bool meet = true;
        for (std::size_t r = 0; r < some.size(); ++r) {
          meet = meet && some[r].low <= others[r].high && others[r].low <= some[r].high;
        }
        if (meet && !does_the_same(*rules[i], *rules[j])) return std::pair(rules[i], rules[j]);
      }
    }
  }
  return std::nullopt;
}

Result<void> check(const Layout& layout) {
  TableIds seen;
  std::size_t idle = 0;
  for (const LayoutTable& table : layout.tables) {
    if (!seen.insert(table.id).second) {
      return fail(ErrorCode::kBadInput, fmt::format("the layout has table {} twice", table.id));
    }
    for (const Matcher& matcher : table.matchers) {
      for (const FlowRule& rule : matcher.rules) {
        if (rule.match.mask() == matcher.mask) continue;
        return fail(ErrorCode::kBadInput,
                    fmt::format("layout table {}: the rule {} is not under its matcher's mask {}",
                                table.id, to_string(rule.match), to_string(matcher.mask)));
      }
      if (matcher.idle_seconds > 0 && ++idle > 1) {
        return fail(ErrorCode::kUnsupported,
                    "rules of several matchers may leave the device (idle_seconds); only layouts "
                    "where those of one may can be judged");
      }
      if (matcher.mask.ranges().empty() && matcher.idle_seconds == 0) continue;
      if (const auto rivals = rivals_in(matcher)) {
        return fail(
            ErrorCode::kBadInput,
            fmt::format("layout table {}: the rules {} and {} of one matcher overlap and do "
                        "different things; put one of them into a matcher of its own",
                        table.id, to_string(rivals->first->match),
                        to_string(rivals->second->match)));
      }
    }
  }
  return {};
}

/// Tables reached from one without leaving the input table.
Result<std::vector<const LayoutTable*>> reached(const Layout& layout, std::uint32_t first,
                                                const TableIds& added,
                                                const RegistersInUse& registers) {
  std::map<std::uint32_t, const LayoutTable*> by_id;
  for (const LayoutTable& table : layout.tables) by_id[table.id] = &table;
  std::vector<const LayoutTable*> order;
  TableIds seen = {first};
  if (by_id.contains(first)) order.push_back(by_id[first]);
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (const Matcher& matcher : order[i]->matchers) {
      for (const FlowRule& rule : matcher.rules) {
        const auto next = continuation(rule, added, registers);
        if (!next) return pass_on(next);
        if (*next != kNoJump && seen.insert(*next).second) order.push_back(by_id[*next]);
      }
    }
  }
  return order;
}

/// kUnsupported when jumps among these tables form a loop, whether or not a packet can walk it: the
/// next change of a rule could open it. Tables that no jump leads to leave first, and so on.
Result<void> check_loops(const std::vector<const LayoutTable*>& tables, const TableIds& added,
                         const RegistersInUse& registers) {
  std::map<std::uint32_t, TableIds> jumps;
  std::map<std::uint64_t, std::size_t> entrances;
  for (const LayoutTable* table : tables) {
    for (const Matcher& matcher : table->matchers) {
      for (const FlowRule& rule : matcher.rules) {
        const auto next = continuation(rule, added, registers);
        if (!next) return pass_on(next);
        if (*next != kNoJump && jumps[table->id].insert(*next).second) ++entrances[*next];
      }
    }
  }
  std::vector<std::uint32_t> free;
  std::size_t left = tables.size();
  for (const LayoutTable* table : tables) {
    if (entrances[table->id] == 0) free.push_back(table->id);
  }
  for (; !free.empty(); --left) {
    const std::uint32_t table = free.back();
    free.pop_back();
    for (const std::uint64_t next : jumps[table]) {
      if (--entrances[next] == 0) free.push_back(static_cast<std::uint32_t>(next));
    }
  }
  if (left == 0) return {};
  const auto looped = std::find_if(entrances.begin(), entrances.end(),
                                   [](const auto& entry) { return entry.second > 0; });
  return fail(
      ErrorCode::kUnsupported,
      fmt::format("the jumps of the layout form a loop through table {}; a packet must never "
                  "come back to a table",
                  looped->first));
}

/// One table of the rule set and what the layout makes of it.
struct Comparison {
  std::uint32_t table;
  PacketSpace space;
  EffectNames effects;
  Pool pool{space};
  std::size_t layout_rules = 0;
};

Comparison comparison_of(std::uint32_t id, const std::vector<const FlowRule*>& rules,
                         const std::vector<const LayoutTable*>& tables, const TableIds& added,
                         const RegistersInUse& registers) {
  Comparison made{id, {}, {}};
  for (const FlowRule* rule : rules) made.space.widen(rule->match);
  for (const LayoutTable* table : tables) {
    for (const Matcher& matcher : table->matchers) {
      for (const FlowRule& rule : matcher.rules) {
        for (const Match& part : without_ranges(rule.match)) made.space.widen(part);
      }
    }
  }
  made.space.close();
  made.pool = Pool(made.space);
  for (const FlowRule* rule : rules) {
    const Entry entry{made.effects.number(rule->actions)};
    made.pool.rules.push_back(made.pool.add(made.space.cube(rule->match), entry));
  }
  for (const LayoutTable* table : tables) {
    auto& matchers = made.pool.matchers[table->id];
    for (const Matcher& matcher : table->matchers) {
      matchers.emplace_back();
      for (const FlowRule& rule : matcher.rules) {
        const std::uint32_t jump = *continuation(rule, added, registers);
        const std::uint32_t effect = jump == kNoJump ? made.effects.number(rule.actions) : kMiss;
        for (const Match& part : without_ranges(rule.match)) {
          matchers.back().push_back(made.pool.add(made.space.cube(part), {effect, jump}));
        }
      }
      made.layout_rules += matcher.rules.size();
    }
  }
  return made;
}

/// What the proof from matcher to matcher leaves is searched; all packets, when it is given up.
Result<std::optional<Difference>> decide(const Comparison& sides, const VerifyOptions& options,
                                         SearchLimits& limits, Verdict& verdict) {
  const Places places(sides.pool, sides.table);
  if (places.most_jumps() > kMostJumps) {
    return fail(ErrorCode::kUnsupported,
                fmt::format("up to {} jumps of the layout follow one another; devices follow {}",
                            places.most_jumps(), kMostJumps));
  }
  std::uint64_t comparisons = 0;
  LeftToShow left =
      prove_locally(sides.pool, places, options.most_comparisons, comparisons, limits.progress);
  verdict.comparisons += comparisons;
  if (!left.all && options.quick) return fail(ErrorCode::kTooBig, "ran out of comparisons");
  const Cube whole = sides.space.whole();
  if (!left.all) left.cubes.push_back(whole);
  if (left.cubes.empty()) return std::optional<Difference>{};
  limits.comparisons_left =
      options.quick ? options.most_comparisons - std::min(options.most_comparisons, comparisons)
                    : std::numeric_limits<std::uint64_t>::max();
  const std::uint64_t before = limits.comparisons_left;
  DifferenceSearch search(sides.pool, places);
  for (const Cube& region : left.cubes) {
    auto found = search.find(region, limits);
    if (!found || *found) return found;
  }
  if (options.quick) verdict.comparisons += before - limits.comparisons_left;
  return std::optional<Difference>{};
}

/// Compares one table of the rule set; the difference, if any, lands in the verdict.
Result<void> compare_table(std::uint32_t id, const std::vector<const FlowRule*>& rules,
                           const Layout& layout, const TableIds& added,
                           const RegistersInUse& registers, const VerifyOptions& options,
                           SearchLimits& limits, Verdict& verdict) {
  const auto tables = reached(layout, id, added, registers);
  if (!tables) return pass_on(tables);
  if (const auto checked = check_loops(*tables, added, registers); !checked)
    return pass_on(checked);
  const Comparison sides = comparison_of(id, rules, *tables, added, registers);
  const auto difference = decide(sides, options, limits, verdict);
  if (!difference) {
    return difference.error().while_doing(
        fmt::format("table {}: {} rules against {}", id, rules.size(), sides.layout_rules));
  }
  if (*difference) {
    const Difference& found = **difference;
    verdict.counterexample = {id, sides.space.member(found.where),
                              sides.effects.name(found.by_rules),
                              sides.effects.name(found.by_layout)};
  }
  return {};
}

}  // namespace

namespace {

/// The layout with all rules there.
Result<Verdict> verify_whole(const RuleSet& rules, const Layout& given,
                             const VerifyOptions& options) {
  std::map<std::uint32_t, std::vector<const FlowRule*>> by_table;
  for (const FlowRule& rule : rules.rules) by_table[rule.table].push_back(&rule);
  TableIds added;
  for (const LayoutTable& table : given.tables) {
    if (!by_table.contains(table.id)) added.insert(table.id);
  }
  for (const FlowRule& rule : rules.rules) {
    for (const Action& action : rule.actions) {
      // A jump of the set to a table without rules ends there; the layout may not continue it.
      if (action.kind == ActionKind::kJump) added.erase(action.number);
    }
  }

  const auto untagged = without_tags(rules, given, added);
  if (!untagged) return pass_on(untagged);
  const Layout& layout = *untagged ? **untagged : given;
  const RegistersInUse registers(rules, layout);
  Verdict verdict;
  SearchLimits limits{options.most_regions, 0, {}};
  for (auto& [id, members] : by_table) {
    std::stable_sort(members.begin(), members.end(), [](const FlowRule* a, const FlowRule* b) {
      return a->priority < b->priority;
    });
    if (options.progress) {
      const auto before = static_cast<double>(verdict.tables);
      const auto all = static_cast<double>(by_table.size());
      limits.progress = [&options, before, all, told = 0.0](double share) mutable {
        if (share <= told) return;  // the next way begins anew
        told = share;
        options.progress((before + share) / all);
      };
    }
    const auto done =
        compare_table(id, members, layout, added, registers, options, limits, verdict);
    if (!done) return pass_on(done);
    ++verdict.tables;
    if (verdict.counterexample) break;
  }
  verdict.regions = options.most_regions - limits.regions_left;
  verdict.equivalent = !verdict.counterexample.has_value();
  return verdict;
}

}  // namespace

/// Of one matcher at most one rule matches a packet. With it, the whole layout decides; when it has
/// left, the layout without the matcher does. So two proofs speak for every choice of rules that left.
Result<Verdict> verify(const RuleSet& rules, const Layout& layout, const VerifyOptions& options) {
  if (const auto checked = check(layout); !checked) return pass_on(checked);
  auto verdict = verify_whole(rules, layout, options);
  if (!verdict || !verdict->equivalent || !has_idle(layout)) return verdict;
  auto without = verify_whole(rules, without_idle(layout), options);
  if (!without) return without.error().while_doing("once idle rules have left");
  without->regions += verdict->regions;
  without->comparisons += verdict->comparisons;
  return without;
}

}  // namespace greynic::verify
