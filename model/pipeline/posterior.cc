#include "pipeline/posterior.h"

#include <algorithm>
#include <cmath>

namespace greynic::model::pipeline {

LeastSquaresProblem Posterior::problem() const {
  LeastSquaresProblem result;
  result.residual_count = points.size() + active.size();
  result.residuals = [this](std::span<const double> x, std::span<double> r,
                            std::span<double> jacobian) { return residuals(x, r, jacobian); };
  for (const int j : active) {
    result.lower.push_back(fitted(static_cast<Parameter>(j), parameters()[j].lower));
    result.upper.push_back(fitted(static_cast<Parameter>(j), parameters()[j].upper));
  }
  return result;
}

Values Posterior::with(std::span<const double> x) const {
  Values all = values;
  for (std::size_t k = 0; k < active.size(); ++k) all[active[k]] = x[k];
  return all;
}

bool Posterior::residuals(std::span<const double> x, std::span<double> r,
                          std::span<double> jacobian) const {
  const Values all = with(x);
  const std::size_t n = active.size();
  LawAt law(all);
  Values gradient;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const Point& point = points[i];
    if (weight[i] == 0.0) {
      r[i] = 0.0;
      if (!jacobian.empty()) std::fill_n(jacobian.begin() + static_cast<long>(i * n), n, 0.0);
      continue;
    }
    const double predicted = jacobian.empty() ? law.at(point.output, point.setting)
                                              : law.at(point.output, point.setting, gradient);
    const auto [value, slope] = robust(loss, (predicted - point.log_value) * weight[i]);
    r[i] = value;
    if (jacobian.empty()) continue;
    for (std::size_t k = 0; k < n; ++k)
      jacobian[i * n + k] = gradient[active[k]] * weight[i] * slope;
  }
  for (std::size_t k = 0; k < n; ++k) {
    const Prior& prior = priors[active[k]];
    const std::size_t row = points.size() + k;
    const double reference = prior.relative_to ? all[*prior.relative_to] : 0.0;
    r[row] = (x[k] - reference - prior.mean) / prior.deviation;
    if (jacobian.empty()) continue;
    std::fill_n(jacobian.begin() + static_cast<long>(row * n), n, 0.0);
    jacobian[row * n + k] = 1.0 / prior.deviation;
    for (std::size_t l = 0; l < n; ++l) {
      if (prior.relative_to && active[l] == *prior.relative_to) {
        jacobian[row * n + l] = -1.0 / prior.deviation;
      }
    }
  }
  return true;
}

std::vector<double> Posterior::at(const Values& all) const {
  std::vector<double> x;
  for (const int j : active) {
    const auto parameter = static_cast<Parameter>(j);
    x.push_back(std::clamp(all[j], fitted(parameter, parameters()[j].lower),
                           fitted(parameter, parameters()[j].upper)));
  }
  return x;
}

std::vector<double> weights_for(const std::vector<Point>& points,
                                const std::array<Noise, kOutputCount>& noise,
                                const std::vector<bool>& anomalous) {
  std::vector<double> weight(points.size());
  for (std::size_t i = 0; i < points.size(); ++i) {
    const double scatter = noise[points[i].output].scatter;
    weight[i] = anomalous[i] ? 0.0 : 1.0 / std::hypot(scatter, points[i].relative_error);
  }
  return weight;
}

}  // namespace greynic::model::pipeline
