/// A layout and its rules as a State.

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "src/live/state.h"

namespace greynic::optimizer::live {
namespace {

/// All bits of the fields that rules look at, so that few later rules look at others; only the bits
/// in use where that is too much. They never differ between layout and rules: an entry lies in its
/// rule, and may look at bits of its own.
Mask columns_for(const std::vector<KeptRule>& rules, const Layout& layout) {
  Mask used;
  const auto add = [&used](const Match& match) {
    for (const FieldMatch& field : match.fields()) used.add(field.field, field.bits);
  };
  for (const KeptRule& rule : rules) {
    if (rule.present) add(rule.rule.match);
  }
  for (const LayoutTable& table : layout.tables) {
    for (const Matcher& matcher : table.matchers) {
      for (const FlowRule& rule : matcher.rules) add(rule.match);
    }
  }
  Mask all;
  for (const FieldMask& field : used.fields()) all.add(field.field, full_mask(field.field));
  return Columns(all).words() <= kMostWords ? all : used;
}

std::uint64_t jump_of(const FlowRule& rule) {
  for (const Action& action : rule.actions) {
    if (action.kind == ActionKind::kJump) return action.number;
  }
  return ~std::uint64_t{0};
}

}  // namespace

class Reader {
 public:
  Reader(State& state, const Layout& layout) : state_(state), layout_(layout) {}

  Result<void> read(std::vector<KeptRule> rules) {
    add_tables(rules);
    if (auto ranked = rank_tables(); !ranked) return ranked;
    state_.rule_index_.resize(state_.tables_.size());
    for (std::uint32_t id = 0; id < rules.size(); ++id) {
      if (rules[id].present) state_.add_rule(id, std::move(rules[id]));
    }
    for (const std::uint32_t place : ranked_) {
      if (auto taken = take_table(place); !taken) return taken;
    }
    for (std::uint32_t id = 0; id < state_.rules_.size(); ++id) {
      if (state_.rules_[id].present) state_.count(id);
    }
    return {};
  }

 private:
  void add_tables(const std::vector<KeptRule>& rules) {
    for (const LayoutTable& table : layout_.tables) add_table(table.id);
    std::set<std::uint64_t> foreign;  // where what the rules do goes on
    for (const KeptRule& rule : rules) {
      if (!rule.present) continue;
      if (!state_.place_of_.contains(rule.rule.table)) add_table(rule.rule.table);
      const std::uint32_t place = state_.place_of_[rule.rule.table];
      state_.tables_[place].root = place;
      foreign.insert(jump_of(rule.rule));
    }
    added_.resize(state_.tables_.size());
    entered_.resize(state_.tables_.size());
    for (const auto& [id, place] : state_.place_of_) {
      added_[place] = state_.tables_[place].root == kNothing && !foreign.contains(id);
    }
  }

  void add_table(std::uint32_t id) {
    state_.place_of_[id] = static_cast<std::uint32_t>(state_.tables_.size());
    state_.tables_.emplace_back();
    state_.tables_.back().id = id;
    state_.tables_.back().root = kNothing;
  }

  /// The place of the added table that a rule jumps to; kNothing: it ends the lookup.
  [[nodiscard]] std::uint32_t goes_on(const FlowRule& rule) const {
    const auto found = state_.place_of_.find(static_cast<std::uint32_t>(jump_of(rule)));
    if (found == state_.place_of_.end() || !added_[found->second]) return kNothing;
    return found->second;
  }

  /// Gives each table its root, and a rank behind all tables that jump to it.
  Result<void> rank_tables() {
    std::vector<int> seen(state_.tables_.size(), 0);  // 1: on the way here, 2: done
    for (std::uint32_t place = 0; place < state_.tables_.size(); ++place) {
      if (state_.tables_[place].root != place) continue;
      if (auto visited = visit(place, place, seen); !visited) return visited;
      entered_[place] = true;
    }
    std::reverse(ranked_.begin(), ranked_.end());
    for (std::uint32_t i = 0; i < ranked_.size(); ++i) state_.tables_[ranked_[i]].rank = i;
    return {};
  }

  Result<void> visit(std::uint32_t place, std::uint32_t root, std::vector<int>& seen) {
    seen[place] = 1;
    state_.tables_[place].root = root;
    if (place < layout_.tables.size()) {
      for (const Matcher& matcher : layout_.tables[place].matchers) {
        for (const FlowRule& rule : matcher.rules) {
          const std::uint32_t next = goes_on(rule);
          if (next == kNothing) continue;
          if (seen[next] == 1 || (seen[next] == 2 && state_.tables_[next].root != root)) {
            return fail(ErrorCode::kUnsupported,
                        fmt::format("layout table {}: jumps lead back to it, or come from several "
                                    "tables of the rules; lay the rules out again",
                                    layout_.tables[next].id));
          }
          if (seen[next] == 2) continue;
          if (auto visited = visit(next, root, seen); !visited) return visited;
        }
      }
    }
    seen[place] = 2;
    ranked_.push_back(place);
    return {};
  }

