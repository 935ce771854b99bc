#pragma once

/// A fitted pipeline law as a Model.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "data/points.h"
#include "greynic/model/model.h"
#include "pipeline/fit.h"
#include "pipeline/region_error.h"

namespace greynic::model {

/// All that a prediction needs, and what the file keeps.
struct PipelineState : FittedOn {
  pipeline::Values values{};
  std::vector<double> covariance;  ///< kParameterCount squared
  std::array<pipeline::Interval, pipeline::kParameterCount>
      interval{};  ///< 95 % of each fitted value
  std::array<pipeline::Noise, kOutputCount> noise{};
  std::array<RegionErrors, kOutputCount> left_out;     ///< errors on settings left out
  std::array<RegionErrors, kOutputCount> unexplained;  ///< of points that no law explains
  std::array<bool, kOutputCount> fitted{};             ///< outputs that had points
  std::array<Configuration, kOutputCount> assumed;
  std::map<std::string, Ratio> tails;
};

class PipelineModel final : public Model {
 public:
  explicit PipelineModel(PipelineState state) : state_(std::move(state)) {}
  [[nodiscard]] std::string law() const override { return "pipeline"; }
  [[nodiscard]] std::vector<std::string> inputs() const override { return setting_factors(); }
  [[nodiscard]] Result<Prediction> predict(const Configuration& configuration) const override;
  [[nodiscard]] Result<AlikeMasks> masks_alike(const Configuration& configuration, Hop hop,
                                               const MaskShares& shares) const override;
  [[nodiscard]] std::string to_json_text() const override;

  [[nodiscard]] const PipelineState& state() const { return state_; }
  [[nodiscard]] PipelineState& state() { return state_; }

 private:
  PipelineState state_;
};

/// How far a setting lies outside in ways that no single factor shows. Threads that share a QP take
/// turns at its lock, which the law does not have, whatever was measured: doublings of threads over
/// QPs. Requests in flight: widths of their seen range.
class BeyondFactors {
 public:
  explicit BeyondFactors(const Domain& domain);
  [[nodiscard]] double distance(const Setting& setting) const;  ///< the larger; 0 inside
  [[nodiscard]] std::vector<std::string> reasons(const Setting& setting) const;  ///< for people

 private:
  [[nodiscard]] static double shared(const Setting& setting);
  [[nodiscard]] double deep(const Setting& setting) const;

  std::optional<Range> in_flight_;
};

/// Prediction of one output where a setting lies `distance` widths outside the domain; `law` is the
/// law at the state's values. The 95 % interval of a bandwidth ends where that of the line does.
[[nodiscard]] PredictedMeasure predict_measure(const PipelineState& state, pipeline::LawAt& law,
                                               pipeline::Output output, const Setting& setting,
                                               double distance);

}  // namespace greynic::model
