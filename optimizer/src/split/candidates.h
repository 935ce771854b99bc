#pragma once

/// What may become entries of the hardware: flows by themselves, parts of rules that nothing stands
/// before, and rules behind what must come before them.

#include <array>
#include <cstdint>
#include <vector>

#include "src/entering.h"

namespace greynic::optimizer::split {

/// Packets that are alike in all bits that rules look at.
struct Flow {
  std::uint32_t packet = 0;   ///< one of them, row of the entering packets
  std::uint32_t decider = 0;  ///< row of the problem
  double weight = 0.0;
  /// Flows of a rule are in two halves by turns: what is found by one is judged by the other.
  std::uint8_t half = 0;
};

/// All packets that agree with a flow under a mask; what stands before its decider does not meet
/// them.
struct Piece {
  std::uint32_t decider = 0;
  std::uint32_t mask = 0;  ///< place in Candidates::masks
  std::vector<std::uint32_t> flows;
  double weight = 0.0;
  bool whole = false;              ///< the rule itself: new flows of the rule are in it, too
  std::array<bool, 2> found_by{};  ///< whether flows of this half led to it
};

/// A rule of which a part must be left to rules before it.
struct Covered {
  std::uint32_t row = 0;
  std::vector<std::uint32_t> covers;  ///< rows: what of the rule meets them goes to the slow path
  std::vector<std::uint32_t> flows;
  double weight = 0.0;
};

struct Candidates {
  std::vector<Flow> flows;  ///< heaviest first
  std::vector<std::vector<Word>> masks;
  std::vector<Piece> pieces;
  std::vector<Covered> covered;
};

/// For the rules that decide most of the traffic, `most` of them.
[[nodiscard]] Candidates find_candidates(const Problem& problem, const Entering& entering,
                                         const std::vector<std::uint32_t>& decider,
                                         std::size_t most);

}  // namespace greynic::optimizer::split