  Result<void> take_table(std::uint32_t place) {
    KeptTable& table = state_.tables_[place];
    if (!entered_[place]) table.root = kNothing;
    if (table.root == kNothing || place >= layout_.tables.size()) return {};
    Ids taken;
    for (const Matcher& matcher : layout_.tables[place].matchers) {
      std::uint32_t under = kNothing;
      std::set<Match> known;  // of two alike the first decides
      for (const FlowRule& rule : matcher.rules) {
        const Cube cube = state_.space_.cube(rule.match);
        if (!known.insert(rule.match).second) continue;
        if (!state_.space_.overlap(cube, table.region)) continue;  // no packet comes by here
        if (under == kNothing) {
          Changes changes;
          under = state_.add_matcher(place, static_cast<std::uint32_t>(table.matchers.size()), cube,
                                     changes);
        }
        const Cube here = state_.space_.meet(cube, table.region);
        const auto id = static_cast<std::uint32_t>(state_.entries_.size());
        if (auto added = take_entry(rule, here, place, under); !added) return added;
        if (id < state_.entries_.size()) taken.push_back(id);
      }
    }
    table.index.build(std::move(taken), state_.cubes_, state_.space_.words());
    return {};
  }

  Result<void> take_entry(const FlowRule& rule, const Cube& cube, std::uint32_t place,
                          std::uint32_t matcher) {
    const auto id = static_cast<std::uint32_t>(state_.entries_.size());
    KeptMatcher& under = state_.matchers_[matcher];
    Entry entry{{}, goes_on(rule), matcher, static_cast<std::uint32_t>(under.entries.size()), {}};
    if (entry.jump == kNothing) {
      entry.rules = owners(rule, cube, state_.tables_[place].root);
      if (entry.rules.empty()) return {};  // as the layout is right, no packet hits it
      for (const std::uint32_t owner : entry.rules) state_.rules_[owner].entries.push_back(id);
    } else if (rule.actions.size() > 1) {
      return fail(ErrorCode::kUnsupported,
                  fmt::format("layout table {}: the rule {} does more than jump; lay the rules out "
                              "again",
                              state_.tables_[place].id, to_string(rule.match)));
    } else {
      Cube& region = state_.tables_[entry.jump].region;
      region = entered_[entry.jump] ? state_.space_.around(region, cube) : cube;
      entered_[entry.jump] = true;
    }
    under.entries.push_back(id);
    state_.entries_.push_back(std::move(entry));
    state_.cubes_.push_back(cube);
    ++state_.entry_count_;
    return {};
  }

  /// The first rule of these actions that the entry lies in; without one, all of them that it meets:
  /// as the layout is right, packets that hit the entry are theirs.
  Ids owners(const FlowRule& rule, const Cube& cube, std::uint32_t root) {
    const std::uint32_t effect = state_.effects_.number(rule.actions);
    Ids met;
    state_.rules_meeting(root, cube, met);
    std::erase_if(met, [&](std::uint32_t id) { return state_.rules_[id].effect != effect; });
    for (const std::uint32_t id : met) {
      if (state_.space_.contains(state_.rule_cubes_[id], cube)) return {id};
    }
    return met;
  }

  State& state_;
  const Layout& layout_;
  std::vector<bool> added_;  ///< by place: tables that only the layout has
  std::vector<bool>
      entered_;  ///< by place: packets come here, as far as the jumps taken so far say
  std::vector<std::uint32_t> ranked_;  ///< places, in the order of their ranks
};

Result<State> State::create(std::vector<KeptRule> rules, const Layout& layout) {
  const Mask columns = columns_for(rules, layout);
  Columns packed(columns);
  if (packed.words() > kMostWords) {
    return fail(
        ErrorCode::kUnsupported,
        fmt::format("the rules look at {} bits, more than the {} that an update can follow; "
                    "lay them out again",
                    packed.count(), kMostWords * 64));
  }
  State state{CubeSpace(std::move(packed))};
  state.columns_ = columns;
  if (auto read = Reader(state, layout).read(std::move(rules)); !read) return pass_on(read);
  return state;
}

}  // namespace greynic::optimizer::live
