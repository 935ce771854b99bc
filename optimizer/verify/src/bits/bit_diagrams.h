#pragma once

/// Functions of the bits of a packet as decision diagrams: a node asks one bit, a leaf is a value. Bits are asked in one
/// order everywhere, and nodes that ask the same and go on alike are one, so equal functions have equal numbers.
///
/// A product, thousands of addresses each with the same ports, is the addresses, all of which lead to one node that
/// asks for the ports. Sets of packets are functions, too: kAll where a packet is in the set, kNone elsewhere.
///
/// Nodes and steps are bounded. Beyond the bounds every answer is kNone, and ran_out() says so: nothing may
/// be concluded then.
///
/// Source: Bryant: Graph-based algorithms for Boolean function manipulation, IEEE Trans. Computers, 1986; with more
/// than two leaves: Clarke et al.: Spectral transforms for large Boolean functions, DAC 1993.

#include <cstdint>
#include <utility>
#include <vector>

#include "src/hashed_numbers.h"

namespace greynic::verify {

using FunctionId = std::uint32_t;

/// Of each bit what is known: 0, 1, or kOpenBit.
using KnownBits = std::vector<std::int8_t>;
inline constexpr std::int8_t kOpenBit = -1;

class BitDiagrams {
 public:
  static constexpr FunctionId kNone = 0;  ///< of no packet
  static constexpr FunctionId kAll = 1;   ///< all packets, as a set

  BitDiagrams(std::size_t most_nodes, std::uint64_t most_steps);

  /// Values are smaller than 0xfffffff0.
  FunctionId leaf(std::uint32_t value);
  /// The bits that zero and one ask for come later.
  FunctionId ask(std::uint32_t bit, FunctionId zero, FunctionId one);

  /// The function where packets are in the set, kNone elsewhere.
  FunctionId within(FunctionId set, FunctionId function);
  /// Packets that are in one set or the other.
  FunctionId either(FunctionId one, FunctionId other);
  /// The function once bits are known: it asks for these no more.
  FunctionId known(FunctionId function, const KnownBits& bits);

  /// For each value, ascending, the packets that get it.
  using Parts = std::vector<std::pair<std::uint32_t, FunctionId>>;
  [[nodiscard]] Parts parts(FunctionId function);

  /// Some packet of a set that is not kNone, as its bits that are one.
  [[nodiscard]] std::vector<std::uint32_t> member(FunctionId set) const;

  void count_steps(std::uint64_t steps) { steps_ += steps; }
  [[nodiscard]] std::uint64_t steps() const { return steps_; }
  [[nodiscard]] bool ran_out() const {
    return nodes_.size() >= most_nodes_ || steps_ > most_steps_;
  }
  [[nodiscard]] std::size_t size() const { return nodes_.size(); }
  void give_up() { steps_ = most_steps_ + 1; }

 private:
  static constexpr std::uint32_t kLeaf = 0xffffffff;  ///< later than all bits
  struct Node {
    std::uint32_t bit;
    FunctionId zero;  ///< of a leaf, its value
    FunctionId one;
  };
  enum class Operation : std::uint32_t { kWithin = 1, kEither };
  struct Done {
    FunctionId a = 0, b = 0;
    std::uint32_t operation = 0;
    FunctionId result = 0;
  };
  FunctionId node(const Node& made);
  Done& place_of(Operation operation, FunctionId a, FunctionId b);
  FunctionId combined(Operation operation, FunctionId a, FunctionId b);

  std::size_t most_nodes_;
  std::uint64_t most_steps_;
  std::uint64_t steps_ = 0;
  std::vector<Node> nodes_;
  HashedNumbers numbers_;
  std::vector<Done> done_;  ///< what was combined lately
};

}  // namespace greynic::verify
