#pragma once

/// How few matchers masks in a circle can have, in whatever order.

#include <cstdint>
#include <vector>

#include "src/circles/row_graph.h"

namespace greynic::optimizer::circles {

/// For each of these masks: on some path through the rows are so many of its own, and each of them
/// needs a matcher of its own. Edges must lead upwards.
[[nodiscard]] std::vector<std::uint32_t> longest_paths(const RowGraph& graph,
                                                       const std::vector<std::uint32_t>& masks);

/// At least so many parts there are: each mask as many as its longest path has; and of masks whose
/// longest path has one, each circle splits one besides. Circles that share a mask count once.
/// Masks that a search left whole have no longer paths; `split` are the others.
[[nodiscard]] std::size_t least_parts(const RowGraph& graph,
                                      const std::vector<std::uint32_t>& split);

}  // namespace greynic::optimizer::circles
