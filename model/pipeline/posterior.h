#pragma once

/// The pipeline law's least-squares problem: weighted logarithms of the points, then the priors.

#include <span>
#include <vector>

#include "fitting/robust.h"
#include "greynic/model/least_squares.h"
#include "pipeline/fit.h"

namespace greynic::model::pipeline {

/// One least-squares problem over the active parameters: points first, then priors.
struct Posterior {
  const std::vector<Point>& points;
  std::vector<double> weight;  ///< 1 / deviation of each point; 0 drops it
  const Priors& priors;
  std::vector<int> active;
  Values values;  ///< of inactive parameters
  Loss loss = Loss::kSquare;

  /// Residuals: one for each point (0 where dropped), then one for each active parameter's prior.
  [[nodiscard]] LeastSquaresProblem problem() const;
  /// All values, the active ones from `x`.
  [[nodiscard]] Values with(std::span<const double> x) const;
  /// The active ones of `all`, moved inside their bounds.
  [[nodiscard]] std::vector<double> at(const Values& all) const;
  bool residuals(std::span<const double> x, std::span<double> r, std::span<double> jacobian) const;
};

/// 1 / deviation of each point: scatter of its output and its own error; 0 for anomalies.
[[nodiscard]] std::vector<double> weights_for(const std::vector<Point>& points,
                                              const std::array<Noise, kOutputCount>& noise,
                                              const std::vector<bool>& anomalous);

}  // namespace greynic::model::pipeline
