#include "pipeline/model.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "greynic/core/units.h"
#include "greynic/statistics/distributions.h"
#include "pipeline/walks/uneven_walks.h"

namespace greynic::model {

using pipeline::kParameterCount;
using pipeline::Output;

namespace {

using statistics::kNormal95;

/// Logarithm of a prediction and its standard deviation.
struct LogPrediction {
  double mean = 0.0;
  double deviation = 0.0;
};

/// Variance g' C g; an output depends on a dozen parameters, the rest is not walked over.
double variance_along(const std::vector<double>& covariance, const pipeline::Values& gradient) {
  std::array<int, kParameterCount> moved;
  int count = 0;
  double sum = 0.0;
  for (int j = 0; j < kParameterCount; ++j) {
    if (gradient[j] == 0.0) continue;
    const double* row = covariance.data() + j * kParameterCount;
    double off_diagonal = 0.0;
    for (int k = 0; k < count; ++k) off_diagonal += row[moved[k]] * gradient[moved[k]];
    sum += gradient[j] * (2.0 * off_diagonal + gradient[j] * row[j]);
    moved[count++] = j;
  }
  return std::max(0.0, sum);  // rounding may make it negative
}

/// Variance of the law's own error at a setting: what settings left out showed near it, leaning on
/// what they showed everywhere where few are near; and what no law explains, which may happen again
/// where it happened, however many settings were spared.
double error_of_law(const PipelineState& state, Output output, const Setting& setting) {
  constexpr double kWeightOfAll = 4.0;
  const pipeline::Noise& noise = state.noise[output];
  const auto left_out = state.left_out[output].near(setting);
  const double nearby =
      (kWeightOfAll * noise.left_out * noise.left_out + left_out.weight * left_out.mean_square) /
      (kWeightOfAll + left_out.weight);
  const auto unexplained = state.unexplained[output].near(setting);
  return std::max(noise.run * noise.run, nearby) + unexplained.nearness * unexplained.mean_square;
}

/// Bounds of a share `exp(mean +- 1.96 deviation)`, never NaN.
PredictedMeasure interval_of(const LogPrediction& prediction) {
  // Beyond these bounds a double has no room; nothing physical lies there.
  static constexpr double kLargestLog = 600.0;
  const auto safe_exp = [](double x) { return std::exp(std::clamp(x, -kLargestLog, kLargestLog)); };
  return {safe_exp(prediction.mean), safe_exp(prediction.mean - kNormal95 * prediction.deviation),
          safe_exp(prediction.mean + kNormal95 * prediction.deviation)};
}

/// No scatter of the law carries more than the wire does: the bound is the upper end of what is
/// known of the line, scattered as a measurement of it would be.
PredictedMeasure within_line(const PipelineState& state, const Setting& setting,
                             PredictedMeasure bandwidth) {
  const double line = state.interval[pipeline::kLineGbps].high +
                      kNormal95 * state.noise[pipeline::kLogBandwidth].scatter;
  const double most = std::exp(line) * setting.bytes / setting.wire_bytes();
  bandwidth.high = std::min(bandwidth.high, std::max(bandwidth.value, most));
  return bandwidth;
}

LogPrediction predict_output(const PipelineState& state, pipeline::LawAt& law, Output output,
                             const Setting& setting, double distance) {
  pipeline::Values gradient;
  const double mean = law.at(output, setting, gradient);
  const pipeline::Noise& noise = state.noise[output];
  const double growth = distance > 0.0 ? noise.growth * std::log1p(distance) : 0.0;
  return {mean, std::sqrt(noise.scatter * noise.scatter + error_of_law(state, output, setting) +
                          growth * growth + variance_along(state.covariance, gradient))};
}

void add_tails(const std::map<std::string, Ratio>& tails, const LogPrediction& median,
               Prediction& prediction) {
  for (const auto& [name, ratio] : tails) {
    prediction.measures[name] =
        interval_of({median.mean + ratio.log_mean, std::hypot(median.deviation, ratio.deviation)});
  }
}

}  // namespace

BeyondFactors::BeyondFactors(const Domain& domain) : in_flight_(domain.requests_in_flight) {}

double BeyondFactors::shared(const Setting& setting) {
  return std::max(0.0, std::log2(setting.threads / setting.qps));
}

double BeyondFactors::deep(const Setting& setting) const {
  return in_flight_ ? widths_by_ratio(*in_flight_, setting.in_flight()) : 0.0;
}

double BeyondFactors::distance(const Setting& setting) const {
  return std::max(shared(setting), deep(setting));
}

std::vector<std::string> BeyondFactors::reasons(const Setting& setting) const {
  std::vector<std::string> reasons;
  if (shared(setting) > 0.0) {
    reasons.push_back(
        fmt::format("thread_count={} (with {} QPs: threads that share a QP are not in the law)",
                    number_to_string(setting.threads), number_to_string(setting.qps)));
  }
  if (deep(setting) > 0.0) {
    reasons.push_back(fmt::format(
        "qp_count x send_queue_depth={} (fitted {} to {})", number_to_string(setting.in_flight()),
        number_to_string(in_flight_->low), number_to_string(in_flight_->high)));
  }
  return reasons;
}

PredictedMeasure predict_measure(const PipelineState& state, pipeline::LawAt& law, Output output,
                                 const Setting& setting, double distance) {
  const PredictedMeasure measure =
      interval_of(predict_output(state, law, output, setting, distance));
  return output == pipeline::kLogBandwidth ? within_line(state, setting, measure) : measure;
}

Result<Prediction> PipelineModel::predict(const Configuration& configuration) const {
  Prediction prediction;
  prediction.law = law();
  prediction.extrapolated = false;
  pipeline::LawAt at_values(state_.values);
  const BeyondFactors beyond(state_.domain);
  for (const auto output : {pipeline::kLogBandwidth, pipeline::kLogLatency}) {
    if (!state_.fitted[output]) continue;
    const Configuration& assumed = state_.assumed[output];
    const auto setting = read_setting(configuration, assumed);
    if (!setting) return setting.error().while_doing("predicting " + configuration.name());
    Outside outside = state_.domain.outside(configuration, assumed);
    outside.distance = std::max(outside.distance, beyond.distance(*setting));
    for (std::string& reason : beyond.reasons(*setting)) {
      outside.factors.push_back(std::move(reason));
    }
    if (outside.distance > prediction.distance) {
      prediction.distance = outside.distance;
      prediction.outside = outside.factors;
    }
    if (output == pipeline::kLogBandwidth) {
      if (setting->bytes <= 0.0) continue;  // nothing to carry: a rate of payload says nothing
      const PredictedMeasure bandwidth =
          predict_measure(state_, at_values, output, *setting, outside.distance);
      const double per_gbps = 1.0 / (setting->bytes * 8e-3);  // million messages a second
      prediction.measures[std::string(measure::kBandwidth)] = bandwidth;
      prediction.measures[std::string(measure::kMessageRate)] = {
          bandwidth.value * per_gbps, bandwidth.low * per_gbps, bandwidth.high * per_gbps};
    } else {
      const LogPrediction log =
          predict_output(state_, at_values, output, *setting, outside.distance);
      prediction.measures[std::string(measure::kLatencyP50)] = interval_of(log);
      add_tails(state_.tails, log, prediction);
    }
  }
  prediction.extrapolated = prediction.distance > 0.0;
  return prediction;
}

Result<AlikeMasks> PipelineModel::masks_alike(const Configuration& configuration, Hop hop,
                                              const MaskShares& shares) const {
  auto alike = Model::masks_alike(configuration, hop, shares);
  if (!alike) return alike;
  Configuration even = configuration;
  even.set(mask_factor(hop), alike->for_rate);
  for (const auto output : {pipeline::kLogBandwidth, pipeline::kLogLatency}) {
    if (!state_.fitted[output]) continue;
    const auto setting = read_setting(even, state_.assumed[output]);
    if (!setting) return pass_on(setting);
    const AlikeMasks by_law = pipeline::masks_alike(state_.values, *setting, hop, shares);
    if (output == pipeline::kLogBandwidth) {
      alike->for_rate = by_law.for_rate;
    } else {
      alike->for_latency = by_law.for_latency;
    }
  }
  return alike;
}

}  // namespace greynic::model
