#include "greynic/model/least_squares.h"

#include <ceres/cost_function.h>
#include <ceres/problem.h>
#include <ceres/solver.h>
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "fitting/problem_shape.h"

namespace greynic::model {
namespace {

/// The whole residual vector as one Ceres block: our problems are small and dense.
class Block final : public ceres::CostFunction {
 public:
  Block(const LeastSquaresProblem& problem, int parameter_count) : problem_(problem) {
    set_num_residuals(static_cast<int>(problem.residual_count));
    mutable_parameter_block_sizes()->push_back(parameter_count);
  }

  bool Evaluate(double const* const* parameters, double* residuals,
                double** jacobians) const override {
    const auto m = problem_.residual_count;
    const auto n = static_cast<std::size_t>(parameter_block_sizes()[0]);
    const bool wants_jacobian = jacobians != nullptr && jacobians[0] != nullptr;
    const std::span<double> jacobian =
        wants_jacobian ? std::span<double>(jacobians[0], m * n) : std::span<double>();
    if (!problem_.residuals({parameters[0], n}, {residuals, m}, jacobian)) return false;
    const auto finite = [](double x) { return std::isfinite(x); };
    return std::all_of(residuals, residuals + m, finite) &&
           std::all_of(jacobian.begin(), jacobian.end(), finite);
  }

