#include "greynic/statistics/shrunk_variance.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "greynic/statistics/distributions.h"
#include "greynic/statistics/mean.h"

namespace greynic::statistics {
namespace {

/// x with trigamma(x) = y, by bisection on a falling function.
double inverse_trigamma(double y) {
  double low = 1e-8;
  double high = 1e8;
  for (int i = 0; i < 200 && high / low > 1 + 1e-12; ++i) {
    const double middle = std::sqrt(low * high);
    (trigamma(middle) > y ? low : high) = middle;
  }
  return std::sqrt(low * high);
}

}  // namespace

SpreadPrior fitted_prior(std::span<const Spread> spreads) {
  std::vector<double> variances;
  for (const Spread& spread : spreads) {
    if (spread.freedom > 0) variances.push_back(spread.variance);
  }
  if (variances.empty()) return {};
  std::sort(variances.begin(), variances.end());
  // More than half without any variance: a device that repeats itself exactly.
  const double middle = variances[variances.size() / 2];
  if (middle <= 0.0) return {.variance = 0.0, .freedom = std::numeric_limits<double>::infinity()};
  const double floor = 1e-5 * middle;

  double expected = 0.0;
  std::vector<double> levels;
  for (const Spread& spread : spreads) {
    if (spread.freedom <= 0) continue;
    const double half = spread.freedom / 2;
    levels.push_back(std::log(std::max(spread.variance, floor)) - digamma(half) + std::log(half));
    expected += trigamma(half);
  }
  const auto count = static_cast<double>(levels.size());
  const double mean = average(levels);
  expected /= count;
  const double excess = count > 1 ? squares_of(levels) / (count - 1) - expected : 0.0;
  if (excess <= 0.0) {
    return {.variance = std::exp(mean), .freedom = std::numeric_limits<double>::infinity()};
  }
  const double half_freedom = inverse_trigamma(excess);
  return {.variance = std::exp(mean + digamma(half_freedom) - std::log(half_freedom)),
          .freedom = 2 * half_freedom};
}

SpreadPrior pooled_prior(std::span<const Spread> spreads, double most_freedom) {
  double squares = 0.0;
  double freedom = 0.0;
  for (const Spread& spread : spreads) {
    squares += spread.freedom * spread.variance;
    freedom += spread.freedom;
  }
  if (freedom <= 0.0) return {};
  return {.variance = squares / freedom, .freedom = std::min(freedom, most_freedom)};
}

Spread shrunk(const Spread& spread, const SpreadPrior& prior) {
  if (std::isinf(prior.freedom)) return {.variance = prior.variance, .freedom = prior.freedom};
  const double freedom = prior.freedom + spread.freedom;
  if (freedom <= 0.0) return {};
  return {.variance = (prior.freedom * prior.variance + spread.freedom * spread.variance) / freedom,
          .freedom = freedom};
}

}  // namespace greynic::statistics
