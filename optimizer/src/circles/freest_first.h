#pragma once

/// Masks in a circle, split by one rule of thumb: quick, and without a list of what must come before
/// what, but it splits more than it has to.

#include "src/overlap.h"

namespace greynic::optimizer::circles {

/// The parts that the groups fall into, each with its rows ascending. `before`: precedence() of them.
[[nodiscard]] std::vector<std::vector<std::uint32_t>> freest_first(const Problem& problem,
                                                                   const std::vector<Group>& circle,
                                                                   const BitMatrix& before);

}  // namespace greynic::optimizer::circles
