#include "surrogate/model.h"

#include <fmt/core.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "data/model_file.h"
#include "greynic/files/json_file.h"
#include "greynic/statistics/distributions.h"

namespace greynic::model {

using nlohmann::json;

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

std::string SurrogateModel::to_json_text() const {
  json axes = json::array();
  for (const Axis& axis : state_.axes) {
    axes.push_back({{"factor", axis.factor},
                    {"level", axis.level},
                    {"logarithmic", axis.logarithmic},
                    {"centre", axis.centre},
                    {"scale", axis.scale}});
  }
  json processes = json::object();
  for (const auto& [name, p] : state_.processes) {
    processes[name] = {{"mean", p.mean},      {"signal", p.signal},   {"slope", p.slope},
                       {"noise", p.noise},    {"lengths", p.lengths}, {"inputs", p.inputs},
                       {"targets", p.targets}};
  }
  const json document = {{"version", 1},
                         {"law", law()},
                         {"observations", state_.observations},
                         {"domain", model::to_json(state_.domain)},
                         {"findings", state_.findings},
                         {"axes", axes},
                         {"processes", processes}};
  return document.dump(1) + "\n";
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

Result<std::unique_ptr<Model>> surrogate_from_json(const json& document,
                                                   const std::string& source) {
  SurrogateState state;
  state.observations = document.at("observations").get<std::size_t>();
  auto domain = domain_from_file(document, source);
  if (!domain) return pass_on(domain);
  state.domain = std::move(*domain);
  state.findings = document.at("findings").get<std::vector<std::string>>();
  for (const json& axis : document.at("axes")) {
    state.axes.push_back({axis.at("factor").get<std::string>(), axis.at("level").get<std::string>(),
                          axis.at("logarithmic").get<bool>(), axis.at("centre").get<double>(),
                          axis.at("scale").get<double>()});
    if (state.axes.back().scale == 0.0) {
      return files::bad_value(source, "/axes", "a scale must not be 0");
    }
  }
  for (const auto& [name, object] : document.at("processes").items()) {
    Process p;
    p.mean = object.at("mean").get<double>();
    p.signal = object.at("signal").get<double>();
    p.slope = object.at("slope").get<double>();
    p.noise = object.at("noise").get<double>();
    p.lengths = object.at("lengths").get<std::vector<double>>();
    p.inputs = object.at("inputs").get<std::vector<std::vector<double>>>();
    p.targets = object.at("targets").get<std::vector<double>>();
    const std::string path = "/processes/" + name;
    const bool shaped =
        p.lengths.size() == state.axes.size() && p.inputs.size() == p.targets.size() &&
        std::all_of(p.inputs.begin(), p.inputs.end(),
                    [&](const auto& row) { return row.size() == state.axes.size(); }) &&
        std::all_of(p.lengths.begin(), p.lengths.end(), [](double x) { return x > 0.0; });
    if (!shaped || p.inputs.empty()) {
      return files::bad_value(source, path, "inputs, targets, lengths and axes disagree in size");
    }
    if (!p.prepare()) return files::bad_value(source, path, "is no valid covariance");
    state.processes.emplace(name, std::move(p));
  }
  return std::make_unique<SurrogateModel>(std::move(state));
}

}  // namespace greynic::model
