#pragma once

/// First-match lists with jumps as diagrams that share what is alike.
///
/// A node asks whether a packet is in a cube, and goes on in one of two nodes; a leaf is an effect. A
/// list of rules is a chain of such nodes, and a jump leads to the chain of its table. Nodes that ask
/// the same and go on alike are one, so where two numbers are equal, no packet is treated
/// differently. What is left to ask where some bits are known is a node again, which depends on
/// nothing else: what was found out about it holds wherever it comes up.
///
/// Example: rule 0 for port 22, rule 1 for 10.1.0.0/16, both drop; the rest is forwarded.
///
///     ask(port 22, drop, ask(10.1.0.0/16, drop, forward))
///
/// Within "not port 22" the node ask(10.1.0.0/16, drop, forward) is left, within 10.1.0.0/16 only
/// the leaf "drop".

#include <cstdint>
#include <vector>

#include "src/hashed_numbers.h"
#include "src/space/packet_space.h"

namespace greynic::verify {

using NodeId = std::uint32_t;

class Diagrams {
 public:
  explicit Diagrams(std::size_t words) : words_(words) {}

  NodeId leaf(std::uint32_t effect);
  /// In the cube `yes` decides, outside of it `no`. The cube may be all packets.
  NodeId ask(const std::uint64_t* value, const std::uint64_t* fixed, NodeId yes, NodeId no);

  [[nodiscard]] bool is_leaf(NodeId node) const { return nodes_[node].cube == kNoCube; }
  [[nodiscard]] std::uint32_t effect(NodeId leaf) const { return nodes_[leaf].yes; }
  /// The bits that some node from here on looks at.
  [[nodiscard]] const std::uint64_t* looked_at(NodeId node) const {
    return &looked_at_[node * words_];
  }
  /// What is left of the node when packets are in the cube.
  NodeId within(NodeId node, const Cube& cube);
  /// Adds to `parts` what nodes from here on ask of the bits of a mask: cubes, no two alike when
  /// `fresh` is true for the first node and false for those after it.
  void asked(NodeId node, const CubeBits& mask, bool fresh, std::vector<Cube>& parts);

  [[nodiscard]] std::size_t size() const { return nodes_.size(); }
  /// Nodes looked at so far.
  [[nodiscard]] std::uint64_t visits() const { return visits_; }
  /// Drops all that these nodes do not lead to, and gives them their new numbers.
  void keep(std::vector<NodeId>& roots);

 private:
  static constexpr std::uint32_t kNoCube = 0xffffffff;
  struct Node {
    std::uint32_t cube;  ///< kNoCube: a leaf
    std::uint32_t yes;   ///< of a leaf, its effect
    std::uint32_t no;
  };
  struct Known {
    std::uint32_t since = 0;
    NodeId result = 0;
  };
  NodeId node(const Node& made);
  std::uint32_t cube(const std::uint64_t* value, const std::uint64_t* fixed);
  NodeId left_of(NodeId node, const Cube& cube);
  [[nodiscard]] bool concerns(const Cube& cube, NodeId node) const;
  [[nodiscard]] const std::uint64_t* value(std::uint32_t cube) const {
    return &cubes_[cube * 2 * words_];
  }
  [[nodiscard]] const std::uint64_t* fixed(std::uint32_t cube) const {
    return &cubes_[(cube * 2 + 1) * words_];
  }

  std::size_t words_;
  std::vector<Node> nodes_;               ///< what a node leads to has a smaller number
  std::vector<std::uint64_t> looked_at_;  ///< by node
  std::vector<std::uint64_t> cubes_;      ///< value words, then fixed words
  HashedNumbers node_numbers_;
  HashedNumbers cube_numbers_;
  std::vector<Known> known_;               ///< by node: for the cube, or the parts, at hand
  std::vector<std::uint32_t> seen_parts_;  ///< by cube: the asking that has seen it
  std::uint32_t now_ = 0;
  std::vector<NodeId> way_;
  std::vector<std::uint64_t> scratch_;
  std::uint64_t visits_ = 0;
};

}  // namespace greynic::verify
