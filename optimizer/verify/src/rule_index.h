#pragma once

/// Rules that come and go, to be asked for those that meet a cube.
///
/// A tree over the rules' bits: each inner node asks for one bit and has a child for the rules that
/// want 0 there, one for 1, and one for those that do not look. Nodes know how many of their rules
/// are present, and the first of these.

#include <cstdint>
#include <utility>
#include <vector>

#include "cover.h"
#include "pool.h"

namespace greynic::verify {

class RuleIndex {
 public:
  static constexpr std::uint32_t kNoRule = 0xffffffff;
  /// Over these rules of the pool; none is present at first. They are asked for by their places in
  /// `rules`.
  RuleIndex(const Pool& pool, const std::vector<std::uint32_t>& rules);

  void insert(std::uint32_t place);
  void erase(std::uint32_t place);

  /// Present rules before `bound` that meet the cube, in order. Each node and rule looked at counts
  /// in `comparisons`.
  void meeting(const std::uint64_t* value, const std::uint64_t* fixed, std::uint32_t bound,
               std::vector<std::uint32_t>& found, std::uint64_t& comparisons) const;
  /// The same for all present rules. For the others, bits of the cube that tell it apart from them go to `looked_at`.
  void meeting(const Cube& cube, std::vector<std::uint32_t>& found, CubeBits& looked_at,
               std::uint64_t& comparisons) const;
  /// The first present rule that contains the cube; kNoRule when none does.
  [[nodiscard]] std::uint32_t first_containing(const Cube& cube, std::uint64_t& comparisons) const {
    return containing(
        cube, kNoRule, [](std::uint32_t) { return true; }, comparisons);
  }
  /// The first of those before `bound` that are also `wanted`.
  template <typename Wanted>
  [[nodiscard]] std::uint32_t containing(const Cube& cube, std::uint32_t bound,
                                         const Wanted& wanted, std::uint64_t& comparisons) const;

 private:
  static constexpr std::uint32_t kNone = 0xffffffff;
  struct Node {
    std::uint32_t parent = kNone;
    std::uint32_t bit = kNone;  ///< kNone: a leaf
    std::uint32_t child[3] = {kNone, kNone, kNone};
    std::vector<std::uint32_t> places;  ///< of a leaf
    std::uint32_t count = 0;            ///< present
    std::uint32_t first = kNone;        ///< present
  };
  std::uint32_t grow(std::vector<std::uint32_t> places, std::uint32_t parent);
  [[nodiscard]] std::uint32_t best_bit(const std::vector<std::uint32_t>& places,
                                       std::uint32_t parent) const;
  /// 0, 1, or 2 for a rule that does not look.
  [[nodiscard]] unsigned side(std::uint32_t place, std::uint32_t bit) const;
  [[nodiscard]] std::uint32_t first_of(const Node& node) const;

  const Pool& pool_;
  const std::vector<std::uint32_t>& rules_;
  std::vector<Node> nodes_;
  std::vector<std::uint32_t> leaf_of_;
  std::vector<bool> present_;
  mutable std::vector<std::uint32_t> open_;  ///< nodes that meeting() has to look at
};

template <typename Wanted>
std::uint32_t RuleIndex::containing(const Cube& cube, std::uint32_t bound, const Wanted& wanted,
                                    std::uint64_t& comparisons) const {
  std::uint32_t first = kNoRule;
  open_.assign(1, 0);
  while (!open_.empty()) {
    const Node& node = nodes_[open_.back()];
    open_.pop_back();
    ++comparisons;
    if (node.count == 0 || node.first >= bound) continue;
    if (node.bit == kNone) {
      comparisons += node.places.size();
      for (const std::uint32_t place : node.places) {
        if (present_[place] && place < bound && contains(pool_, rules_[place], cube) &&
            wanted(place)) {
          first = place;
          bound = place;
        }
      }
      continue;
    }
    // A rule that looks where the cube is open contains none of it.
    const bool known = (cube.fixed[node.bit / 64] >> node.bit % 64 & 1) != 0;
    const unsigned side = cube.value[node.bit / 64] >> node.bit % 64 & 1;
    if (known && node.child[side] != kNone) open_.push_back(node.child[side]);
    if (node.child[2] != kNone) open_.push_back(node.child[2]);
  }
  return first;
}

/// Some entries of the pool, all present.
struct FullIndex {
  FullIndex(const Pool& pool, std::vector<std::uint32_t> some)
      : entries(std::move(some)), index(pool, entries) {
    for (std::uint32_t i = 0; i < entries.size(); ++i) index.insert(i);
  }
  FullIndex(const FullIndex&) = delete;
  FullIndex& operator=(const FullIndex&) = delete;

  const std::vector<std::uint32_t> entries;
  RuleIndex index;
};

}  // namespace greynic::verify
