#pragma once

/// A fitted pipeline law as a Model.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "greynic/model/model.h"
#include "pipeline_fit.h"
#include "points.h"

namespace greynic::model {

/// All that a prediction needs, and what the file keeps.
struct PipelineState {
  pipeline::Values values{};
  std::vector<double> covariance;  ///< kParameterCount squared
  std::array<pipeline::Interval, pipeline::kParameterCount>
      interval{};  ///< 95 % of each fitted value
  std::array<pipeline::Noise, kOutputCount> noise{};
  std::array<bool, kOutputCount> fitted{};  ///< outputs that had points
  std::array<Configuration, kOutputCount> assumed;
  Domain domain;
  std::map<std::string, Ratio> tails;
  std::size_t observations = 0;
  std::vector<std::string> findings;
};

/// Logarithm of a prediction and its standard deviation.
struct LogPrediction {
  double mean = 0.0;
  double deviation = 0.0;
};

class PipelineModel final : public Model {
 public:
  explicit PipelineModel(PipelineState state) : state_(std::move(state)) {}
  [[nodiscard]] std::string law() const override { return "pipeline"; }
  [[nodiscard]] std::vector<std::string> inputs() const override { return setting_factors(); }
  [[nodiscard]] Result<Prediction> predict(const Configuration& configuration) const override;
  [[nodiscard]] std::string to_json_text() const override;

  [[nodiscard]] const PipelineState& state() const { return state_; }
  [[nodiscard]] PipelineState& state() { return state_; }

 private:
  PipelineState state_;
};

/// How far a setting lies outside of what the law is about, whatever was measured, in doublings;
/// 0 inside. Threads that share a QP take turns at its lock, which the law does not have.
[[nodiscard]] double beyond_law(const Setting& setting);

/// Prediction of one output where a setting lies `distance` widths outside the domain; `law` is the
/// law at the state's values.
[[nodiscard]] LogPrediction predict_output(const PipelineState& state, pipeline::LawAt& law,
                                           pipeline::Output output, const Setting& setting,
                                           double distance);

/// Bounds of a share `exp(mean +- 1.96 deviation)`, never NaN.
[[nodiscard]] PredictedMeasure interval_of(const LogPrediction& prediction);

}  // namespace greynic::model
