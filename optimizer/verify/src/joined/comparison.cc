#include "src/joined/comparison.h"

#include <fmt/core.h>

#include <algorithm>
#include <list>
#include <random>
#include <utility>

#include "src/rule_index.h"
#include "src/space/port_runs.h"

namespace greynic::verify {
namespace {

/// to_string, kept apart from a foreign action of the same text.
std::string spelled(const Action& action) {
  const std::string text = to_string(action);
  return action.kind == ActionKind::kOther ? "'" + text + "'" : text;
}

/// A rule of the layout, or of the set behind it; `jump` as in Entry.
struct LayoutEntry {
  const Match* match;
  const Actions* actions;  ///< plain where it ends
  std::uint32_t jump = kNoJump;
};
using LayoutMatcher = std::vector<LayoutEntry>;

/// The tables of the layout, and behind what is opened those of the set.
class LayoutSide {
 public:
  LayoutSide(const Sides& sides, const std::set<Actions>& opened) : sides_(sides), opened_(opened) {
    used_ = sides.added;
    for (const LayoutTable* table : sides.tables) used_.insert(table->id);
  }

  void layout_table(const LayoutTable& table) {
    std::vector<LayoutMatcher> matchers;
    for (const Matcher& matcher : table.matchers) {
      matchers.emplace_back();
      for (const FlowRule& rule : matcher.rules) {
        const std::uint32_t jump = *continuation(rule, sides_.added, sides_.registers);
        matchers.back().push_back(jump == kNoJump ? ended(rule.match, plain(rule.actions))
                                                  : LayoutEntry{&rule.match, &rule.actions, jump});
      }
    }
    tables_.insert_or_assign(table.id, std::move(matchers));
  }

  [[nodiscard]] const std::map<std::uint32_t, std::vector<LayoutMatcher>>& tables() const {
    return tables_;
  }
  /// Of ports, in all entries.
  [[nodiscard]] bool asks_for_spans() const {
    for (const auto& [id, matchers] : tables_) {
      for (const LayoutMatcher& matcher : matchers) {
        for (const LayoutEntry& entry : matcher) {
          if (!verify::asks_for_spans(*entry.match)) return false;
        }
      }
    }
    return true;
  }

 private:
  LayoutEntry ended(const Match& match, const Actions& actions) {
    const bool further = opened_.contains(actions) && may_follow(sides_, actions);
    return {&match, &actions, further ? table_behind(actions) : kNoJump};
  }

  /// The next table, as packets see it that come with these actions.
  std::uint32_t table_behind(const Actions& actions) {
    if (const auto known = behind_.find(actions); known != behind_.end()) return known->second;
    while (used_.contains(free_)) --free_;
    const std::uint32_t id = free_--;
    behind_.emplace(actions, id);
    std::vector<LayoutMatcher> matchers;
    Mask mask;
    // Counted when it was opened.
    const auto ways = sides_.onward.one_table_on({{}, actions}, RulesSide::kMostBytes);
    ways_.push_back(ways.value_or(std::vector<Way>{}));
    for (const Way& way : ways_.back()) {
      if (matchers.empty() || !(way.match.mask() == mask)) matchers.emplace_back();
      mask = way.match.mask();
      matchers.back().push_back(way.actions == actions ? LayoutEntry{&way.match, &way.actions}
                                                       : ended(way.match, way.actions));
    }
    tables_.insert_or_assign(id, std::move(matchers));
    return id;
  }

