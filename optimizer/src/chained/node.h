#pragma once

/// A region of packets with the units left to decide there, and rules of thumb for what it costs.

#include <vector>

#include "src/chained/units.h"

namespace greynic::optimizer::chained {

struct Node {
  explicit Node(std::size_t words) : rows(words), decided(words, 0) {}
  UnitRows rows;
  std::vector<std::uint32_t> packets;  ///< those whose decider is here, or that nothing decides
  std::vector<Word> decided;           ///< bits that are fixed throughout the region
  int filters = 0;                     ///< that its packets went through
  bool scouted = false;                ///< what Grower::scout makes is there
  double waiting = 0.0;                ///< what Grower counts of it before it is grown: of packets,
  std::size_t waiting_rows = 0;        ///< and of rows

  // Made by Grower::scout.
  std::vector<double> weight;               ///< by row: of the packets it decides
  double all_weight = 0.0;                  ///< of the packets
  std::vector<std::uint32_t> kind;          ///< by row: units of equal mask and ports
  std::vector<std::uint32_t> kind_example;  ///< by kind: a row
  std::vector<double> kind_written;         ///< by kind: masks when written out
  std::vector<double> kind_masks;           ///< by kind: masks that guards would leave
  std::vector<std::uint32_t> kind_class;    ///< by kind: the first that shares its matchers

  Conflicts conflicts;  ///< by row: rows that must come before it
};

/// Tells kinds apart, once the bits of `without` are fixed. Two that share a key, which nobody has
/// seen yet, are priced as one.
[[nodiscard]] std::uint64_t kind_key(const Word* mask, const std::vector<Word>& without,
                                     const PortIds& ports);

/// What falls on one kind.
struct Share {
  std::uint32_t kind;
  double weight;
};

/// Matchers tried in a chain over these kinds if no precedence stood against the weights: by the
/// packets decided, and the number of matchers.
struct ChainCost {
  double tried = 0.0;
  double matchers = 0.0;
  /// So many masks more at the end, which decide so much.
  void add(double weight, double masks) {
    tried += weight * (matchers + (masks + 1.0) / 2.0);
    matchers += masks;
  }
};
[[nodiscard]] ChainCost chain_cost(std::vector<Share>& shares,
                                   const std::vector<double>& kind_masks);

/// What becomes of a chain of this mean cost once it is cut and cut again.
[[nodiscard]] double tree_mean(double chain_mean);

/// Matchers tried in the tree that becomes of a chain: `weight` of packets decided, `passing` of
/// packets that go through and out again.
[[nodiscard]] double tree_cost(const ChainCost& chain, double weight, double passing);

}  // namespace greynic::optimizer::chained
