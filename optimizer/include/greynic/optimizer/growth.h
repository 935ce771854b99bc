#pragma once

/// How much growth is worth its entries: matchers tried against rules of the layout, and the knee.

#include <functional>
#include <vector>

#include "greynic/optimizer/optimize.h"

namespace greynic::optimizer {

/// One point of the curve: what a layout of at most so much growth costs. The points go from little
/// growth to much, and more growth is never worse: where the search finds no better layout for it,
/// the point is that of the smaller growth.
struct GrowthPoint {
  double growth = 1.0;  ///< that was allowed
  std::size_t rules = 0;
  double matchers_tried = 0.0;
  std::size_t matchers_tried_p99 = 0;
};

struct GrowthCurve {
  std::vector<GrowthPoint> points;
  std::size_t knee = 0;    ///< place in `points`
  OptimizedLayout layout;  ///< of the knee
};

/// Lays out for growths of 1, 1.1, 1.25, 1.5, 2, 3 and 4, and takes the one where rules times
/// matchers tried is least: up to there, one percent more rules saves more than one percent of the
/// matchers tried; beyond it, less. options.max_growth is not used. `on_point` hears each point as
/// it is found, and how many there will be. Errors: as optimize().
[[nodiscard]] Result<GrowthCurve> optimize_at_knee(
    const RuleSet& rules, const Traffic& traffic, const OptimizeOptions& options,
    const std::function<void(const GrowthPoint&, std::size_t all)>& on_point = {});

}  // namespace greynic::optimizer
