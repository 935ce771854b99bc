#include <fmt/core.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <set>

#include "cost/law.h"
#include "fitting/fit_report.h"
#include "fitting/robust.h"
#include "greynic/model/least_squares.h"

namespace greynic::model {
namespace {

constexpr std::string_view kCaches[] = {"exact_match_cache", "signature_match_cache"};
constexpr std::string_view kRead[] = {
    "client_encap_masks", "server_decap_masks", "server_encap_masks",
    "client_decap_masks", "message_bytes",      "flow_count",
    "rules_per_mask",     "exact_match_cache",  "signature_match_cache"};
constexpr double kFirstScatter = 0.05;
constexpr double kLeastScatter = 1e-4;

struct Row {
  const Configuration* configuration;
  double log_cost;
  double relative_error;
};

std::vector<Row> rows_of(std::span<const Observation> observations, const std::string& measure) {
  std::vector<Row> rows;
  for (const Observation& observation : observations) {
    const auto value = observation.value(measure);
    if (!value || !std::isfinite(*value) || *value <= 0.0) continue;
    const auto error = observation.measures.at(measure).standard_error;
    const double share = error ? *error / *value : 0.0;
    rows.push_back({&configuration_of(observation), std::log(*value),
                    std::isfinite(share) && share > 0.0 ? share : 0.0});
  }
  return rows;
}

/// Factors that take more than one level get a term; the others are part of the base.
void choose_terms(std::span<const Observation> observations, CostState& state) {
  std::map<std::string, std::map<FactorValue, int>> seen;
  for (const Observation& observation : observations) {
    if (observation.outcome != Outcome::kMeasured) continue;
    for (const std::string_view name : kRead) {
      if (const FactorValue* value = configuration_of(observation).find(name)) {
        ++seen[std::string(name)][*value];
      } else {
        ++seen[std::string(name)][find_factor(name)->standard];
      }
    }
  }
  const auto varies = [&](const std::string& name) { return seen[name].size() > 1; };
  state.terms.push_back({CostTermKind::kBase, {}});
  for (const auto& [name, levels] : seen) {
    if (levels.empty()) continue;
    const auto most = std::max_element(levels.begin(), levels.end(),
                                       [](auto& a, auto& b) { return a.second < b.second; });
    state.assumed.set(name, most->first);
    if (name.ends_with("_masks") && varies(name)) {
      state.terms.push_back({CostTermKind::kPerMask, name});
    }
  }
  if (varies("message_bytes")) state.terms.push_back({CostTermKind::kPerByte, {}});
  if (varies("flow_count")) state.terms.push_back({CostTermKind::kPerFlow, {}});
  if (varies("rules_per_mask")) state.terms.push_back({CostTermKind::kPerRule, {}});
  for (const std::string_view cache : kCaches) {
    const std::string name(cache);
    // A cache that is always on shows in the slope, unless the number of flows tells its size.
    if (!seen[name].contains(FactorValue(true)) || !(varies(name) || varies("flow_count"))) {
      continue;
    }
    state.terms.push_back({CostTermKind::kCacheHalf, name});
    state.terms.push_back({CostTermKind::kCacheSteep, name});
  }
}

/// The logarithm of the cost as a least-squares problem: residuals of rows, then one weak pull for
/// each term, so that what the data do not tell stays near its start instead of running away.
struct CostProblem {
  const CostState& state;
  const std::vector<Row>& rows;
  std::vector<double> start;
  std::vector<double> scale;
  double scatter = kFirstScatter;
  Loss loss = Loss::kHuber;

  static constexpr double kPull = 1e-3;

  [[nodiscard]] LeastSquaresProblem problem() const {
    LeastSquaresProblem result;
    result.residual_count = rows.size() + state.terms.size();
    for (std::size_t k = 0; k < state.terms.size(); ++k) {
      const bool steep = state.terms[k].kind == CostTermKind::kCacheSteep;
      const bool half = state.terms[k].kind == CostTermKind::kCacheHalf;
      const bool base = state.terms[k].kind == CostTermKind::kBase;
      result.lower.push_back(steep ? 0.2 : half ? 1.0 : base ? 1e-6 * scale[k] : 0.0);
      result.upper.push_back(steep ? 8.0 : half ? 1e9 : 1e15);
    }
    result.residuals = [this](std::span<const double> x, std::span<double> r,
                              std::span<double> jacobian) { return residuals(x, r, jacobian); };
    return result;
  }