 private:
  const LeastSquaresProblem& problem_;
};

struct Strategy {
  ceres::TrustRegionStrategyType type;
  ceres::DoglegType dogleg;
  bool nonmonotonic;
  double radius = 1e4;  ///< of the trust region at first
};

constexpr Strategy kFirst{ceres::LEVENBERG_MARQUARDT, ceres::TRADITIONAL_DOGLEG, false};
// From a far start a first step as long as the linear model wants can leave the valley for a plain
// where nothing descends any more; a small first region walks into it instead.
constexpr Strategy kCautious{ceres::LEVENBERG_MARQUARDT, ceres::TRADITIONAL_DOGLEG, false, 1e-2};
constexpr Strategy kOthers[] = {
    {ceres::DOGLEG, ceres::TRADITIONAL_DOGLEG, false},
    {ceres::DOGLEG, ceres::SUBSPACE_DOGLEG, false},
    {ceres::LEVENBERG_MARQUARDT, ceres::TRADITIONAL_DOGLEG, true},
    kCautious,
};
/// Thorough runs also start from this many places around the start, each parameter moved by a share
/// of itself: valleys that the start itself looks away from.
constexpr int kScattered = 64;
constexpr double kScatterShare = 0.3;

/// Sums of squares this close are the same minimum, met twice.
constexpr double kSameMinimum = 1e-9;

/// How far a point lies from the start, each parameter in units of its own size there.
double distance_from(std::span<const double> start, std::span<const double> x) {
  double sum = 0.0;
  for (std::size_t j = 0; j < x.size(); ++j) {
    const double unit = start[j] != 0.0 ? start[j] : 1.0;
    sum += (x[j] - start[j]) * (x[j] - start[j]) / (unit * unit);
  }
  return sum;
}

/// One descent; the summary's cost is half the sum of squares.
ceres::Solver::Summary descend(const LeastSquaresProblem& problem, const Strategy& strategy,
                               const LeastSquaresOptions& options, std::vector<double>& x) {
  ceres::Problem::Options ownership;
  ownership.cost_function_ownership = ceres::DO_NOT_TAKE_OWNERSHIP;
  ownership.disable_all_safety_checks = true;
  ceres::Problem ceres_problem(ownership);
  Block block(problem, static_cast<int>(x.size()));
  ceres_problem.AddResidualBlock(&block, nullptr, x.data());
  for (std::size_t j = 0; j < x.size(); ++j) {
    const int index = static_cast<int>(j);
    if (!problem.lower.empty()) {
      ceres_problem.SetParameterLowerBound(x.data(), index, problem.lower[j]);
    }
    if (!problem.upper.empty()) {
      ceres_problem.SetParameterUpperBound(x.data(), index, problem.upper[j]);
    }
  }
  ceres::Solver::Options solver;
  solver.linear_solver_type = ceres::DENSE_QR;
  solver.trust_region_strategy_type = strategy.type;
  solver.dogleg_type = strategy.dogleg;
  solver.use_nonmonotonic_steps = strategy.nonmonotonic;
  solver.max_num_iterations = options.max_iterations;
  solver.function_tolerance = options.tolerance;
  solver.parameter_tolerance = options.tolerance;
  solver.gradient_tolerance = options.tolerance * 1e-3;
  solver.max_num_consecutive_invalid_steps = 30;
  solver.initial_trust_region_radius = strategy.radius;
  solver.logging_type = ceres::SILENT;
  solver.num_threads = 1;
  ceres::Solver::Summary summary;
  ceres::Solve(solver, &ceres_problem, &summary);
  return summary;
}

}  // namespace

Result<LeastSquaresFit> minimize(const LeastSquaresProblem& problem, std::span<const double> start,
                                 const LeastSquaresOptions& options) {
  if (auto ok = check_shapes(problem, start.size()); !ok) return pass_on(ok);
  for (std::size_t j = 0; j < start.size(); ++j) {
    const bool inside = (problem.lower.empty() || start[j] >= problem.lower[j]) &&
                        (problem.upper.empty() || start[j] <= problem.upper[j]);
    if (!inside || !std::isfinite(start[j])) {
      return fail(
          ErrorCode::kBadInput,
          fmt::format("start value {} of parameter {} lies outside its bounds", start[j], j));
    }
  }
  LeastSquaresFit best;
  std::string why_not = "no strategy ran";
  bool found = false;
  const auto try_one = [&](const Strategy& strategy, std::vector<double> x, double lower_by) {
    const auto summary = descend(problem, strategy, options, x);
    // Running out of iterations still leaves a point, but not a minimum: thorough runs may use it
    // to compare, a plain run must not hand it out.
    const bool usable = summary.termination_type == ceres::CONVERGENCE ||
                        (options.thorough && summary.IsSolutionUsable());
    if (!usable) {
      if (!found) why_not = summary.message;
      return;
    }
    const double sum_of_squares = 2.0 * summary.final_cost;
    // Parameters may have twins that fit as well (a width of either sign, terms that swap places):
    // the start says which is meant.
    const auto is_nearer_twin = [&] {
      return sum_of_squares <= (1.0 + kSameMinimum) * best.sum_of_squares &&
             distance_from(start, x) < (1.0 - 1e-3) * distance_from(start, best.parameters);
    };
    if (!found || sum_of_squares < (1.0 - lower_by) * best.sum_of_squares || is_nearer_twin()) {
      best = {std::move(x), sum_of_squares, static_cast<int>(summary.iterations.size()),
              summary.message};
      found = true;
    }
  };
  const std::vector<double> given(start.begin(), start.end());
  try_one(kFirst, given, 0.0);
  if (options.thorough || !found) {
    for (const Strategy& strategy : kOthers) {
      if (found && !options.thorough) break;
      try_one(strategy, given, 0.0);
    }
  }
  if (options.thorough) {
    std::mt19937_64 random(1);
    std::normal_distribution<double> normal;
    for (int s = 0; s < kScattered; ++s) {
      std::vector<double> x = given;
      for (std::size_t j = 0; j < x.size(); ++j) {
        x[j] *= std::exp(kScatterShare * normal(random));
        if (!problem.lower.empty()) x[j] = std::max(x[j], problem.lower[j]);
        if (!problem.upper.empty()) x[j] = std::min(x[j], problem.upper[j]);
      }
      // A minimum that is no lower than rounding makes it is no better than the one at hand.
      try_one(s % 2 == 0 ? kFirst : kCautious, std::move(x), 1e-4);
    }
  }
  if (!found) {
    return fail(ErrorCode::kNotConverged,
                fmt::format("least squares did not converge after {} iterations at most ({})",
                            options.max_iterations, why_not));
  }
  return best;
}

Result<LeastSquaresFit> best_of_starts(const LeastSquaresProblem& problem,
                                       std::span<const std::vector<double>> starts, int descents,
                                       const LeastSquaresOptions& options) {
  std::vector<double> residuals(problem.residual_count);
  std::vector<std::pair<double, std::size_t>> order;
  for (std::size_t s = 0; s < starts.size(); ++s) {
    if (!problem.residuals(starts[s], residuals, {})) continue;
    const double cost =
        std::inner_product(residuals.begin(), residuals.end(), residuals.begin(), 0.0);
    if (std::isfinite(cost)) order.emplace_back(cost, s);
  }
  if (order.empty()) {
    return fail(ErrorCode::kNotConverged, "the residuals do not exist at any of the starts");
  }
  std::sort(order.begin(), order.end());
  Result<LeastSquaresFit> best = fail(ErrorCode::kNotConverged, "no start was followed");
  for (std::size_t k = 0; k < order.size() && static_cast<int>(k) < descents; ++k) {
    auto fit = minimize(problem, starts[order[k].second], options);
    if (fit && (!best || fit->sum_of_squares < best->sum_of_squares)) {
      best = std::move(fit);
    } else if (!fit && !best) {
      best = pass_on(fit);
    }
  }
  return best;
}

}  // namespace greynic::model
