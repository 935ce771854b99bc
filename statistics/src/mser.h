#pragma once

/// The statistic of MSER, by which a warm-up is cut where the mean of what is left is best known.

#include <cstddef>
#include <span>
#include <vector>

namespace greynic::statistics {

/// By number of values left out in front: the sum of squares around the mean of what is left,
/// divided by the square of its length. Each value counts as off by `resolution` of the mean.
[[nodiscard]] std::vector<double> mser_scores(std::span<const double> values,
                                              double resolution = 0.0);

}  // namespace greynic::statistics
