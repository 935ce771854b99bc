#pragma once

/// How many rows any covering array must have, read off a full one: it holds every feasible tuple,
/// so what its rows with one level show is what that level can be combined with.
///
///  - One parameter: as many rows as levels.
///  - A parameter p: rows with different levels of p differ, so the bound is the sum over its
///  levels of
///    the bound, one strength lower, on the other parameters among rows with that level.
///  - n two-level parameters of which any two take all four pairs: the smallest N with
///    C(N - 1, floor(N / 2) - 1) >= n (Kleitman and Spencer 1973, Katona 1973).
///  - More than v + 1 parameters that pair all of v levels need more than v * v rows (Bush 1952).

#include <string>
#include <vector>

#include "engine/engine_values.h"
#include "engine/local_search.h"

namespace greynic::testgen {

struct LowerBound {
  std::size_t rows = 0;
  std::string reason;
};

/// `rows`: a full array; `already`: rows whose tuples need no covering; `wanted`: values that take
/// part. `breadth`: how many parameters, most levels first, are tried for p above pairs.
[[nodiscard]] LowerBound lower_bound(const ValueIndex& index, const Layer& layer,
                                     const Words& wanted,
                                     const std::vector<std::vector<Value>>& rows,
                                     const std::vector<std::vector<Value>>& already,
                                     std::size_t breadth);

/// Rows that n free two-level parameters need at strength 2.
[[nodiscard]] std::size_t binary_pairs_rows(std::size_t n);

}  // namespace greynic::testgen
