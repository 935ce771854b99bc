#pragma once

/// Nonlinear least squares: the one solver behind every law. Minimises sum r_i(p)^2 within bounds
/// and says how well the answer is determined. It promises a local minimum, no more: whoever fears
/// others gives several starts (best_of_starts). The engine is Ceres; nothing of it shows here.

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "greynic/core/result.h"

namespace greynic::model {

/// Fills `residuals` (m) at `parameters` (n) and, when it is not empty, `jacobian`: m x n, row by
/// row, entry (i, j) = d r_i / d p_j. Returns false where the residuals do not exist.
using ResidualFunction = std::function<bool(
    std::span<const double> parameters, std::span<double> residuals, std::span<double> jacobian)>;

struct LeastSquaresProblem {
  std::size_t residual_count = 0;
  ResidualFunction residuals;
  std::vector<double> lower;  ///< empty: no bounds; else one for each parameter
  std::vector<double> upper;
};

struct LeastSquaresOptions {
  int max_iterations = 200;
  double tolerance = 1e-10;  ///< relative change of the cost, and of the parameters, that ends it
  /// Runs every trust-region strategy, also from places scattered about the start, and keeps the
  /// best: for problems whose valleys are flat or whose starts are far off. Costs about seventy
  /// times as much.
  bool thorough = false;
};

struct LeastSquaresFit {
  std::vector<double> parameters;
  double sum_of_squares = 0.0;
  int iterations = 0;
  std::string how_it_ended;
};

/// One descent from `start`. kNotConverged says why and where it stood; kTooFewPoints when there
/// are fewer residuals than parameters; kBadInput when shapes disagree or the start lies outside.
[[nodiscard]] Result<LeastSquaresFit> minimize(const LeastSquaresProblem& problem,
                                               std::span<const double> start,
                                               const LeastSquaresOptions& options = {});

/// Descends from each start that looks promising and keeps the lowest. All starts are costed first;
/// the best `descents` of them are followed.
[[nodiscard]] Result<LeastSquaresFit> best_of_starts(const LeastSquaresProblem& problem,
                                                     std::span<const std::vector<double>> starts,
                                                     int descents,
                                                     const LeastSquaresOptions& options = {});

/// What the curvature at a minimum says about the parameters.
struct Determination {
  /// Inverse of J^T J, n x n row by row: the covariance when residuals are divided by their
  /// standard deviation.
  std::vector<double> covariance;
  double condition_number = 0.0;  ///< of J with columns scaled to length 1
  int rank = 0;  ///< of the same, with singular values below 1e-10 of the largest as 0
  std::vector<double> weakest;  ///< unit vector of the direction that is determined worst
};

/// kRankDeficient names the parameters' indices that cannot be told apart.
[[nodiscard]] Result<Determination> determine(const LeastSquaresProblem& problem,
                                              std::span<const double> parameters);

}  // namespace greynic::model
