#include "greynic/verify/verify.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <set>

#include "local_proof.h"
#include "src/joined/comparison.h"
#include "src/joined/pipeline_proof.h"
#include "src/search/difference.h"
#include "tags.h"

namespace greynic::verify {
namespace {

constexpr std::uint64_t kFirstLooks = 4;  // at packets of each rule of the layout
constexpr std::uint64_t kMostDiagramSteps =
    400'000'000;                        // on diagrams of bits, for all tables: some twenty seconds
constexpr std::uint64_t kDearer = 10;   // a node of a search than a comparison of the local proof
constexpr std::size_t kMostJumps = 64;  // as core's look_up; a longer chain is a loop

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

using TablesOfLayout = std::map<std::uint32_t, const LayoutTable*>;  ///< by id

/// Tables reached from one without leaving the input table.
Result<std::vector<const LayoutTable*>> reached(const TablesOfLayout& by_id, std::uint32_t first,
                                                const TableIds& added,
                                                const RegistersInUse& registers) {
  std::vector<const LayoutTable*> order;
  TableIds seen = {first};
  if (by_id.contains(first)) order.push_back(by_id.at(first));
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (const Matcher& matcher : order[i]->matchers) {
      for (const FlowRule& rule : matcher.rules) {
        const auto next = continuation(rule, added, registers);
        if (!next) return pass_on(next);
        if (*next != kNoJump && seen.insert(*next).second) order.push_back(by_id.at(*next));
      }
    }
  }
  return order;
}

tl::unexpected<Error> too_many_jumps(std::size_t jumps) {
  return fail(ErrorCode::kUnsupported,
              fmt::format("up to {} jumps of the layout follow one another; devices follow {}",
                          jumps, kMostJumps));
}

/// kUnsupported when jumps among these tables form a loop, whether or not a packet can walk it: the
/// next change of a rule could open it; and when too many follow one another, before anything goes after
/// them. Tables that no jump leads to leave first, and so on.
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
  std::map<std::uint64_t, std::size_t> jumps_before;
  std::size_t most_jumps = 0;
  std::size_t left = tables.size();
  for (const LayoutTable* table : tables) {
    if (entrances[table->id] == 0) free.push_back(table->id);
  }
  for (; !free.empty(); --left) {
    const std::uint32_t table = free.back();
    free.pop_back();
    const std::size_t count = jumps_before[table];
    most_jumps = std::max(most_jumps, count);
    for (const std::uint64_t next : jumps[table]) {
      jumps_before[next] = std::max(jumps_before[next], count + 1);
      if (--entrances[next] == 0) free.push_back(static_cast<std::uint32_t>(next));
    }
  }
  if (left == 0 && most_jumps > kMostJumps) return too_many_jumps(most_jumps);
  if (left == 0) return {};
  const auto looped = std::find_if(entrances.begin(), entrances.end(),
                                   [](const auto& entry) { return entry.second > 0; });
  return fail(
      ErrorCode::kUnsupported,
      fmt::format("the jumps of the layout form a loop through table {}; a packet must never "
                  "come back to a table",
                  looped->first));
}

