#pragma once

/// Rows of several masks, and which of them must come before which: what a circle of masks is made
/// of. Which masks have to be split, and into how many matchers, only the rows say.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "src/overlap.h"

namespace greynic::optimizer::circles {

/// Each node is a row, or some rows of one mask that stay together.
struct RowGraph {
  std::vector<std::uint32_t> mask;                ///< by node
  std::vector<std::vector<std::uint32_t>> nodes;  ///< by mask, ascending
  std::vector<std::uint32_t> before;              ///< by node: how many edges lead to it
  std::vector<std::size_t> first;                 ///< by node, and one more: where in `after`
  std::vector<std::uint32_t> after;               ///< ends of the edges

  [[nodiscard]] std::size_t size() const { return mask.size(); }
  [[nodiscard]] std::span<const std::uint32_t> after_node(std::uint32_t node) const {
    return {after.data() + first[node], first[node + 1] - first[node]};
  }
};

struct Edge {
  std::uint32_t from;
  std::uint32_t to;
  auto operator<=>(const Edge&) const = default;
};

/// `mask` by node; several equal edges count once.
[[nodiscard]] RowGraph graph_of(std::vector<std::uint32_t> mask, std::size_t masks,
                                std::vector<Edge> edges);

/// A row for each node, ascending: so edges lead upwards.
struct ListedRows {
  std::vector<std::uint32_t> row;
  RowGraph graph;
};

/// All rows of these groups, one group for each mask; `before`: precedence() of them. Nothing where
/// there are more than `most_edges`.
[[nodiscard]] std::optional<ListedRows> row_graph(const Problem& problem,
                                                  const std::vector<Group>& groups,
                                                  const BitMatrix& before, std::size_t most_edges);

}  // namespace greynic::optimizer::circles
