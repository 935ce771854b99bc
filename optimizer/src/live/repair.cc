#include "src/live/repair.h"

#include <algorithm>
#include <bit>

namespace greynic::optimizer::live {
namespace {

constexpr std::size_t kMostAdded = 4000;  // entries in a step
constexpr int kMostWrittenOut = 3;        // bits of which all values are written out

/// Bits that the mask looks at and the cube leaves open; -1 when the mask lacks bits of `needed` that
/// the region leaves open.
int open_bits(const CubeSpace& space, const Cube& mask, const Cube& needed, const Cube& region,
              const Cube& cube) {
  int open = 0;
  for (std::size_t w = 0; w < space.words(); ++w) {
    if ((needed[w].mask & ~mask[w].mask & ~region[w].mask) != 0) return -1;
    open += std::popcount(mask[w].mask & ~cube[w].mask);
  }
  return open;
}

/// What entries of this mask match of the region, for all values of the bits that the cube leaves
/// open: together they hold the cube.
std::vector<Cube> written_out(const CubeSpace& space, const Cube& mask, const Cube& region,
                              const Cube& cube) {
  std::vector<Cube> made(1);
  for (std::size_t w = 0; w < space.words(); ++w) {
    made[0][w] = {(cube[w].value & mask[w].mask) | region[w].value, mask[w].mask | region[w].mask};
  }
  for (std::size_t w = 0; w < space.words(); ++w) {
    for (Word open = mask[w].mask & ~cube[w].mask; open != 0; open &= open - 1) {
      const std::size_t count = made.size();
      for (std::size_t i = 0; i < count; ++i) {
        made.push_back(made[i]);
        made.back()[w].value |= open & (~open + 1);
      }
    }
  }
  return made;
}

bool holds_alike(const State& state, const Ids& met, std::uint32_t matcher, const Cube& cube) {
  return std::any_of(met.begin(), met.end(), [&](std::uint32_t id) {
    return state.entry(id).matcher == matcher && state.space().contains(state.cube(id), cube);
  });
}

/// Where packets can be given to a rule: at a position of a table from `first` to `last`.
struct Stretch {
  std::uint32_t table;
  std::uint32_t first;
  std::uint32_t last;
  Cube packets{};  ///< all that come here, and perhaps more
};

/// The stretch that ends at `last`: behind what wins over the rule there, as far as it stands here at
/// all. The proof asks for the rest.
Stretch stretch_to(const State& state, std::uint32_t rule, std::uint32_t table, std::uint32_t last,
                   const Cube& packets) {
  Stretch made{table, 0, last, packets};
  Ids met;
  state.entries_meeting(table, packets, met);
  for (const std::uint32_t id : met) {
    if (state.entry(id).jump != kNothing || state.position(id) >= last) continue;
    const KeptRule& owner = state.last_owner(id);
    if (owner.order < state.rule(rule).order && owner.effect != state.rule(rule).effect) {
      made.first = std::max(made.first, state.position(id) + 1);
    }
  }
  return made;
}

/// Does no earlier rule do something else with some of the packets?
bool first_of_all(const State& state, std::uint32_t rule, std::uint32_t root, const Cube& packets) {
  Ids rules;
  state.rules_meeting(root, packets, rules);
  for (const std::uint32_t other : rules) {
    if (other == rule) return true;
    if (state.rule(other).effect != state.rule(rule).effect) return false;
  }
  return true;
}

/// Stretches on the way of the packets to the fault, as long as they stay together: last the fault's
/// own. Where earlier rules take some of the packets, they may do so on the way: then only the last.
std::vector<Stretch> stretches(const State& state, const Fault& fault, const Cube& packets,
                               std::uint32_t end) {
  const CubeSpace& space = state.space();
  std::vector<Stretch> made;
  const std::uint32_t root = state.table(fault.table).root;
  std::uint32_t table = root;
  const bool first = first_of_all(state, fault.rule, root, packets);
  Ids met;
  while (first && table != fault.table) {
    state.entries_meeting(table, packets, met);
    const auto all = std::find_if(met.begin(), met.end(), [&](std::uint32_t id) {
      return state.entry(id).jump != kNothing || space.contains(state.cube(id), packets);
    });
    if (all == met.end() || state.entry(*all).jump == kNothing ||
        !space.contains(state.cube(*all), packets)) {
      made.clear();
      break;
    }
    made.push_back(stretch_to(state, fault.rule, table, state.position(*all), packets));
    table = state.entry(*all).jump;
  }
  made.push_back(stretch_to(state, fault.rule, fault.table, end, packets));
  return made;
}

/// Puts the packets into a matcher of the stretch that looks at all that the rule looks at.
bool add_to_matcher(State& state, std::uint32_t number, const Stretch& stretch, Changes& changes) {
  const CubeSpace& space = state.space();
  const Cube rule = state.cube_of_rule(number);
  const Cube region = state.table(stretch.table).region;
  std::uint32_t best = kNothing;
  int fewest = kMostWrittenOut + 1;
  for (std::uint32_t i = stretch.first; i < stretch.last && fewest > 0; ++i) {
    const std::uint32_t id = state.table(stretch.table).matchers[i];
    const int open = open_bits(space, state.matcher(id).mask, rule, region, stretch.packets);
    if (open < 0 || open >= fewest) continue;
    fewest = open;
    best = id;
  }
  if (best == kNothing) return false;
  Ids met;
  state.entries_meeting(stretch.table, stretch.packets, met);
  bool added = false;
  for (const Cube& cube : written_out(space, state.matcher(best).mask, region, stretch.packets)) {
    if (holds_alike(state, met, best, cube)) continue;
    state.add_entry(best, cube, number, changes);
    added = true;
  }
  return added;
}

/// A new matcher at the end of the stretch.
void add_in_new_matcher(State& state, std::uint32_t rule, const Stretch& stretch,
                        Changes& changes) {
  const CubeSpace& space = state.space();
  const Cube region = state.table(stretch.table).region;
  const Cube cube = space.meet(state.cube_of_rule(rule), region);
  Cube mask = cube;
  for (std::size_t w = 0; w < space.words(); ++w) mask[w].mask &= ~region[w].mask;
  state.add_entry(state.add_matcher(stretch.table, stretch.last, mask, changes), cube, rule,
                  changes);
}

}  // namespace

bool repair(State& state, const Fault& fault, Changes& changes) {
  if (changes.added.size() > kMostAdded) return false;
  const CubeSpace& space = state.space();
  if (!space.overlap(state.cube_of_rule(fault.rule), fault.asked)) return false;
  const Cube rule = space.meet(state.cube_of_rule(fault.rule), state.table(fault.table).region);
  const bool misses = fault.entry == kNothing;
  if (!misses &&
      space.same_mask(rule, state.cube(fault.entry))) {  // the same packets: takes its place
    state.add_entry(state.entry(fault.entry).matcher, rule, fault.rule, changes);
    state.remove_entry(fault.entry, changes);
    return true;
  }
  const auto end = misses ? static_cast<std::uint32_t>(state.table(fault.table).matchers.size())
                          : state.position(fault.entry);
  const std::vector<Stretch> ways = stretches(state, fault, space.meet(rule, fault.asked), end);
  for (auto stretch = ways.rbegin(); stretch != ways.rend(); ++stretch) {
    if (add_to_matcher(state, fault.rule, *stretch, changes)) return true;
  }
  // Each packet that comes past a new matcher tries it.
  add_in_new_matcher(state, fault.rule,
                     *std::min_element(ways.begin(), ways.end(),
                                       [&state](const Stretch& a, const Stretch& b) {
                                         return state.weight_past(a.table, a.last) <
                                                state.weight_past(b.table, b.last);
                                       }),
                     changes);
  return true;
}

}  // namespace greynic::optimizer::live
