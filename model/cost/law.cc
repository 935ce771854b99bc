#include "cost/law.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "greynic/statistics/distributions.h"

namespace greynic::model {

namespace {

using statistics::kNormal95;

/// Error outside the domain for each e-fold of 1 + distance: a straight line rests on few
/// assumptions, but caches of the host may end.
constexpr double kGrowth = 0.10;
constexpr double kLeastCost = 1e-9;

double level(const Configuration& configuration, const Configuration& assumed,
             const std::string& name) {
  return configuration.contains(name) ? configuration.number(name) : assumed.number(name);
}

bool is_on(const Configuration& configuration, const Configuration& assumed,
           const std::string& name) {
  return configuration.contains(name) ? configuration.flag(name) : assumed.flag(name);
}

}  // namespace

CostTermInfo info_of(CostTermKind kind) {
  switch (kind) {
    case CostTermKind::kBase:
      return {"base", "", "a packet without masks"};
    case CostTermKind::kPerMask:
      return {"per_mask", "/mask", "each mask of the hop"};
    case CostTermKind::kPerByte:
      return {"per_byte", "/byte", "each byte of payload"};
    case CostTermKind::kPerFlow:
      return {"per_flow_doubling", "/doubling", "each doubling of the number of flows"};
    case CostTermKind::kPerRule:
      return {"per_rule_doubling", "/doubling", "each doubling of the rules of a mask"};
    case CostTermKind::kCacheHalf:
      return {"half", "flows", "flows at which half of the packets miss the cache"};
    case CostTermKind::kCacheSteep:
      return {"steepness", "1", "how abruptly the cache fills up"};
  }
  return {};
}

std::string unit_of(const std::string& measure, const CostTerm& term) {
  const CostTermInfo info = info_of(term.kind);
  if (term.kind == CostTermKind::kCacheHalf || term.kind == CostTermKind::kCacheSteep) {
    return std::string(info.unit);
  }
  const std::size_t last = measure.rfind('_');
  return (last == std::string::npos ? "" : measure.substr(last + 1)) + std::string(info.unit);
}

std::string CostTerm::name() const {
  const std::string kind_name(info_of(kind).name);
  return factor.empty() ? kind_name : kind_name + " of " + factor;
}

double cost_of(const CostState& state, const Configuration& configuration,
               std::span<const double> values, std::span<double> gradient) {
  const auto number = [&](const std::string& name) {
    return level(configuration, state.assumed, name);
  };
  const double flows = std::max(1.0, number("flow_count"));
  // Share of the packets that every cache in force misses, and its derivatives by the logarithm.
  double miss = 1.0;
  for (std::size_t k = 0; k < state.terms.size(); ++k) {
    if (state.terms[k].kind != CostTermKind::kCacheHalf) continue;
    if (!is_on(configuration, state.assumed, state.terms[k].factor)) continue;
    miss /= 1.0 + std::pow(values[k] / flows, values[k + 1]);  // steepness follows its half
  }
  double cost = 0.0;
  double searched = 0.0;
  for (std::size_t k = 0; k < state.terms.size(); ++k) {
    double feature = 0.0;
    switch (state.terms[k].kind) {
      case CostTermKind::kBase:
        feature = 1.0;
        break;
      case CostTermKind::kPerMask:
        feature = number(state.terms[k].factor) * miss;
        searched += values[k] * feature;
        break;
      case CostTermKind::kPerByte:
        feature = number("message_bytes");
        break;
      case CostTermKind::kPerFlow:
        feature = std::log2(flows);
        break;
      case CostTermKind::kPerRule:
        feature = std::log2(std::max(1.0, number("rules_per_mask")));
        break;
      case CostTermKind::kCacheHalf:
      case CostTermKind::kCacheSteep:
        continue;
    }
    cost += values[k] * feature;
    if (!gradient.empty()) gradient[k] = feature;
  }
  if (gradient.empty()) return cost;
  for (std::size_t k = 0; k < state.terms.size(); ++k) {
    if (state.terms[k].kind != CostTermKind::kCacheHalf) continue;
    gradient[k] = gradient[k + 1] = 0.0;
    if (!is_on(configuration, state.assumed, state.terms[k].factor)) continue;
    const double ratio = std::pow(values[k] / flows, values[k + 1]);
    const double hit = ratio / (1.0 + ratio);
    gradient[k] = -searched * hit * values[k + 1] / values[k];
    gradient[k + 1] = -searched * hit * std::log(values[k] / flows);
  }
  return cost;
}

std::vector<std::string> CostModel::inputs() const {
  std::vector<std::string> names;
  for (const auto& [name, range] : state_.domain.numeric) names.push_back(name);
  for (const auto& [name, levels] : state_.domain.categories) names.push_back(name);
  return names;
}

Result<Prediction> CostModel::predict(const Configuration& configuration) const {
  for (const auto& [name, range] : state_.domain.numeric) {
    const FactorValue* value = configuration.find(name);
    if (value == nullptr) continue;
    const double* number = std::get_if<double>(value);
    if (number == nullptr || !std::isfinite(*number) || *number < 0.0) {
      return fail(ErrorCode::kBadInput, fmt::format("{} must be a number of at least 0, not '{}'",
                                                    name, to_string(*value)));
    }
  }
  Prediction prediction;
  prediction.law = law();
  const Outside outside = state_.domain.outside(configuration, state_.assumed);
  prediction.distance = outside.distance;
  prediction.outside = outside.factors;
  prediction.extrapolated = outside.distance > 0.0;
  const std::size_t n = state_.terms.size();
  std::vector<double> gradient(n);
  for (const auto& [name, curve] : state_.curves) {
    const double cost =
        std::max(kLeastCost, cost_of(state_, configuration, curve.values, gradient));
    double variance = 0.0;
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        variance += gradient[i] * gradient[j] * curve.covariance[i * n + j];
      }
    }
    const double parameters = std::sqrt(std::max(0.0, variance)) / cost;
    const double deviation =
        std::hypot(std::hypot(curve.scatter, parameters), kGrowth * std::log1p(outside.distance));
    const double width = std::min(600.0, kNormal95 * deviation);
    prediction.measures[name] = {cost, cost * std::exp(-width), cost * std::exp(width)};
  }
  return prediction;
}

std::string cost_table(const CostState& state) {
  std::string text = fmt::format("{:<20} {:<32} {:>12} {:>12} {:>12}  {}\n", "measure", "parameter",
                                 "value", "low 95 %", "high 95 %", "unit");
  const std::size_t n = state.terms.size();
  for (const auto& [name, curve] : state.curves) {
    for (std::size_t k = 0; k < n; ++k) {
      const double half_width = kNormal95 * std::sqrt(std::max(0.0, curve.covariance[k * n + k]));
      text += fmt::format("{:<20} {:<32} {:>12.5g} {:>12.5g} {:>12.5g}  {}\n", name,
                          state.terms[k].name(), curve.values[k],
                          std::max(0.0, curve.values[k] - half_width), curve.values[k] + half_width,
                          unit_of(name, state.terms[k]));
    }
  }
  return text;
}

}  // namespace greynic::model
