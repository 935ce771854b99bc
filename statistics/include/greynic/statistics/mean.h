#pragma once

/// Means, and how well they are known.

#include <cstddef>
#include <span>

namespace greynic::statistics {

/// A sample's mean, its standard error, and half the width of its 95 % interval by Student's t.
/// Both are 0 with fewer than two values.
struct Mean {
  std::size_t count = 0;
  double value = 0.0;
  double standard_error = 0.0;
  double half_width = 0.0;
};
[[nodiscard]] Mean mean_of(std::span<const double> values);

/// The mean alone; 0 of nothing.
[[nodiscard]] double average(std::span<const double> values);

/// Sum of the squared distances from the values' own mean.
[[nodiscard]] double squares_of(std::span<const double> values);

}  // namespace greynic::statistics
