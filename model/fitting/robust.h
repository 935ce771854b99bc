#pragma once

/// Robust losses for least squares: a residual is replaced by one whose square is the loss.

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace greynic::model {

enum class Loss { kSquare, kHuber, kCauchy };

/// The replacement for a residual in units of its deviation, and d replacement / d residual.
inline std::pair<double, double> robust(Loss loss, double r) {
  constexpr double kHuberFrom = 3.0;
  constexpr double kCauchyScale = 2.0;
  const double size = std::abs(r);
  if (loss == Loss::kHuber && size > kHuberFrom) {
    const double s = std::sqrt(2.0 * kHuberFrom * size - kHuberFrom * kHuberFrom);
    return {std::copysign(s, r), kHuberFrom / s};
  }
  if (loss == Loss::kCauchy && size > 1e-6) {
    const double ratio = size / kCauchyScale;
    const double s = kCauchyScale * std::sqrt(std::log1p(ratio * ratio));
    return {std::copysign(s, r), size / ((1.0 + ratio * ratio) * s)};
  }
  return {r, 1.0};
}

inline double median(std::vector<double> x) {
  if (x.empty()) return 0.0;
  const auto middle = x.begin() + static_cast<long>(x.size() / 2);
  std::nth_element(x.begin(), middle, x.end());
  return *middle;
}

}  // namespace greynic::model
