#pragma once

/// One chain of matchers for rules of one table: as few as precedence allows, the hot ones early.

#include <cstdint>
#include <vector>

#include "overlap.h"
#include "src/circles/split.h"

namespace greynic::optimizer {

struct Chain {
  std::vector<Group> groups;  ///< in the order in which they are tried
  std::size_t least = 0;      ///< no chain of these rows has fewer groups
  bool quick = false;         ///< some masks were split with little care
};

/// Rows (ascending) as a chain: groups of equal mask are split only where precedence makes a
/// circle, then ordered so that the mean position over the rows' weights is small. `known`: where
/// they are, all pairs of rows that must keep their order.
[[nodiscard]] Chain build_chain(const Problem& problem, const std::vector<std::uint32_t>& rows,
                                circles::Care care = circles::Care::kFull,
                                const std::vector<RowPair>* known = nullptr);

/// Sum over the groups of weight x position (counted from 1).
[[nodiscard]] double weighted_position(const Chain& chain);

/// Orders groups under `before`, which has no circle: the classic problem of scheduling jobs of
/// unit length under precedence for the least weighted completion time, by merging jobs into blocks
/// that a precedence forces together and sorting the blocks by mean weight, repeated until no gain.
/// Source: Sidney, Operations Research 23(2), 1975, and Horn's algorithm, which it is on trees.
[[nodiscard]] std::vector<std::uint32_t> order_groups(const std::vector<double>& weights,
                                                      const BitMatrix& before);

}  // namespace greynic::optimizer
