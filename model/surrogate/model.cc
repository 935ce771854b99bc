#include "surrogate/model.h"

#include <fmt/core.h>

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <algorithm>
#include <cmath>

#include "greynic/statistics/distributions.h"

namespace greynic::model {

namespace {

using statistics::kNormal95;

constexpr double kJitter = 1e-8;

double covariance(const Process& p, const std::vector<double>& a, const std::vector<double>& b) {
  double square = 0.0;
  double dot = 1.0;
  for (std::size_t k = 0; k < a.size(); ++k) {
    const double d = (a[k] - b[k]) / p.lengths[k];
    square += d * d;
    dot += a[k] * b[k];
  }
  return p.signal * p.signal * std::exp(-0.5 * square) + p.slope * p.slope * dot;
}

}  // namespace

std::vector<double> scaled_input(const std::vector<Axis>& axes,
                                 const Configuration& configuration) {
  std::vector<double> input;
  input.reserve(axes.size());
  for (const Axis& axis : axes) {
    double x = 0.0;
    if (!axis.level.empty()) {
      const FactorValue* value = configuration.find(axis.factor);
      const std::string text = value ? to_string(*value) : configuration.text(axis.factor);
      x = text == axis.level ? 1.0 : 0.0;
    } else {
      x = configuration.number(axis.factor, axis.centre);
      if (axis.logarithmic) x = std::log1p(std::max(0.0, x));
    }
    input.push_back((x - axis.centre) / axis.scale);
  }
  return input;
}

bool Process::prepare() {
  const auto n = static_cast<Eigen::Index>(inputs.size());
  Eigen::MatrixXd k(n, n);
  for (Eigen::Index i = 0; i < n; ++i) {
    for (Eigen::Index j = 0; j <= i; ++j) {
      k(i, j) = k(j, i) = covariance(*this, inputs[static_cast<std::size_t>(i)],
                                     inputs[static_cast<std::size_t>(j)]);
    }
    k(i, i) += noise * noise + kJitter;
  }
  const Eigen::LLT<Eigen::MatrixXd> llt(k);
  if (llt.info() != Eigen::Success) return false;
  const Eigen::Map<const Eigen::VectorXd> y(targets.data(), n);
  const Eigen::VectorXd w = llt.solve(y);
  weights.assign(w.data(), w.data() + n);
  const Eigen::MatrixXd lower = llt.matrixL();
  const Eigen::MatrixXd rows = lower.transpose();  // column-major of the transpose is row by row
  factor.assign(rows.data(), rows.data() + rows.size());
  return true;
}

Process::At Process::at(const std::vector<double>& input) const {
  const std::size_t n = inputs.size();
  Eigen::VectorXd k(static_cast<Eigen::Index>(n));
  double value = mean;
  for (std::size_t i = 0; i < n; ++i) {
    const double c = covariance(*this, input, inputs[i]);
    k[static_cast<Eigen::Index>(i)] = c;
    value += c * weights[i];
  }
  const auto size = static_cast<Eigen::Index>(n);
  using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const Eigen::Map<const RowMajor> lower(factor.data(), size, size);
  lower.triangularView<Eigen::Lower>().solveInPlace(k);
  const double variance = covariance(*this, input, input) - k.squaredNorm();
  return {value, std::sqrt(std::max(0.0, variance) + noise * noise)};
}

std::vector<std::string> SurrogateModel::inputs() const {
  std::vector<std::string> names;
  for (const Axis& axis : state_.axes) {
    if (names.empty() || names.back() != axis.factor) names.push_back(axis.factor);
  }
  return names;
}

Result<Prediction> SurrogateModel::predict(const Configuration& configuration) const {
  const auto input = scaled_input(state_.axes, configuration);
  const bool finite =
      std::all_of(input.begin(), input.end(), [](double x) { return std::isfinite(x); });
  if (!finite) {
    return fail(ErrorCode::kBadInput, "predicting " + configuration.name() + ": not a number");
  }
  Prediction prediction;
  prediction.law = law();
  const Outside outside = state_.domain.outside(configuration, {});
  prediction.distance = outside.distance;
  prediction.outside = outside.factors;
  prediction.extrapolated = outside.distance > 0.0;
  for (const auto& [name, process] : state_.processes) {
    const Process::At at = process.at(input);
    // A process knows nothing of mechanisms: beyond its points it is trusted less with distance.
    const double deviation = at.deviation * (1.0 + outside.distance);
    const auto bounded = [](double x) { return std::exp(std::clamp(x, -600.0, 600.0)); };
    prediction.measures[name] = {bounded(at.mean), bounded(at.mean - kNormal95 * deviation),
                                 bounded(at.mean + kNormal95 * deviation)};
  }
  return prediction;
}

std::string surrogate_table(const SurrogateState& state) {
  std::string text;
  for (const auto& [name, process] : state.processes) {
    text += fmt::format("{}: {} points, noise {:.2f} %, smooth part {:.2f} %\n", name,
                        process.inputs.size(), 100.0 * process.noise, 100.0 * process.signal);
    for (std::size_t k = 0; k < state.axes.size(); ++k) {
      const Axis& axis = state.axes[k];
      text += fmt::format("  {:<32} length {:.3g} spreads of the data\n",
                          axis.level.empty() ? axis.factor : axis.factor + "=" + axis.level,
                          process.lengths[k]);
    }
  }
  return text;
}

}  // namespace greynic::model
