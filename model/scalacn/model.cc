#include "scalacn/model.h"

#include <fmt/core.h>

#include <Eigen/Core>
#include <algorithm>
#include <cmath>

#include "greynic/core/units.h"
#include "greynic/statistics/distributions.h"

namespace greynic::model {

namespace {

using statistics::kNormal95;

constexpr double kGridEdge = 20.0;

/// Bounds of 95 %; a rate or a time cannot be negative.
PredictedMeasure normal_interval(double value, double deviation) {
  const double mean = std::max(0.0, value);
  return {mean, std::max(0.0, value - kNormal95 * deviation),
          std::max(mean, value + kNormal95 * deviation)};
}

double quadratic_form(const std::vector<double>& matrix, const Eigen::VectorXd& g) {
  if (matrix.empty()) return 0.0;
  const auto n = g.size();
  const Eigen::Map<const Eigen::MatrixXd> m(matrix.data(), n, n);
  return std::max(0.0, g.dot(m * g));
}

/// Derivatives of the bandwidth form by u, v, m, n, w; Gbit/s per unit.
Eigen::VectorXd bandwidth_gradient(const ScalacnCoefficients& k, const LocalRemote& q) {
  const double l = q.local - k.m;
  const double r = q.remote - k.n;
  const double bell = std::exp(-(l * l + r * r) / (2.0 * k.v * k.v));
  Eigen::VectorXd g(5);
  g << bell, k.u * bell * (l * l + r * r) / (k.v * k.v * k.v), k.u * bell * l / (k.v * k.v),
      k.u * bell * r / (k.v * k.v), 1.0;
  return g * BitRate::from_scalacn(1.0).gbps();
}

}  // namespace

LocalRemote local_remote(const Setting& setting) {
  const auto masks = [&](Hop hop) { return setting.masks[static_cast<int>(hop)]; };
  return {masks(Hop::kClientEncap) + masks(Hop::kClientDecap),
          masks(Hop::kServerEncap) + masks(Hop::kServerDecap)};
}

std::vector<std::string> ScalacnModel::inputs() const {
  return {"client_decap_masks", "client_encap_masks", "server_decap_masks", "server_encap_masks"};
}

Result<Prediction> ScalacnModel::predict(const Configuration& configuration) const {
  const auto setting = read_setting(configuration, {});
  if (!setting) return setting.error().while_doing("predicting " + configuration.name());
  const LocalRemote q = local_remote(*setting);
  const ScalacnCoefficients& k = state_.coefficients;
  const Outside outside = state_.domain.outside(configuration, {});
  Prediction prediction;
  prediction.law = law();
  prediction.distance = outside.distance;
  prediction.outside = outside.factors;
  prediction.extrapolated = outside.distance > 0.0;
  // A bell and a plane are descriptions without a mechanism: outside of their domain the error
  // grows at least with the distance.
  const double widening = 1.0 + outside.distance;
  if (state_.residual[pipeline::kLogBandwidth]) {
    const double residual = *state_.residual[pipeline::kLogBandwidth];
    const double spread =
        std::sqrt(residual * residual +
                  quadratic_form(state_.bandwidth_covariance, bandwidth_gradient(k, q)));
    const double value = k.bandwidth_gbps(q.local, q.remote);
    PredictedMeasure measure = normal_interval(value, spread * widening);
    if (state_.line_gbps && measure.value > *state_.line_gbps) {
      prediction.notes.push_back(fmt::format(
          "the published surface gives {:.1f} Gbit/s here, more than the port carries; clamped",
          value));
      measure.value = *state_.line_gbps;
    }
    if (state_.line_gbps) {
      measure.high = std::min(measure.high, *state_.line_gbps);
      measure.low = std::min(measure.low, *state_.line_gbps);
    }
    prediction.measures[std::string(measure::kBandwidth)] = measure;
  }
  if (state_.residual[pipeline::kLogLatency]) {
    const double residual = *state_.residual[pipeline::kLogLatency];
    Eigen::VectorXd g(3);
    g << q.local, q.remote, 1.0;
    const double spread =
        std::sqrt(residual * residual + quadratic_form(state_.latency_covariance, g));
    prediction.measures[std::string(measure::kLatencyP50)] =
        normal_interval(k.latency_us(q.local, q.remote), spread * widening);
  }
  return prediction;
}

std::unique_ptr<Model> published_model(const PublishedRow& row) {
  ScalacnState state;
  state.coefficients = row.coefficients;
  Setting full_packets;
  full_packets.bytes = full_packets.mtu;
  state.line_gbps = row.line_rate_gbps * full_packets.bytes / full_packets.wire_bytes();
  // What the published goodness of fit leaves unexplained, over the grid it was measured on.
  double sums[kOutputCount] = {};
  double squares[kOutputCount] = {};
  double count = 0.0;
  for (double l = 0; l <= kGridEdge; ++l) {
    for (double r = 0; r <= kGridEdge; ++r, ++count) {
      const double values[] = {row.coefficients.bandwidth_gbps(l, r),
                               row.coefficients.latency_us(l, r)};
      for (int o = 0; o < kOutputCount; ++o) {
        sums[o] += values[o];
        squares[o] += values[o] * values[o];
      }
    }
  }
  for (int o = 0; o < kOutputCount; ++o) {
    const double variance = squares[o] / count - std::pow(sums[o] / count, 2.0);
    state.residual[o] = std::sqrt(variance * (1.0 - row.goodness) / row.goodness);
  }
  // Q_l and Q_r went to 20 each; which of a side's two hops held them is not published.
  for (const char* factor :
       {"client_encap_masks", "client_decap_masks", "server_encap_masks", "server_decap_masks"}) {
    state.domain.numeric[factor] = {0.0, kGridEdge};
  }
  state.findings = {"published coefficients of " + row.name +
                    " (ScalaCN, NSDI 2025); intervals from the published goodness of fit"};
  return std::make_unique<ScalacnModel>(std::move(state));
}

}  // namespace greynic::model
