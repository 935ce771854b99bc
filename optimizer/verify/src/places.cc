#include "places.h"

#include <algorithm>
#include <bit>
#include <set>

namespace greynic::verify {
namespace {

constexpr std::uint32_t kFree = 0xffffffff;

template <typename T>
void append(std::string& text, const T& value) {
  text.append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::uint64_t hash_under(const std::uint64_t* value, const std::uint64_t* mask, std::size_t words) {
  std::uint64_t hash = 0;
  for (std::size_t w = 0; w < words; ++w) {
    hash = (hash ^ (value[w] & mask[w])) * 0x9e3779b97f4a7c15ULL;
    hash ^= hash >> 32;
  }
  return hash;
}

}  // namespace

Places::Places(const Pool& pool, std::uint32_t first_table) : pool_(pool), places_(1) {
  const Start start = start_of(first_table);
  start_ = start.place;
  most_jumps_ = start.jumps;
  by_text_ = {};  // as long as all entries
}

Places::Start Places::start_of(std::uint32_t table) {
  if (const auto known = known_.find(table); known != known_.end()) return known->second;
  Start start{kEnd, 0};
  if (const auto matchers = pool_.matchers.find(table); matchers != pool_.matchers.end()) {
    for (auto matcher = matchers->second.rbegin(); matcher != matchers->second.rend(); ++matcher) {
      start.place = place_of(*matcher, start.place, start.jumps);
    }
  }
  return known_[table] = start;
}

/// `jumps`: raised to the most that can follow one another from here on.
PlaceId Places::place_of(const std::vector<std::uint32_t>& matcher, PlaceId next, int& jumps) {
  Place place{{}, next, 0, {}};
  std::string text;
  // Values and fixed bits: of two rules alike in a matcher the first decides.
  std::set<std::vector<std::uint64_t>> seen;
  for (const std::uint32_t number : matcher) {
    const Entry& entry = pool_.entries[number];
    const std::uint64_t* const value = pool_.value(number);
    const std::uint64_t* const fixed = pool_.fixed(number);
    if (matcher.size() > 1 && !seen.emplace(value, value + 2 * pool_.words).second) continue;
    Step step{number, entry.jump != kNoJump, kEnd};
    if (step.jumps) {
      const Start to = start_of(entry.jump);
      step.to = to.place;
      jumps = std::max(jumps, to.jumps + 1);
    }
    if (std::all_of(fixed, fixed + pool_.words, [](std::uint64_t bits) { return bits == 0; })) {
      if (step.jumps) return step.to;
      place.next = kEnd;  // nothing comes past it
    }
    for (std::size_t w = 0; w < 2 * pool_.words; ++w) append(text, value[w]);  // and fixed
    append(text, entry.effect);
    append(text, step.jumps);
    append(text, step.to);
    place.steps.push_back(step);
  }
  if (place.steps.empty()) return next;
  append(text, place.next);
  const auto [known, fresh] =
      by_text_.try_emplace(std::move(text), static_cast<PlaceId>(places_.size()));
  if (fresh) {
    place.height = places_[place.next].height + 1;
    add_slots(place);
    places_.push_back(std::move(place));
  }
  return known->second;
}

void Places::add_slots(Place& place) const {
  place.slots.assign(std::bit_ceil(place.steps.size() * 2), kFree);
  place.looked_at.assign(pool_.words, 0);
  for (std::uint32_t i = 0; i < place.steps.size(); ++i) {
    const std::uint64_t* const mask = pool_.fixed(place.steps[i].entry);
    const bool known = std::any_of(place.masks.begin(), place.masks.end(), [&](const CubeBits& m) {
      return std::equal(m.begin(), m.end(), mask);
    });
    if (!known) place.masks.emplace_back(mask, mask + pool_.words);
    for (std::size_t w = 0; w < pool_.words; ++w) place.looked_at[w] |= mask[w];
    std::size_t at = hash_under(pool_.value(place.steps[i].entry), mask, pool_.words);
    while (place.slots[at & (place.slots.size() - 1)] != kFree) ++at;
    place.slots[at & (place.slots.size() - 1)] = i;
  }
}

const Step* Places::find(PlaceId id, const std::uint64_t* value) const {
  const Place& place = places_[id];
  for (const CubeBits& mask : place.masks) {
    for (std::size_t at = hash_under(value, mask.data(), pool_.words);; ++at) {
      const std::uint32_t slot = place.slots[at & (place.slots.size() - 1)];
      if (slot == kFree) break;
      const std::uint64_t* const held = pool_.value(place.steps[slot].entry);
      const std::uint64_t* const bits = pool_.fixed(place.steps[slot].entry);
      bool same = true;
      for (std::size_t w = 0; w < pool_.words; ++w) {
        same = same && ((held[w] ^ value[w]) & bits[w]) == 0;
      }
      if (same) return &place.steps[slot];
    }
  }
  return nullptr;
}

std::uint32_t Places::effect_of(const std::uint64_t* value) const {
  for (PlaceId at = start_; at != kEnd;) {
    const Step* const step = find(at, value);
    if (step != nullptr && !step->jumps) return pool_.entries[step->entry].effect;
    at = step != nullptr ? step->to : places_[at].next;
  }
  return kMiss;
}

bool Places::looks_at(PlaceId id, const Cube& cube) const {
  const std::uint64_t* const bits = mask(id);
  for (std::size_t w = 0; w < pool_.words; ++w) {
    if ((bits[w] & ~cube.fixed[w]) != 0) return false;
  }
  return true;
}

std::size_t Places::parts(PlaceId id, const Cube& cube) const {
  constexpr int kMany = 32;
  const std::uint64_t* const bits = mask(id);
  int open = 0;
  for (std::size_t w = 0; w < pool_.words; ++w) open += std::popcount(bits[w] & ~cube.fixed[w]);
  return std::size_t{1} << static_cast<unsigned>(std::min(open, kMany));
}

bool Places::take_all(PlaceId id, const Cube& cube, std::size_t steps) const {
  return places_[id].masks.size() == 1 && steps == parts(id, cube);
}

PlaceId Places::meeting(PlaceId a, PlaceId b) const {
  while (a != b) {
    PlaceId& higher = places_[a].height >= places_[b].height ? a : b;
    higher = places_[higher].next;
  }
  return a;
}

}  // namespace greynic::verify
