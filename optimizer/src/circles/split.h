#pragma once

/// Splits masks that precedence holds in a circle, so that an order exists.
///
/// What must come before what is listed row by row. The rows then go one by one to the first matcher
/// of their mask that they may be in, from the first row and from the last, whichever makes fewer
/// matchers: there are never more. Two ways lead from there, and the one that costs packets less is
/// taken. Masks are taken apart a few at a time, and put together again in as few matchers as the
/// others leave them; that number is exact, as it is that of their rows on one path. Or else rows
/// that nothing holds back leave first.

#include "src/overlap.h"

namespace greynic::optimizer::circles {

/// Quick: for chains that are only compared, each mask is taken apart once.
enum class Care : std::uint8_t { kFull, kQuick };

struct SplitCircle {
  std::vector<std::vector<std::uint32_t>> parts;  ///< rows of each, ascending
  std::size_t least = 0;                          ///< no order of these masks has fewer parts
};

/// One group for each mask of the circle; `before`: precedence() of them; `others`: the weight of each
/// group outside of the circle.
[[nodiscard]] SplitCircle split_circle(const Problem& problem, const std::vector<Group>& circle,
                                       const BitMatrix& before, const std::vector<double>& others,
                                       Care care);

}  // namespace greynic::optimizer::circles
