#pragma once

/// Cubes that come and go, to be asked for those that meet a cube: a tree that asks for one bit in
/// each node, with a child for the cubes that want 0 there, one for 1, and one for those that do
/// not look. Leaves that grow too large are split.

#include <cstdint>
#include <vector>

#include "src/live/cube.h"

namespace greynic::optimizer::live {

using Ids = std::vector<std::uint32_t>;

class CubeIndex {
 public:
  CubeIndex() : nodes_(1) {}

  /// The first cubes: splits them better than one insert after another. `cubes` are by id.
  void build(Ids ids, const std::vector<Cube>& cubes, std::size_t words);
  void insert(std::uint32_t id, const std::vector<Cube>& cubes, std::size_t words);
  void erase(std::uint32_t id, const std::vector<Cube>& cubes);

  /// Those that meet the cube, in no order. Returns how many nodes and cubes were looked at.
  std::size_t meeting(const Cube& cube, const std::vector<Cube>& cubes, std::size_t words,
                      Ids& found) const;

 private:
  struct Node {
    int bit = -1;  ///< -1: a leaf
    std::uint32_t child[3] = {0, 0, 0};
    std::uint32_t count = 0;  ///< of cubes below
    std::size_t split_at = 12;
    Ids ids;  ///< of a leaf
  };
  void split(std::uint32_t node, Cube decided, const std::vector<Cube>& cubes, std::size_t words);

  std::vector<Node> nodes_;
  mutable Ids open_;  ///< nodes that meeting() has to look at
};

}  // namespace greynic::optimizer::live
