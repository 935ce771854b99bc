#pragma once

/// Has a short series settled? When its two halves agree. For series with fewer than the forty
/// samples that MSER-5 (steady_state.h) needs: ten windows of a packet thread, a few bursts of
/// completions.

#include <algorithm>
#include <cmath>

namespace greynic::statistics {

/// By how much halves may differ: by the larger of the two.
struct HalvesAllowance {
  double share = 0.05;           ///< of the whole's mean: less is of no interest
  double standard_errors = 4.0;  ///< of the whole's mean; the halves' difference has two of them
};

[[nodiscard]] inline bool halves_agree(double early, double late, double whole,
                                       double standard_error, const HalvesAllowance& allowance) {
  return std::abs(late - early) <=
         std::max(allowance.share * whole, allowance.standard_errors * standard_error);
}

}  // namespace greynic::statistics
