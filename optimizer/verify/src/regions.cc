#include "regions.h"

#include <algorithm>

#include "cover.h"

namespace greynic::verify {
namespace {

constexpr std::size_t kMostMet = 8192;            // steps of a place, by one cube
constexpr std::uint64_t kMostWalked = 1'000'000;  // comparisons, for one cube
constexpr std::size_t kMostPieces = 4096;         // of one cube
constexpr std::size_t kFewToMiss = 16;            // steps of a place, to be kept in mind
constexpr std::size_t kFewWays = 16;              // to a place: what is missed there, all may miss
constexpr std::size_t kMostMissed = 64;           // entries kept in mind at one place

}  // namespace

Regions::Regions(const Pool& pool, const Places& places, std::uint64_t& comparisons)
    : pool_(pool),
      places_(places),
      regions_(places.size()),
      ways_(places.size()),
      steps_(pool, places),
      back_(pool, places, *this, steps_) {
  const CubeBits none(pool.words, 0);
  regions_[places.start()] = {true, {none, none}, kEnd, 0, 0, nullptr, {}, false};
  regions_[places.start()].missed = std::make_shared<const std::vector<std::uint32_t>>();
  for (auto place = static_cast<PlaceId>(places.size() - 1); place != kEnd; --place) {
    if (!regions_[place].reached) continue;
    keep_in_mind(place, comparisons);
    Cube both;
    for (const Step& step : places[place].steps) {
      if (step.jumps && meet(place, step.entry, both)) come(step.to, both, place, &step);
    }
    come(places[place].next, regions_[place].common, place, nullptr);
  }
}

bool Regions::meet(PlaceId place, std::uint32_t entry, Cube& both) const {
  both = regions_[place].common;
  return narrow(pool_, entry, both);
}

/// All ways to the place are known by now.
void Regions::keep_in_mind(PlaceId place, std::uint64_t& comparisons) {
  Region& region = regions_[place];
  if (region.before == kEnd) return;  // the start
  region.missed = regions_[region.before].missed;
  if (region.edges > 1) return miss_on_all_ways(place, comparisons);
  if (region.by_jump != nullptr) return;
  const auto& steps = places_[region.before].steps;
  if (steps.size() > kFewToMiss || region.missed->size() + steps.size() > kMostMissed) return;
  auto more = std::make_shared<std::vector<std::uint32_t>>(*region.missed);
  for (const Step& step : steps) more->push_back(step.entry);
  region.missed = std::move(more);
  region.misses_kept = true;
}

/// What is known not to come on any of several ways.
void Regions::miss_on_all_ways(PlaceId place, std::uint64_t& comparisons) {
  Region& region = regions_[place];
  std::vector<std::uint32_t> candidates;
  const auto& held = *region.missed;
  Cube both;
  const auto suggest = [&](std::uint32_t entry) {
    if (candidates.size() >= kMostMissed || !meet(place, entry, both)) return;
    const auto is = [&](std::uint32_t other) { return other == entry; };
    if (std::ranges::any_of(held, is) || std::ranges::any_of(candidates, is)) return;
    candidates.push_back(entry);
  };
  std::size_t from = 0;
  for (const WayTo& way : ways_[place]) {
    if (++from > kFewWays) break;
    if (way.by_jump == nullptr && places_[way.from].steps.size() <= kFewToMiss) {
      for (const Step& step : places_[way.from].steps) suggest(step.entry);
    }
    for (const std::uint32_t entry : *regions_[way.from].missed) suggest(entry);
  }
  for (const WayTo& way : ways_[place]) {
    if (candidates.empty()) return;
    std::erase_if(candidates, [&](std::uint32_t entry) { return !gone(way, entry, comparisons); });
  }
  if (candidates.empty()) return;
  auto more = std::make_shared<std::vector<std::uint32_t>>(held);
  for (const std::uint32_t entry : candidates) {
    if (more->size() < kMostMissed) more->push_back(entry);
  }
  region.missed = std::move(more);
}

/// No packet of the entry comes on the way.
bool Regions::gone(const WayTo& way, std::uint32_t entry, std::uint64_t& comparisons) {
  Cube cube;
  if (!meet(way.from, entry, cube)) return true;
  if (way.by_jump != nullptr && !narrow(pool_, way.by_jump->entry, cube)) return true;
  const auto& missed = *regions_[way.from].missed;
  comparisons += 1 + missed.size();
  const auto takes_all = [&](std::uint32_t taker) { return contains(pool_, taker, cube); };
  if (std::ranges::any_of(missed, takes_all)) return true;
  return way.by_jump == nullptr && steps_.take_all(way.from, cube, comparisons);
}

void Regions::come(PlaceId place, const Cube& common, PlaceId from, const Step* by_jump) {
  Region& region = regions_[place];
  ways_[place].push_back({from, by_jump});
  if (!region.reached) {
    region = {true, common, from, regions_[from].depth + 1, 1, by_jump, {}, false};
    return;
  }
  ++region.edges;
  for (std::size_t w = 0; w < pool_.words; ++w) {
    region.common.fixed[w] &= common.fixed[w] & ~(region.common.value[w] ^ common.value[w]);
    region.common.value[w] &= region.common.fixed[w];
  }
  while (region.before != from) {
    PlaceId& later = regions_[region.before].depth >= regions_[from].depth ? region.before : from;
    later = regions_[later].before;
  }
  region.depth = regions_[from].depth + 1;
}

bool Regions::miss(PlaceId place, const Cube& cube, std::vector<Cube>& missing,
                   std::uint64_t& comparisons) {
  std::vector<std::uint32_t> taken;
  steps_.meeting(place, cube, taken, comparisons);
  if (places_.take_all(place, cube, taken.size())) return true;
  if (taken.size() > kMostMet) return false;
  for (std::uint32_t& step : taken) step = places_[place].steps[step].entry;
  subtract(pool_, cube, taken, missing, comparisons);
  return true;
}

bool Regions::walk(PlaceId at, Cube cube, PlaceId to, std::vector<Cube>& arrived,
                   std::uint64_t most, std::uint64_t& comparisons) {
  while (at > to) {  // ways lead to smaller numbers
    if (comparisons > most || arrived.size() > kMostPieces) return false;
    ++comparisons;
    if (places_.looks_at(at, cube)) {
      const Step* const step = places_.find(at, cube.value.data());
      if (step != nullptr && !step->jumps) return true;
      at = step != nullptr ? step->to : places_[at].next;
      continue;
    }
    std::vector<std::uint32_t> met;
    steps_.meeting(at, cube, met, comparisons);
    if (met.size() > kMostMet) return false;
    for (const std::uint32_t number : met) {
      const Step& step = places_[at].steps[number];
      Cube part = cube;
      narrow(pool_, step.entry, part);
      if (step.jumps && !walk(step.to, part, to, arrived, most, comparisons)) return false;
    }
    std::vector<Cube> missing;
    if (!miss(at, cube, missing, comparisons)) return false;
    if (missing.empty()) return true;
    for (std::size_t i = 1; i < missing.size(); ++i) {
      if (!walk(places_[at].next, missing[i], to, arrived, most, comparisons)) return false;
    }
    cube = std::move(missing.front());
    at = places_[at].next;
  }
  if (at == to) arrived.push_back(std::move(cube));
  return true;
}

bool Regions::leaves_before(PlaceId place, const Cube& cube, std::uint64_t& comparisons) {
  Cube part = cube;
  for (PlaceId at = place; regions_[at].before != kEnd; at = regions_[at].before) {
    const Region& region = regions_[at];
    ++comparisons;
    if (region.edges > 1 || region.misses_kept) continue;
    if (region.by_jump != nullptr ? !narrow(pool_, region.by_jump->entry, part)
                                  : steps_.take_all(region.before, part, comparisons)) {
      return true;
    }
  }
  return false;
}

void Regions::come_to(PlaceId place, const Cube& cube, std::vector<Cube>& coming,
                      std::uint64_t& comparisons) {
  std::vector<Cube> pieces = {cube};
  for (PlaceId at = place; regions_[at].before != kEnd && !pieces.empty();
       at = regions_[at].before) {
    const Region& region = regions_[at];
    if (region.misses_kept) continue;
    if (region.edges == 1 && region.by_jump != nullptr) {
      std::size_t left = 0;
      for (std::size_t i = 0; i < pieces.size(); ++i) {
        if (!narrow(pool_, region.by_jump->entry, pieces[i])) continue;
        if (left != i) pieces[left] = std::move(pieces[i]);
        ++left;
      }
      pieces.resize(left);
      continue;
    }
    std::vector<Cube> arrived;
    for (Cube& piece : pieces) {
      const std::size_t before = arrived.size();
      const std::uint64_t most = comparisons + kMostWalked;
      const bool followed = region.edges > 1
                                ? walk(region.before, piece, at, arrived, most, comparisons)
                                : miss(region.before, piece, arrived, comparisons);
      if (followed && arrived.size() <= kMostPieces) continue;
      arrived.resize(before);
      arrived.push_back(piece);
    }
    pieces = std::move(arrived);
  }
  coming.insert(coming.end(), pieces.begin(), pieces.end());
}

}  // namespace greynic::verify
