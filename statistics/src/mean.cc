#include "greynic/statistics/mean.h"

#include <cmath>
#include <numeric>

#include "greynic/statistics/distributions.h"

namespace greynic::statistics {

Mean mean_of(std::span<const double> values) {
  Mean mean{.count = values.size(), .value = average(values)};
  if (values.size() < 2) return mean;
  const auto count = static_cast<double>(values.size());
  mean.standard_error = std::sqrt(squares_of(values) / (count - 1) / count);
  mean.half_width = student_upper_quantile(0.025, count - 1) * mean.standard_error;
  return mean;
}

double average(std::span<const double> values) {
  if (values.empty()) return 0.0;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double squares_of(std::span<const double> values) {
  const double centre = average(values);
  double squares = 0.0;
  for (const double value : values) squares += (value - centre) * (value - centre);
  return squares;
}

}  // namespace greynic::statistics
