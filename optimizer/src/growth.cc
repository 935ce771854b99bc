#include "greynic/optimizer/growth.h"

#include <array>

namespace greynic::optimizer {
namespace {

constexpr std::array kGrowths = {1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 4.0};

double knee_price(const GrowthPoint& point) {
  return static_cast<double>(point.rules) * point.matchers_tried;
}

}  // namespace

Result<GrowthCurve> optimize_at_knee(
    const RuleSet& rules, const Traffic& traffic, const OptimizeOptions& options,
    const std::function<void(const GrowthPoint&, std::size_t)>& on_point) {
  GrowthCurve curve;
  double seconds = 0.0;
  for (const double growth : kGrowths) {
    OptimizeOptions here = options;
    here.max_growth = growth;
    auto made = optimize(rules, traffic, here);
    if (!made) return pass_on(made);
    seconds += made->seconds;
    GrowthPoint point{growth, made->after.rules, made->after.matchers_tried,
                      made->after.matchers_tried_p99};
    const bool better =
        curve.points.empty() || point.matchers_tried < curve.points.back().matchers_tried;
    if (!better) {
      point = curve.points.back();
      point.growth = growth;
    }
    curve.points.push_back(point);
    if (on_point) on_point(point, kGrowths.size());
    if (better &&
        (curve.points.size() == 1 || knee_price(point) < knee_price(curve.points[curve.knee]))) {
      curve.knee = curve.points.size() - 1;
      curve.layout = std::move(*made);
    }
  }
  curve.layout.seconds = seconds;
  return curve;
}

}  // namespace greynic::optimizer
