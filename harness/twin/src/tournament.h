#pragma once

/// The earliest of a fixed number of times, one of which changes at a time: a complete binary tree
/// of winners. Setting one compares it with its rival on each level; rivals are known beforehand,
/// so their loads overlap and only the comparisons follow one another. They compare times by their
/// bits, which for times from 0 on are in the same order as the times, because integers take a
/// third of the cycles.

#include <bit>
#include <cstdint>
#include <vector>

#include "stage.h"

namespace greynic::twin {

class Tournament {
 public:
  Tournament() = default;
  explicit Tournament(std::uint32_t count) : first_leaf_(std::bit_ceil(count)) {
    nodes_.assign(2 * std::size_t{first_leaf_}, {});
    for (std::uint32_t leaf = 0; leaf < first_leaf_; ++leaf) {
      nodes_[first_leaf_ + leaf].leaf = leaf;
    }
    for (std::uint32_t at = first_leaf_ - 1; at > 0; --at) nodes_[at] = nodes_[2 * at];
  }

  [[nodiscard]] Time time() const { return std::bit_cast<Time>(nodes_[1].bits); }
  /// The leaf whose time that is; of equal ones the first.
  [[nodiscard]] std::uint32_t leaf() const { return nodes_[1].leaf; }

  /// `time` >= 0; kNever: does not take part.
  void set(std::uint32_t leaf, Time time) {
    Node best{std::bit_cast<std::uint64_t>(time), leaf};
    std::uint32_t at = first_leaf_ + leaf;
    nodes_[at] = best;
    for (; at > 1; at /= 2) {
      const Node rival = nodes_[at ^ 1U];
      // A rival on the left wins a tie as well. No branches.
      const bool loses = rival.bits < best.bits + (at & 1U);
      best.bits = loses ? rival.bits : best.bits;
      best.leaf = loses ? rival.leaf : best.leaf;
      nodes_[at / 2] = best;
    }
  }

 private:
  struct Node {
    std::uint64_t bits = std::bit_cast<std::uint64_t>(kNever);
    std::uint32_t leaf = 0;
  };
  std::uint32_t first_leaf_ = 1;
  std::vector<Node> nodes_;  ///< from 1, the root
};

}  // namespace greynic::twin
