#include "src/live/proof.h"

#include <algorithm>

namespace greynic::optimizer::live {
namespace {

/// Packet sets and rules looked at in one step: some 20 ms. Then a new layout is the better choice.
constexpr std::uint64_t kMostSteps = 100'000;

/// Rules that are looked at one by one for each entry; of more, the index finds those that meet it.
constexpr std::size_t kFewRules = 32;

/// Calls visit(piece) for cubes that together are `packets` without `taken`, until it says false;
/// leaves what is taken in `packets`.
template <typename Visit>
bool for_pieces_outside(Cube& packets, const Cube& taken, std::size_t words, Visit visit) {
  for (std::size_t w = 0; w < words; ++w) {
    for (Word open = taken[w].mask & ~packets[w].mask; open != 0; open &= open - 1) {
      const Word bit = open & (~open + 1);
      const Word wanted = taken[w].value & bit;
      packets[w].mask |= bit;
      packets[w].value |= bit ^ wanted;
      if (!visit(packets)) return false;
      packets[w].value = (packets[w].value & ~bit) | wanted;
    }
  }
  return true;
}

}  // namespace

bool StepProof::out_of_steps() {
  given_up_ = given_up_ || ++steps_ > std::min(kMostSteps, most_);
  return out_of_work();
}

bool StepProof::out_of_work() {
  given_up_ = given_up_ || state_.looked_at() - before_ > most_;
  return given_up_;
}

bool StepProof::holds(std::uint32_t root, const Cube& changed, std::uint32_t came) {
  root_ = root;
  came_ = came;
  if (!all_right(changed)) return false;
  for (const Cube& uncovered : changes_.uncovered) {
    if (!all_right(uncovered)) return false;
  }
  Ids in_table;
  Ids rules;
  for (std::size_t i = 0; i < changes_.added.size(); ++i) {
    const std::uint32_t entry = changes_.added[i];
    while (state_.has_entry(entry)) {
      const Cube packets = state_.cube(entry);
      state_.entries_meeting(state_.matcher(state_.entry(entry).matcher).table, packets, in_table);
      state_.rules_meeting(root, packets, rules);
      const auto fault = fault_of_entry(entry, packets, in_table, rules);
      if (out_of_work()) return false;
      if (!fault) break;
      if (!repair_(*fault)) return false;
    }
  }
  return true;
}

/// Packets of this cube, table by table.
bool StepProof::all_right(const Cube& changed) {
  Arrivals arrivals;
  arrivals[{state_.table(root_).rank, root_}] = changed;
  while (!arrivals.empty()) {
    const auto [at, packets] = *arrivals.begin();
    arrivals.erase(arrivals.begin());
    Arrivals next;
    while (const auto fault = fault_in_table(at.second, packets, next)) {
      if (given_up_ || !repair_(*fault)) return false;
      next.clear();
    }
    if (given_up_) return false;
    for (const auto& [place, some] : next) {
      const auto [known, fresh] = arrivals.try_emplace(place, some);
      if (!fresh) known->second = state_.space().around(known->second, some);
    }
  }
  return true;
}

std::optional<Fault> StepProof::fault_in_table(std::uint32_t table, const Cube& packets,
                                               Arrivals& next) {
  const CubeSpace& space = state_.space();
  Ids met;
  state_.entries_meeting(table, packets, met);
  Ids near;
  Ids rules = {came_};
  if (came_ == kNothing) state_.rules_meeting(root_, packets, rules);
  for (const std::uint32_t id : met) {
    const Entry& entry = state_.entry(id);
    const Cube& cube = state_.cube(id);
    if (entry.jump != kNothing) {
      const Cube some = space.meet(cube, packets);
      const auto [known, fresh] =
          next.try_emplace({state_.table(entry.jump).rank, entry.jump}, some);
      if (!fresh) known->second = space.around(known->second, some);
    } else {
      if (rules.size() > kFewRules) state_.rules_meeting(root_, space.meet(cube, packets), near);
      const Ids& asked = rules.size() > kFewRules ? near : rules;
      const auto fault = fault_of_entry(id, packets, met, asked);
      if (fault || given_up_) return fault;
    }
    if (space.contains(cube, packets)) return std::nullopt;
  }
  for (const std::uint32_t rule : rules) {
    if (!space.overlap(state_.cube_of_rule(rule), packets)) continue;
    const Cube taken = space.meet(state_.cube_of_rule(rule), packets);
    if (taken_before(met, kNothing, taken)) continue;
    if (!follow(table, kNothing, taken)) return Fault{table, kNothing, fault_rule_, packets};
    if (given_up_) break;
  }
  return std::nullopt;
}

std::optional<Fault> StepProof::fault_of_entry(std::uint32_t id, const Cube& packets,
                                               const Ids& in_table, const Ids& rules) {
  const CubeSpace& space = state_.space();
  const Entry& entry = state_.entry(id);
  const KeptRule& owner = state_.last_owner(id);
  const Cube here = space.meet(state_.cube(id), packets);
  const std::uint32_t table = state_.matcher(entry.matcher).table;
  for (const std::uint32_t rule : rules) {
    if (out_of_steps() || state_.rule(rule).order >= owner.order) break;
    if (state_.rule(rule).effect == owner.effect) continue;
    if (!space.overlap(state_.cube_of_rule(rule), here)) continue;
    const Cube taken = space.meet(state_.cube_of_rule(rule), here);
    if (taken_before(in_table, state_.position(id), taken)) continue;
    if (!follow(table, id, taken)) return Fault{table, id, fault_rule_, packets};
  }
  return std::nullopt;
}

/// Does one entry before this position hold them all?
bool StepProof::taken_before(const Ids& met, std::size_t until, const Cube& packets) const {
  for (const std::uint32_t id : met) {
    if (state_.position(id) >= until) return false;
    if (state_.space().contains(state_.cube(id), packets)) return true;
  }
  return false;
}

/// False: some of the packets are decided by this entry (kNothing: miss in this table), and wrongly.
bool StepProof::follow(std::uint32_t table, std::uint32_t entry, const Cube& packets) {
  wanted_table_ = table;
  wanted_entry_ = entry;
  return follow_into(root_, packets);
}

bool StepProof::follow_into(std::uint32_t table, const Cube& packets) {
  if (out_of_steps() || state_.table(table).rank > state_.table(wanted_table_).rank) return true;
  Ids met;
  state_.entries_meeting(table, packets, met);
  return follow_past(table, met, 0, packets);
}

bool StepProof::follow_past(std::uint32_t table, const Ids& met, std::size_t next, Cube packets) {
  const CubeSpace& space = state_.space();
  for (; next < met.size(); ++next) {
    if (out_of_steps()) return true;
    const std::uint32_t id = met[next];
    if (!space.overlap(state_.cube(id), packets)) continue;
    if (wanted_entry_ != kNothing && table == wanted_table_ &&
        state_.position(id) > state_.position(wanted_entry_)) {
      return true;
    }
    if (!for_pieces_outside(packets, state_.cube(id), space.words(), [&](const Cube& piece) {
          return follow_past(table, met, next + 1, piece);
        })) {
      return false;
    }
    if (id == wanted_entry_) return right(packets);
    const std::uint32_t jump = state_.entry(id).jump;
    return jump == kNothing || follow_into(jump, packets);
  }
  return wanted_entry_ != kNothing || table != wanted_table_ || right(packets);
}

bool StepProof::right(const Cube& packets) {
  Ids rules;
  state_.rules_meeting(root_, packets, rules);
  const std::uint32_t effect =
      wanted_entry_ == kNothing ? kNothing : state_.last_owner(wanted_entry_).effect;
  return right_from(rules, 0, packets, effect);
}

/// The packets are in none of the rules before `next`.
bool StepProof::right_from(const Ids& rules, std::size_t next, Cube packets, std::uint32_t effect) {
  const CubeSpace& space = state_.space();
  for (; next < rules.size(); ++next) {
    if (out_of_steps()) return true;
    const std::uint32_t rule = rules[next];
    const Cube& cube = state_.cube_of_rule(rule);
    if (!space.overlap(cube, packets)) continue;
    if (state_.rule(rule).effect != effect) {
      fault_rule_ = rule;
      return false;
    }
    if (space.contains(cube, packets)) return true;
    return for_pieces_outside(packets, cube, space.words(), [&](const Cube& piece) {
      return right_from(rules, next + 1, piece, effect);
    });
  }
  return effect == kNothing;
}

}  // namespace greynic::optimizer::live
