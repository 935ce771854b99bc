#pragma once

#include <cmath>
#include <utility>

namespace greynic::bench {

/// Wilson's 95 % interval of a share.
inline std::pair<double, double> wilson(int hits, int cases) {
  const double n = cases, p = hits / n, z = 1.96;
  const double middle = (p + z * z / (2 * n)) / (1 + z * z / n);
  const double half = z / (1 + z * z / n) * std::sqrt(p * (1 - p) / n + z * z / (4 * n * n));
  return {middle - half, middle + half};
}

}  // namespace greynic::bench
