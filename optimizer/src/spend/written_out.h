#pragma once

/// Two matchers held against each other, and as one.

#include <optional>
#include <vector>

#include "src/chained/plan.h"

namespace greynic::optimizer::spend {

/// Bits of `a` that `b` does not look at.
[[nodiscard]] int bits_beyond(const std::vector<Word>& a, const std::vector<Word>& b);

/// The matcher's ports are compared as ranges.
[[nodiscard]] bool has_ranges(const chained::PlanMatcher& matcher);

/// No packet hits entries of both that do different things. What two have in common is hashed: of two that only
/// look alike nothing is lost. `effect`: by unit.
[[nodiscard]] bool may_swap(const chained::PlanMatcher& a, const chained::PlanMatcher& b,
                            const std::vector<std::uint32_t>& effect);

/// All entries of both, for each value of the bits that they do not look at. Of two that share packets the earlier
/// decides: the other's ports are written without its own. None, where that takes too many ranges.
[[nodiscard]] std::optional<chained::PlanMatcher> as_one(const chained::PlanMatcher& first,
                                                         const chained::PlanMatcher& second,
                                                         const std::vector<std::uint32_t>& effect);

}  // namespace greynic::optimizer::spend
