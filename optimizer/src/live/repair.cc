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

/// Puts the packets into a matcher between two positions that looks at all that the rule looks at.
bool add_to_matcher(State& state, const Fault& fault, const Cube& packets, const Ids& met,
                    std::uint32_t first, std::uint32_t end, Changes& changes) {
  const CubeSpace& space = state.space();
  const Cube rule = state.cube_of_rule(fault.rule);
  const Cube region = state.table(fault.table).region;
  std::uint32_t best = kNothing;
  int fewest = kMostWrittenOut + 1;
  for (std::uint32_t i = first; i < end && fewest > 0; ++i) {
    const std::uint32_t id = state.table(fault.table).matchers[i];
    const int open = open_bits(space, state.matcher(id).mask, rule, region, packets);
    if (open < 0 || open >= fewest) continue;
    fewest = open;
    best = id;
  }
  if (best == kNothing) return false;
  bool added = false;
  for (const Cube& cube : written_out(space, state.matcher(best).mask, region, packets)) {
    if (holds_alike(state, met, best, cube)) continue;
    state.add_entry(best, cube, fault.rule, changes);
    added = true;
  }
  return added;
}

}  // namespace

bool repair(State& state, const Fault& fault, Changes& changes) {
  if (changes.added.size() > kMostAdded) return false;
  const CubeSpace& space = state.space();
  const Cube region = state.table(fault.table).region;
  if (!space.overlap(state.cube_of_rule(fault.rule), fault.asked)) return false;
  const Cube rule = space.meet(state.cube_of_rule(fault.rule), region);
  const Cube packets = space.meet(rule, fault.asked);
  const bool misses = fault.entry == kNothing;
  const auto end = misses ? static_cast<std::uint32_t>(state.table(fault.table).matchers.size())
                          : state.position(fault.entry);
  if (!misses &&
      space.same_mask(rule, state.cube(fault.entry))) {  // the same packets: takes its place
    state.add_entry(state.entry(fault.entry).matcher, rule, fault.rule, changes);
    state.remove_entry(fault.entry, changes);
    return true;
  }
  // Behind what wins over the rule, as far as it stands here at all; the proof asks for the rest.
  std::uint32_t first = 0;
  Ids met;
  state.entries_meeting(fault.table, packets, met);
  for (const std::uint32_t id : met) {
    const Entry& entry = state.entry(id);
    if (entry.jump != kNothing || state.position(id) >= end) continue;
    const KeptRule& owner = state.last_owner(id);
    if (owner.order < state.rule(fault.rule).order &&
        owner.effect != state.rule(fault.rule).effect) {
      first = std::max(first, state.position(id) + 1);
    }
  }
  if (add_to_matcher(state, fault, packets, met, first, end, changes)) return true;
  Cube mask = rule;
  for (std::size_t w = 0; w < space.words(); ++w) mask[w].mask &= ~region[w].mask;
  state.add_entry(state.add_matcher(fault.table, end, mask, changes), rule, fault.rule, changes);
  return true;
}

}  // namespace greynic::optimizer::live
