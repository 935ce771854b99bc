#include "rule_index.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "cover.h"

namespace greynic::verify {

RuleIndex::RuleIndex(const Pool& pool, const std::vector<std::uint32_t>& rules)
    : pool_(pool), rules_(rules), leaf_of_(rules.size(), kNone), present_(rules.size(), false) {
  std::vector<std::uint32_t> all(rules.size());
  std::iota(all.begin(), all.end(), 0U);
  grow(std::move(all), kNone);
}

unsigned RuleIndex::side(std::uint32_t place, std::uint32_t bit) const {
  const std::uint64_t mark = std::uint64_t{1} << bit % 64;
  if ((pool_.fixed(rules_[place])[bit / 64] & mark) == 0) return 2;
  return (pool_.value(rules_[place])[bit / 64] & mark) != 0 ? 1 : 0;
}

std::uint32_t RuleIndex::grow(std::vector<std::uint32_t> places, std::uint32_t parent) {
  constexpr std::size_t kLeaf = 8;
  const auto id = static_cast<std::uint32_t>(nodes_.size());
  nodes_.emplace_back();
  nodes_[id].parent = parent;
  const std::uint32_t bit = places.size() <= kLeaf ? kNone : best_bit(places, parent);
  if (bit == kNone) {
    for (const std::uint32_t place : places) leaf_of_[place] = id;
    nodes_[id].places = std::move(places);
    return id;
  }
  nodes_[id].bit = bit;
  std::vector<std::uint32_t> sides[3];
  for (const std::uint32_t place : places) sides[side(place, bit)].push_back(place);
  places = {};
  for (unsigned i = 0; i < 3; ++i) {
    if (sides[i].empty()) continue;
    const std::uint32_t child = grow(std::move(sides[i]), id);
    nodes_[id].child[i] = child;
  }
  return id;
}

/// The bit that most of the rules look at, on both sides; none that was asked for above.
std::uint32_t RuleIndex::best_bit(const std::vector<std::uint32_t>& places,
                                  std::uint32_t parent) const {
  std::vector<std::uint64_t> open(pool_.words, ~std::uint64_t{0});
  for (std::uint32_t at = parent; at != kNone; at = nodes_[at].parent) {
    open[nodes_[at].bit / 64] &= ~(std::uint64_t{1} << nodes_[at].bit % 64);
  }
  std::vector<std::uint32_t> ones(pool_.words * 64, 0);
  std::vector<std::uint32_t> zeros(pool_.words * 64, 0);
  constexpr std::size_t kLookedAt = 200;
  const std::size_t step = places.size() / kLookedAt + 1;
  for (std::size_t i = 0; i < places.size(); i += step) {
    const std::uint32_t rule = rules_[places[i]];
    for (std::size_t w = 0; w < pool_.words; ++w) {
      for (std::uint64_t bits = pool_.fixed(rule)[w] & open[w]; bits != 0; bits &= bits - 1) {
        const auto shift = static_cast<std::size_t>(std::countr_zero(bits));
        const bool one = (pool_.value(rule)[w] >> shift & 1) != 0;
        ++(one ? ones : zeros)[w * 64 + shift];
      }
    }
  }
  std::uint32_t best = kNone;
  std::uint32_t best_score = 0;
  for (std::uint32_t bit = 0; bit < ones.size(); ++bit) {
    const std::uint32_t score = ones[bit] + zeros[bit] + 4 * std::min(ones[bit], zeros[bit]);
    if (score <= best_score) continue;
    best_score = score;
    best = bit;
  }
  return best;
}

void RuleIndex::insert(std::uint32_t place) {
  present_[place] = true;
  for (std::uint32_t at = leaf_of_[place]; at != kNone; at = nodes_[at].parent) {
    ++nodes_[at].count;
    nodes_[at].first = std::min(nodes_[at].first, place);
  }
}

void RuleIndex::erase(std::uint32_t place) {
  present_[place] = false;
  for (std::uint32_t at = leaf_of_[place]; at != kNone; at = nodes_[at].parent) {
    --nodes_[at].count;
    if (nodes_[at].first == place) nodes_[at].first = first_of(nodes_[at]);
  }
}

std::uint32_t RuleIndex::first_of(const Node& node) const {
  std::uint32_t first = kNone;
  for (const std::uint32_t place : node.places) {
    if (present_[place]) first = std::min(first, place);
  }
  for (const std::uint32_t child : node.child) {
    if (child != kNone) first = std::min(first, nodes_[child].first);
  }
  return first;
}

void RuleIndex::meeting(const std::uint64_t* value, const std::uint64_t* fixed, std::uint32_t bound,
                        std::vector<std::uint32_t>& found, std::uint64_t& comparisons) const {
  found.clear();
  open_.assign(1, 0);
  while (!open_.empty()) {
    const Node& node = nodes_[open_.back()];
    open_.pop_back();
    ++comparisons;
    if (node.count == 0 || node.first >= bound) continue;
    if (node.bit == kNone) {
      comparisons += node.places.size();
      for (const std::uint32_t place : node.places) {
        if (!present_[place] || place >= bound) continue;
        const std::uint64_t* const held = pool_.value(rules_[place]);
        const std::uint64_t* const bits = pool_.fixed(rules_[place]);
        bool meets = true;
        for (std::size_t w = 0; w < pool_.words && meets; ++w) {
          meets = ((held[w] ^ value[w]) & bits[w] & fixed[w]) == 0;
        }
        if (meets) found.push_back(place);
      }
      continue;
    }
    const bool known = (fixed[node.bit / 64] >> node.bit % 64 & 1) != 0;
    const unsigned wanted = value[node.bit / 64] >> node.bit % 64 & 1;
    for (unsigned i = 0; i < 3; ++i) {
      if (node.child[i] == kNone || (known && i == 1 - wanted)) continue;
      open_.push_back(node.child[i]);
    }
  }
  std::sort(found.begin(), found.end());
}

void RuleIndex::meeting(const Cube& cube, std::vector<std::uint32_t>& found, CubeBits& looked_at,
                        std::uint64_t& comparisons) const {
  found.clear();
  open_.assign(1, 0);
  while (!open_.empty()) {
    const Node& node = nodes_[open_.back()];
    open_.pop_back();
    ++comparisons;
    if (node.count == 0) continue;
    if (node.bit == kNone) {
      comparisons += node.places.size();
      for (const std::uint32_t place : node.places) {
        const std::uint32_t rule = rules_[place];
        if (!present_[place] || differs(cube, pool_.value(rule), pool_.fixed(rule), looked_at)) {
          continue;
        }
        found.push_back(place);
      }
      continue;
    }
    const std::uint64_t mark = std::uint64_t{1} << node.bit % 64;
    const bool known = (cube.fixed[node.bit / 64] & mark) != 0;
    const unsigned wanted = (cube.value[node.bit / 64] & mark) != 0 ? 1 : 0;
    for (unsigned i = 0; i < 3; ++i) {
      if (node.child[i] == kNone) continue;
      if (known && i == 1 - wanted) {
        looked_at[node.bit / 64] |= mark;
      } else {
        open_.push_back(node.child[i]);
      }
    }
  }
}

}  // namespace greynic::verify