/// What the proof from matcher to matcher leaves is searched; all packets, when it is given up.
Result<std::optional<Difference>> decide(const Comparison& sides, const VerifyOptions& options,
                                         SearchLimits& limits, Verdict& verdict) {
  const Places places(sides.pool, sides.table);
  if (static_cast<std::size_t>(places.most_jumps()) > kMostJumps) {
    return too_many_jumps(static_cast<std::size_t>(places.most_jumps()));
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
      options.quick
          ? (options.most_comparisons - std::min(options.most_comparisons, comparisons)) / kDearer
          : std::numeric_limits<std::uint64_t>::max();
  const std::uint64_t before = limits.comparisons_left;
  DifferenceSearch search(sides.pool, places);
  for (const Cube& region : left.cubes) {
    auto found = search.find(region, limits);
    if (!found || *found) return found;
  }
  if (options.quick) verdict.comparisons += (before - limits.comparisons_left) * kDearer;
  return std::optional<Difference>{};
}

/// Opens what the layout ends with, and all else that it ends with before the same table: where it is short of one, it
/// is short of others, too. False when that was open.
bool open_ends(const Sides& sides, const EffectNames& effects, const Actions& found,
               RulesSide& rules, std::set<Actions>& opened) {
  if (!opened.insert(found).second) return false;
  rules.count_behind(found);
  const auto next = sides.onward.next(found);
  for (const Actions& other : effects.all()) {
    if (!may_follow(sides, other) || sides.onward.next(other) != next) continue;
    if (opened.insert(other).second) rules.count_behind(other);
  }
  return true;
}

/// What both sides do in the end to a packet that they treat differently, as texts; empty where that is
/// the same, and then more is opened.
std::optional<std::pair<std::string, std::string>> in_the_end(const Sides& sides,
                                                              const Comparison& compared,
                                                              const Difference& found,
                                                              RulesSide& rules,
                                                              std::set<Actions>& opened) {
  const auto texts = [](const EffectNames& names, std::uint32_t by_rules, std::uint32_t by_layout) {
    return std::pair(names.name(by_rules), names.name(by_layout));
  };
  const EffectNames& effects = compared.effects;
  if (found.by_rules == kMiss || found.by_layout == kMiss) {
    return texts(effects, found.by_rules, found.by_layout);
  }
  const Packet packet = compared.space.member(found.where);
  const Actions& by_rules = effects.actions(found.by_rules);
  const Actions& by_layout = effects.actions(found.by_layout);
  const bool follow = may_follow(sides, by_layout);
  EffectNames ends;
  const Actions rules_in_the_end = sides.onward.to_the_end(packet, by_rules);
  const auto rules_end = ends.number(rules_in_the_end);
  const auto layout_end =
      ends.number(follow ? sides.onward.to_the_end(packet, by_layout) : by_layout);
  if (rules_end != layout_end) return texts(ends, rules_end, layout_end);
  for (const std::uint32_t way : compared.ways) {
    if (!rules[way].match.matches(packet)) continue;
    if (rules.open_until(way, packet, by_layout)) return std::nullopt;
    const bool one = rules_in_the_end != by_rules && rules.open(way);
    const bool other = follow && open_ends(sides, effects, by_layout, rules, opened);
    if (one || other) return std::nullopt;
    break;
  }
  return texts(effects, found.by_rules, found.by_layout);
}

/// Compares one table of the rule set; the difference, if any, lands in the verdict. Where the layout
/// does the work of several tables at once, the rules are followed as far as it goes; each time that both
/// sides differ only in how far they went, further, the layout too.
Result<void> compare_table(const Sides& sides, const VerifyOptions& options,
                           PipelineProof& pipeline, SearchLimits& limits, Verdict& verdict) {
  const std::uint64_t before = pipeline.steps();
  const auto answer = pipeline.compare(sides);
  verdict.comparisons += pipeline.steps() - before;
  if (answer && !answer->alike) {
    verdict.counterexample = {sides.table, answer->packet, answer->by_rules, answer->by_layout};
  }
  if (answer) return {};
  RulesSide rules(sides.rules, sides.onward);
  std::set<Actions> opened;
  const auto look = [&](const Comparison& compared, std::uint64_t round) {
    open_as_far_as_layout(compared, Places(compared.pool, sides.table), round, rules);
  };
  std::uint64_t round = 0;
  if (does_more_at_once(sides)) {
    for (; round < kFirstLooks; ++round) look(comparison_of(sides, rules, opened), round);
  }
  while (true) {
    if (rules.is_full()) {
      return fail(
          ErrorCode::kUnsupported,
          fmt::format(
              "table {}: the layout does at once what the rules do in over {} ways, or in lists "
              "of actions of over {} MiB; lay tables out apart (--keep-tables)",
              sides.table, RulesSide::kMostWays, RulesSide::kMostBytes >> 20));
    }
    const Comparison compared = comparison_of(sides, rules, opened);
    const auto difference = decide(compared, options, limits, verdict);
    if (!difference) {
      return difference.error().while_doing(fmt::format(
          "table {}: {} rules against {}", sides.table, sides.rules.size(), compared.layout_rules));
    }
    if (!*difference) return {};
    const Difference& found = **difference;
    const auto texts = in_the_end(sides, compared, found, rules, opened);
    if (!texts) {
      look(compared, ++round);
      continue;
    }
    verdict.counterexample = {sides.table, compared.space.member(found.where), texts->first,
                              texts->second};
    return {};
  }
}

/// Those first that others lead to: where the layout does right there, a packet of these can be
/// followed by what the rules do.
std::vector<std::uint32_t> in_order(const TablesOfSet& tables, const Onward& onward) {
  std::vector<std::uint32_t> order;
  for (const auto& entry : tables) order.push_back(entry.first);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return onward.rank(a).value_or(tables.size()) < onward.rank(b).value_or(tables.size());
  });
  return order;
}

/// The layout with all rules there.
Result<Verdict> verify_whole(const RuleSet& rules, const Layout& given,
                             const VerifyOptions& options) {
  TablesOfSet by_table;
  for (const FlowRule& rule : rules.rules) by_table[rule.table].push_back(&rule);
  for (auto& entry : by_table) {
    std::stable_sort(
        entry.second.begin(), entry.second.end(),
        [](const FlowRule* a, const FlowRule* b) { return a->priority < b->priority; });
  }
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
  TablesOfLayout by_id;
  for (const LayoutTable& table : layout.tables) by_id[table.id] = &table;
  Verdict verdict;
  SearchLimits limits{options.most_regions, 0, {}};
  const Onward onward(by_table);
  PipelineProof pipeline(by_table, layout, onward, {options.most_nodes, kMostDiagramSteps});
  for (const std::uint32_t id : in_order(by_table, onward)) {
    if (options.progress) {
      const auto before = static_cast<double>(verdict.tables);
      const auto all = static_cast<double>(by_table.size());
      limits.progress = [&options, before, all, told = 0.0](double share) mutable {
        if (share <= told) return;  // the next way begins anew
        told = share;
        options.progress((before + share) / all);
      };
    }
    const auto tables = reached(by_id, id, added, registers);
    if (!tables) return pass_on(tables);
    if (const auto checked = check_loops(*tables, added, registers); !checked) {
      return pass_on(checked);
    }
    const Sides sides{id, by_table.at(id), *tables, added, registers, onward};
    if (const auto done = compare_table(sides, options, pipeline, limits, verdict); !done) {
      return pass_on(done);
    }
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
