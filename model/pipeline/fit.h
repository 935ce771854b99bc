#pragma once

/// Fits the pipeline law: robust descent from several starts to find what no law explains, then
/// least squares on the rest with the noise that the rest shows, priors included throughout.

#include <array>
#include <vector>

#include "data/points.h"
#include "pipeline/law.h"
#include "pipeline/parameters.h"

namespace greynic::model::pipeline {

using Priors = std::array<Prior, kParameterCount>;

/// What describes the scatter of observations about the law; logarithms, so nearly shares.
struct Noise {
  double scatter = 0.0;   ///< of single points; while fitting, beyond their own standard errors
  double run = 0.0;       ///< common to all points of one run (mask setting, operation, output)
  double left_out = 0.0;  ///< error beyond scatter on settings left out, over all of them
  double growth = 0.0;    ///< error of the law outside its domain, for each e-fold of 1 + distance
};

/// Of a fitted value, and how it was found.
struct Interval {
  enum class Method { kCovariance, kProfile, kBootstrap };
  double low = 0.0;
  double high = 0.0;
  Method method = Method::kCovariance;
};

struct PipelineFit {
  Values values{};
  std::vector<double> covariance;  ///< of all fitted values, kParameterCount squared, row by row
  std::array<Interval, kParameterCount> interval{};  ///< 95 % of each fitted value
  std::array<Noise, kOutputCount> noise{};
  std::vector<int> active;      ///< parameters that the points speak about
  std::vector<bool> anomalous;  ///< one for each point: not explained, left out of the fit
  double condition_number = 0.0;
  double sum_of_squares = 0.0;  ///< of weighted residuals and priors
};

struct PipelineOptions {
  std::uint64_t seed = 1;
  int starts = 8;
  int descents = 2;
  const Priors* priors = nullptr;      ///< null: those of the parameter table
  const Values* start_from = nullptr;  ///< a known good start; then no others are tried
};

/// kTooFewPoints, kNotConverged, kRankDeficient, with what to measure.
[[nodiscard]] Result<PipelineFit> fit_pipeline(const std::vector<Point>& points,
                                               const PipelineOptions& options);

/// Precision (inverse covariance) of the priors alone, kParameterCount squared.
[[nodiscard]] std::vector<double> prior_precision(const Priors& priors);
[[nodiscard]] const Priors& table_priors();

}  // namespace greynic::model::pipeline
