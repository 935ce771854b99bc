#pragma once

/// One chain of matchers for each table with fewer masks, bought with entries: rules are written out
/// under masks that look at more bits, so that rules of several masks share one.
///
/// A rule of /22 addresses is four entries of /24. So for each growth of the rules there is a number of
/// masks to which they can be brought; the curve of the two is drawn, with a lower bound for each
/// point: no choice among the masks of the rules and the unions of two close ones (4,000 that lack at most 4
/// bits of either) gets by with fewer, when every rule of a mask is written out under the same.
/// Entries that an earlier one hides are dropped afterwards, which the bound does not count on.
///
/// Example: 100 rules of /24, 2 of /22, growth 1.1. The two become 8 entries of /24: 1 mask in place of
/// 2, 108 entries.
///
/// Costs: a second for 10,000 rules of 1,400 masks and 7 points.

#include <cstddef>
#include <vector>

#include "greynic/optimizer/optimize.h"

namespace greynic::optimizer {

struct MaskPoint {
  double growth = 1.0;      ///< that was allowed, of the rules given
  std::size_t entries = 0;  ///< rules written out
  std::size_t masks = 0;
  std::size_t fewest = 0;  ///< lower bound of the masks, see above
};

struct MaskCurve {
  std::size_t masks = 0;  ///< of the rules that decide something
  std::vector<MaskPoint> points;
  std::size_t taken = 0;  ///< place in `points`: of `growth`, or of least entries times masks
};

/// For growths of 1, 1.1, 1.25, 1.5, 2, 3, 4 and `growth`, unless that is 0.
[[nodiscard]] MaskCurve mask_curve(const RuleSet& rules, double growth = 0.0);

struct MergedMasks {
  MaskCurve curve;
  OptimizedLayout layout;  ///< of the point taken: single chains, proven
};

/// Draws the curve and lays out at the point taken. Of the options, growth and single_table are not
/// used. Errors: as optimize(); kBadInput for a growth that is neither 0 nor at least 1.
[[nodiscard]] Result<MergedMasks> merge_masks(const RuleSet& rules, const Traffic& traffic,
                                              const OptimizeOptions& options, double growth = 0.0);

}  // namespace greynic::optimizer
