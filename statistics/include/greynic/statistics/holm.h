#pragma once

/// Many tests at once. With p values adjusted by Holm's step-down, the chance that any of the
/// hypotheses with an adjusted value of at most alpha is rejected wrongly is at most alpha, however
/// the tests depend on each other.
///
/// Example: 0.01, 0.04, 0.03 become 0.03, 0.06, 0.06. The smallest is multiplied by 3, the next by
/// 2, the last by 1, and none may be smaller than the one before it.
///
/// Source: S. Holm, "A simple sequentially rejective multiple test procedure", 1979.

#include <span>
#include <vector>

namespace greynic::statistics {

/// The adjusted p values, in the order of the given ones.
[[nodiscard]] std::vector<double> holm_adjusted(std::span<const double> p_values);

}  // namespace greynic::statistics
