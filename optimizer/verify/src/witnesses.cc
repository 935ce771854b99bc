#include "witnesses.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "cover.h"

namespace greynic::verify {
namespace {

constexpr std::size_t kFew = 64;  // rules of one effect that are simply looked through

}  // namespace

Witnesses::Witnesses(const Pool& pool, const Places& places, const Regions& regions,
                     std::uint64_t& comparisons, std::uint64_t most_comparisons)
    : pool_(pool),
      places_(places),
      regions_(regions),
      comparisons_(comparisons),
      most_(most_comparisons),
      of_place_(places.size()),
      last_of_(places.size()),
      added_at_(pool.rules.size(), kEnd),
      followed_at_(places.size(), kEnd) {
  for (std::uint32_t rule = 0; rule < pool.rules.size(); ++rule) {
    by_effect_[pool.entries[pool.rules[rule]].effect].push_back(rule);
  }
  for (PlaceId place = kEnd + 1; place < places.size() && !out_of_comparisons(); ++place) {
    if (regions.reached(place)) find(place);
  }
}

void Witnesses::add(PlaceId place, std::uint32_t rule) {
  if (added_at_[rule] == place) return;
  added_at_[rule] = place;
  of_place_[place].push_back(rule);
}

void Witnesses::find(PlaceId place) {
  for (const Step& step : places_[place].steps) {
    std::uint32_t last = 0;
    if (!step.jumps) {
      for (const std::uint32_t rule : of_entry(place, step.entry)) {
        add(place, rule);
        last = std::max(last, rule);
      }
    }
    last_of_[place].push_back(last);
    if (!step.jumps || !regions_.reached(step.to)) continue;
    const PlaceId met = places_.meeting(step.to, places_[place].next);
    for (PlaceId at = step.to; at != met; at = places_[at].next) {
      if (std::exchange(followed_at_[at], place) == place) break;
      comparisons_ += of_place_[at].size();
      for (const std::uint32_t rule : of_place_[at]) add(place, rule);
    }
  }
}

/// Rules of the effect that meet the cube.
RuleNumbers Witnesses::candidates(std::uint32_t effect, const Cube& cube) {
  const auto found = by_effect_.find(effect);
  if (found == by_effect_.end()) return {};
  RuleNumbers result;
  if (found->second.size() <= kFew) {
    comparisons_ += found->second.size();
    for (const std::uint32_t rule : found->second) {
      if (meets(pool_, pool_.rules[rule], cube)) result.push_back(rule);
    }
    return result;
  }
  auto& held = indexes_[effect];
  if (!held) {
    std::vector<std::uint32_t> entries;
    for (const std::uint32_t rule : found->second) entries.push_back(pool_.rules[rule]);
    held = std::make_unique<FullIndex>(pool_, std::move(entries));
  }
  held->index.meeting(cube.value.data(), cube.fixed.data(), 0xffffffff, result, comparisons_);
  for (std::uint32_t& place : result) place = found->second[place];
  return result;
}

/// The narrowest rule that contains the packets of the entry; else those inside of it, as the
/// prefixes of a port range that the set writes out; else all that meet it.
RuleNumbers Witnesses::of_entry(PlaceId place, std::uint32_t entry) {
  Cube cube;
  if (!regions_.meet(place, entry, cube)) return {};
  const RuleNumbers meeting = candidates(pool_.entries[entry].effect, cube);
  std::uint32_t best = 0;
  int most_bits = -1;
  RuleNumbers inside;
  for (const std::uint32_t rule : meeting) {
    const std::uint64_t* const fixed = pool_.fixed(pool_.rules[rule]);
    int bits = 0;
    int beyond = 0;
    bool contained = true;
    for (std::size_t w = 0; w < pool_.words; ++w) {
      bits += std::popcount(fixed[w]);
      beyond += std::popcount(fixed[w] & ~cube.fixed[w]);
      contained = contained && (cube.fixed[w] & ~fixed[w] & ~regions_.common(place).fixed[w]) == 0;
    }
    if (beyond == 0 && bits > most_bits) {
      most_bits = bits;
      best = rule;
    }
    if (contained) inside.push_back(rule);
  }
  if (most_bits >= 0) return {best};
  return inside.empty() ? meeting : inside;
}

}  // namespace greynic::verify
