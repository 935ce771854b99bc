#pragma once

/// Masks in a circle, split into as few matchers as a search finds.

#include <cstdint>
#include <vector>

#include "src/circles/row_graph.h"

namespace greynic::optimizer::circles {

/// By node: a node of the same part, the same for all of them. Parts are matchers to be.
using Parts = std::vector<std::uint32_t>;

[[nodiscard]] std::size_t count(const Parts& parts);

/// The masks that have more than one part.
[[nodiscard]] std::vector<std::uint32_t> split_masks(const RowGraph& graph, const Parts& parts);

/// The rows in their order: each goes to the first part of its mask that lies behind all that the
/// row has to come after; where there is none, a new part goes to the end. With `reversed` the same
/// from the last row to the first. Edges must lead upwards.
[[nodiscard]] Parts one_by_one(const RowGraph& graph, bool reversed);

/// Takes some masks apart again and again, and puts each together in as few parts as the others
/// leave it, until there are `enough`, or nothing comes of it any more.
void improve(const RowGraph& graph, std::size_t enough, Parts& parts);

/// The same, for parts that packets try earlier and that are no more. `weight` is by node, `others`
/// that of each group outside of the circle. Returns weight x position, as it is if nothing but
/// weight says how the others lie among the parts.
double cheapen(const RowGraph& graph, const std::vector<double>& weight,
               const std::vector<double>& others, Parts& parts, std::size_t most_tries = 60);

}  // namespace greynic::optimizer::circles
