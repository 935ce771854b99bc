#include <fmt/core.h>

#include <cmath>
#include <random>
#include <set>

#include "greynic/core/units.h"
#include "greynic/model/least_squares.h"
#include "scalacn/plane.h"

namespace greynic::model {
namespace {

std::vector<Sample> samples_of(const Points& points, pipeline::Output output) {
  std::vector<Sample> samples;
  for (const Point& point : points.points) {
    if (point.output != output) continue;
    double value = std::exp(point.log_value);
    if (output == pipeline::kLogBandwidth) value = BitRate::from_gbps(value).scalacn();
    samples.push_back({local_remote(point.setting), value});
  }
  return samples;
}

std::size_t distinct_inputs(const std::vector<Sample>& samples) {
  std::set<std::pair<double, double>> seen;
  for (const Sample& sample : samples) seen.insert({sample.q.local, sample.q.remote});
  return seen.size();
}

LeastSquaresProblem bell_problem(const std::vector<Sample>& samples, double largest) {
  LeastSquaresProblem problem;
  problem.residual_count = samples.size();
  // Signs and sense: a bell above a floor, wider than one mask, its centre within some widths.
  problem.lower = {0.0, 1.0, -1000.0, -1000.0, 0.0};
  problem.upper = {1e3 * largest, 1000.0, 1000.0, 1000.0, 2.0 * largest};
  problem.residuals = [&samples](std::span<const double> p, std::span<double> r,
                                 std::span<double> jacobian) {
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const double l = samples[i].q.local - p[2];
      const double q = samples[i].q.remote - p[3];
      const double square = l * l + q * q;
      const double bell = std::exp(-square / (2.0 * p[1] * p[1]));
      r[i] = p[0] * bell + p[4] - samples[i].value;
      if (jacobian.empty()) continue;
      double* row = jacobian.data() + i * 5;
      row[0] = bell;
      row[1] = p[0] * bell * square / (p[1] * p[1] * p[1]);
      row[2] = p[0] * bell * l / (p[1] * p[1]);
      row[3] = p[0] * bell * q / (p[1] * p[1]);
      row[4] = 1.0;
    }
    return true;
  };
  return problem;
}

Result<void> fit_bell(const std::vector<Sample>& samples, std::uint64_t seed, ScalacnState& state) {
  double largest = 0.0;
  for (const Sample& sample : samples) largest = std::max(largest, sample.value);
  const LeastSquaresProblem problem = bell_problem(samples, largest);
  std::vector<std::vector<double>> starts;
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> unit(0.0, 1.0);
  for (const double centre : {-40.0, -20.0, 0.0, 10.0}) {
    for (const double width : {10.0, 25.0, 50.0}) {
      starts.push_back({largest * (1.0 + unit(random)), width, centre, centre, 0.1 * largest});
    }
  }
  LeastSquaresOptions options;
  options.max_iterations = 500;
  options.tolerance = 1e-12;
  options.thorough = true;
  const auto fit = best_of_starts(problem, starts, 3, options);
  if (!fit) return fit.error().while_doing("fitting the bandwidth bell");
  const auto& p = fit->parameters;
  ScalacnCoefficients& k = state.coefficients;
  k.u = p[0];
  k.v = p[1];
  k.m = p[2];
  k.n = p[3];
  k.w = p[4];
  const double freedom = std::max(1.0, static_cast<double>(samples.size()) - 5.0);
  const double variance = fit->sum_of_squares / freedom;
  state.residual[pipeline::kLogBandwidth] = BitRate::from_scalacn(std::sqrt(variance)).gbps();
  const auto known = determine(problem, p);
  if (!known) {
    state.findings.push_back("u, v, m, n and w of the bell cannot be told apart: " +
                             known.error().message);
    return {};
  }
  state.bandwidth_covariance = known->covariance;
  for (double& entry : state.bandwidth_covariance) entry *= variance;
  if (known->condition_number > 30.0) {
    state.findings.push_back(fmt::format(
        "u, v, m and n of the bell trade off against each other (condition number {:.0f}): judge "
        "the function inside its domain, never single coefficients; masks beyond {:.0f} on both "
        "sides would settle them",
        known->condition_number, std::max(std::abs(p[2]), std::abs(p[3]))));
  }
  return {};
}

}  // namespace

Result<ScalacnState> fit_scalacn(const Points& points, std::uint64_t seed) {
  ScalacnState state;
  state.observations = points.observations_used;
  for (const auto& [name, range] : points.domain.numeric) {
    if (name.ends_with("_masks")) state.domain.numeric[name] = range;
  }
  const auto bandwidth = samples_of(points, pipeline::kLogBandwidth);
  const auto latency = samples_of(points, pipeline::kLogLatency);
  std::string why_not;
  if (distinct_inputs(bandwidth) >= 5) {
    if (auto ok = fit_bell(bandwidth, seed, state); !ok) return pass_on(ok);
  } else if (!bandwidth.empty()) {
    why_not = fmt::format("the bell has 5 coefficients and {} settings of (Q_l, Q_r) are there",
                          distinct_inputs(bandwidth));
    state.findings.push_back("bandwidth is not fitted: " + why_not);
  }
  if (distinct_inputs(latency) >= 3) {
    if (auto ok = fit_plane(latency, state); !ok) return pass_on(ok);
  } else if (!latency.empty()) {
    why_not = fmt::format("the plane has 3 coefficients and {} settings of (Q_l, Q_r) are there",
                          distinct_inputs(latency));
    state.findings.push_back("latency is not fitted: " + why_not);
  }
  if (!state.residual[0] && !state.residual[1]) {
    return fail(ErrorCode::kTooFewPoints, "fitting the scalacn forms: " + why_not);
  }
  return state;
}

}  // namespace greynic::model
