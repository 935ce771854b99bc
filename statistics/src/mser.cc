#include "mser.h"

#include <algorithm>
#include <cmath>

#include "greynic/statistics/mean.h"

namespace greynic::statistics {

std::vector<double> mser_scores(std::span<const double> values, double resolution) {
  // Sums run from the back, so that every cut costs one step. Values are taken relative to the last
  // half's mean, which keeps the squares small.
  const double centre = average(values.subspan(values.size() / 2));
  const double least_variance = std::pow(resolution * centre, 2);
  std::vector<double> scores(values.size());
  double sum = 0;
  double squares = 0;
  for (std::size_t cut = values.size(); cut-- > 0;) {
    const double x = values[cut] - centre;
    sum += x;
    squares += x * x;
    const auto left = static_cast<double>(values.size() - cut);
    const double spread = std::max(0.0, squares - sum * sum / left);
    scores[cut] = (spread + left * least_variance) / (left * left);
  }
  return scores;
}

}  // namespace greynic::statistics