  const Sides& sides_;
  const std::set<Actions>& opened_;
  TableIds used_;
  std::uint32_t free_ = kNoJump - 1;
  std::map<Actions, std::uint32_t> behind_;
  std::list<std::vector<Way>> ways_;  ///< of the tables behind
  std::map<std::uint32_t, std::vector<LayoutMatcher>> tables_;
};

}  // namespace

std::uint32_t EffectNames::number(const Actions& actions) {
  std::string text;
  for (const Action& action : actions) {
    if (!text.empty()) text += ", ";
    text += spelled(action);
  }
  if (text.empty()) text = "drop";
  const auto [place, fresh] = numbers_.try_emplace(text, names_.size());
  if (fresh) {
    names_.push_back(text);
    actions_.push_back(actions);
  }
  return place->second;
}

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

bool may_follow(const Sides& sides, const Actions& actions) {
  const auto to = sides.onward.next(actions);
  const auto from = sides.onward.rank(sides.table);
  return to && from && *sides.onward.rank(*to) < *from;
}

Comparison comparison_of(const Sides& sides, const RulesSide& rules,
                         const std::set<Actions>& opened) {
  LayoutSide layout(sides, opened);
  Comparison made{sides.table, {}, {}};
  for (const LayoutTable* table : sides.tables) {
    layout.layout_table(*table);
    for (const Matcher& matcher : table->matchers) made.layout_rules += matcher.rules.size();
  }
  const std::vector<std::uint32_t> ways = rules.ways();
  std::vector<const Match*> matches;
  std::vector<std::uint32_t> effects;
  for (const std::uint32_t way : ways) {
    matches.push_back(&rules[way].match);
    effects.push_back(made.effects.number(rules[way].actions));
  }
  std::vector<PortRun> runs;
  std::vector<std::pair<const Match*, std::uint32_t>> rules_side;  // with the first of its ways
  // Each way may be opened by itself where rules lead anywhere.
  if (layout.asks_for_spans() && !sides.onward.leads_anywhere()) {
    runs = port_runs(matches, effects);
    for (const PortRun& run : runs) rules_side.emplace_back(&run.match, run.first);
  } else {
    for (std::uint32_t i = 0; i < ways.size(); ++i) rules_side.emplace_back(matches[i], i);
  }
  for (const auto& [match, first] : rules_side) made.space.widen(*match);
  for (const auto& [id, matchers] : layout.tables()) {
    for (const LayoutMatcher& matcher : matchers) {
      for (const LayoutEntry& entry : matcher) made.space.widen(*entry.match);
    }
  }
  made.space.close();
  made.pool = Pool(made.space);
  for (const auto& [match, first] : rules_side) {
    for (const Cube& cube : made.space.cubes(*match)) {
      made.pool.rules.push_back(made.pool.add(cube, {effects[first]}));
      made.ways.push_back(ways[first]);
    }
  }
  for (const auto& [id, matchers] : layout.tables()) {
    auto& into = made.pool.matchers[id];
    for (const LayoutMatcher& matcher : matchers) {
      into.emplace_back();
      for (const LayoutEntry& entry : matcher) {
        const bool ends = entry.jump == kNoJump;
        const Entry kept{ends ? made.effects.number(*entry.actions) : kMiss, entry.jump};
        for (const Cube& cube : made.space.cubes(*entry.match)) {
          into.back().push_back(made.pool.add(cube, kept));
        }
      }
    }
  }
  return made;
}

bool does_more_at_once(const Sides& sides) {
  if (!sides.onward.leads_anywhere()) return false;
  std::set<Actions> by_rules;
  for (const FlowRule* rule : sides.rules) by_rules.insert(plain(rule->actions));
  for (const LayoutTable* table : sides.tables) {
    for (const Matcher& matcher : table->matchers) {
      for (const FlowRule& rule : matcher.rules) {
        const bool ends = *continuation(rule, sides.added, sides.registers) == kNoJump;
        if (ends && !by_rules.contains(plain(rule.actions))) return true;
      }
    }
  }
  return false;
}

void open_as_far_as_layout(const Comparison& compared, const Places& places, std::uint64_t round,
                           RulesSide& rules) {
  const Pool& pool = compared.pool;
  RuleIndex index(pool, pool.rules);
  for (std::uint32_t rule = 0; rule < pool.rules.size(); ++rule) index.insert(rule);
  std::mt19937_64 random(round);
  const CubeBits all(pool.words, ~std::uint64_t{0});
  std::vector<std::uint32_t> hit;
  std::uint64_t comparisons = 0;
  for (const auto& [id, matchers] : pool.matchers) {
    for (const auto& matcher : matchers) {
      for (const std::uint32_t entry : matcher) {
        if (pool.entries[entry].jump != kNoJump) continue;
        CubeBits bits(pool.value(entry), pool.value(entry) + pool.words);
        for (std::size_t w = 0; w < pool.words && round > 0; ++w) {
          bits[w] |= random() & ~pool.fixed(entry)[w];
        }
        const std::uint32_t done = places.effect_of(bits.data());
        index.meeting(bits.data(), all.data(), kMiss, hit, comparisons);
        if (done == kMiss || hit.empty()) continue;
        const Actions& wanted = compared.effects.actions(done);
        const std::uint32_t way = compared.ways[hit.front()];
        if (rules[way].actions == wanted) continue;
        rules.open_until(way, compared.space.member({bits, all}), wanted);
      }
    }
  }
}

}  // namespace greynic::verify