  bool residuals(std::span<const double> x, std::span<double> r, std::span<double> jacobian) const {
    const std::size_t n = x.size();
    std::vector<double> gradient(n);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const double cost = cost_of(state, *rows[i].configuration, x, gradient);
      if (!(cost > 0.0)) return false;
      const double weight = 1.0 / std::hypot(scatter, rows[i].relative_error);
      const auto [value, slope] = robust(loss, (std::log(cost) - rows[i].log_cost) * weight);
      r[i] = value;
      if (jacobian.empty()) continue;
      for (std::size_t k = 0; k < n; ++k) {
        jacobian[i * n + k] = gradient[k] / cost * weight * slope;
      }
    }
    for (std::size_t k = 0; k < n; ++k) {
      const std::size_t row = rows.size() + k;
      r[row] = kPull * (x[k] - start[k]) / scale[k];
      if (jacobian.empty()) continue;
      std::fill_n(jacobian.begin() + static_cast<long>(row * n), n, 0.0);
      jacobian[row * n + k] = kPull / scale[k];
    }
    return true;
  }
};

Result<CostCurve> fit_curve(const CostState& state, const std::vector<Row>& rows) {
  const std::size_t n = state.terms.size();
  CostProblem cost{state, rows, std::vector<double>(n), std::vector<double>(n)};
  double least = 1e300;
  double most = 0.0;
  for (const Row& row : rows) {
    least = std::min(least, std::exp(row.log_cost));
    most = std::max(most, std::exp(row.log_cost));
  }
  // Features at ones: what each term would need to explain everything alone.
  std::vector<double> ones(n, 1.0);
  std::vector<double> features(n);
  std::vector<double> largest(n, 0.0);
  for (const Row& row : rows) {
    (void)cost_of(state, *row.configuration, ones, features);
    for (std::size_t k = 0; k < n; ++k) largest[k] = std::max(largest[k], features[k]);
  }
  for (std::size_t k = 0; k < n; ++k) {
    const CostTermKind kind = state.terms[k].kind;
    const bool cache = kind == CostTermKind::kCacheHalf || kind == CostTermKind::kCacheSteep;
    cost.start[k] = kind == CostTermKind::kCacheHalf    ? 4096.0
                    : kind == CostTermKind::kCacheSteep ? 1.0
                    : kind == CostTermKind::kBase       ? least
                    : kind == CostTermKind::kPerMask    ? most / std::max(1.0, largest[k])
                                                        : 0.0;
    cost.scale[k] = cache ? cost.start[k] : most / std::max(1.0, largest[k]);
  }
  std::vector<double> x = cost.start;
  CostCurve curve;
  for (int round = 0; round < 4; ++round) {
    const auto solved = minimize(cost.problem(), x);
    if (!solved) return pass_on(solved);
    x = solved->parameters;
    std::vector<double> squares;
    for (const Row& row : rows) {
      const double error = std::log(cost_of(state, *row.configuration, x, {})) - row.log_cost;
      squares.push_back(std::max(0.0, error * error - row.relative_error * row.relative_error));
    }
    // Median of chi-square with one degree of freedom, then the degrees that the terms used up.
    const double used = static_cast<double>(rows.size()) - static_cast<double>(n);
    const double freedom = static_cast<double>(rows.size()) / std::max(1.0, used);
    double mean = 0.0;
    for (const double square : squares) mean += square / static_cast<double>(squares.size());
    const double middle = median(squares) / 0.455;
    // Few outliers make the mean large, many small errors the median: the scatter of the bulk.
    cost.scatter = std::max(kLeastScatter, std::sqrt(std::min(mean, 4.0 * middle) * freedom));
  }
  const auto known = determine(cost.problem(), x);
  if (!known) return pass_on(known);
  curve.values = std::move(x);
  curve.covariance = known->covariance;
  curve.scatter = cost.scatter;
  return curve;
}

}  // namespace

std::vector<std::string> cost_measures(std::span<const Observation> observations) {
  std::set<std::string> names;
  for (const Observation& observation : observations) {
    if (observation.outcome != Outcome::kMeasured) continue;
    for (const auto& [name, measure] : observation.measures) {
      if (name.find("_cost_") != std::string::npos) names.insert(name);
    }
  }
  return {names.begin(), names.end()};
}

Result<CostState> fit_cost(std::span<const Observation> observations) {
  CostState state;
  choose_terms(observations, state);
  std::vector<std::string> factors;
  for (const auto& [name, value] : state.assumed.levels()) factors.push_back(name);
  for (const Observation& observation : observations) {
    if (observation.outcome != Outcome::kMeasured) continue;
    state.domain.include(configuration_of(observation), factors);
    ++state.observations;
  }
  const auto measures = cost_measures(observations);
  if (measures.empty()) {
    return fail(ErrorCode::kNotMeasured,
                "no observation has a measure whose name says cost, such as packet_cost_ns; fit "
                "another law");
  }
  for (const std::string& name : measures) {
    const auto rows = rows_of(observations, name);
    if (rows.size() < state.terms.size() + 1) {
      return fail(
          ErrorCode::kTooFewPoints,
          fmt::format("{}: {} measured values cannot fit {} terms; measure {} more", name,
                      rows.size(), state.terms.size(), state.terms.size() + 1 - rows.size()));
    }
    auto curve = fit_curve(state, rows);
    if (!curve) return curve.error().while_doing("fitting the cost law to " + name);
    state.curves.emplace(name, std::move(*curve));
  }
  return state;
}

}  // namespace greynic::model
