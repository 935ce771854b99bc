#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "fitting/fit_report.h"
#include "fitting/robust.h"
#include "pipeline/findings.h"
#include "pipeline/fit_together.h"
#include "pipeline/model.h"
#include "pipeline/uncertainty.h"

namespace greynic::model {
namespace {

// Outside of its domain a law is trusted less even where it never failed: shares for each e-fold of
// 1 + distance. Latency adds up and rests on few assumptions; bandwidth may meet a bottleneck that
// was never seen.
constexpr std::array<double, kOutputCount> kLeastGrowth = {0.10, 0.05};

// In the order of kOutputNames, so that a measure's index is its output.
const std::vector<std::string> kMeasures(kOutputNames.begin(), kOutputNames.end());

struct PipelineResult {
  PipelineState state;
  pipeline::PipelineFit fit;
  Points points;
};

/// Median standard error of an output's points, a share: what a new measurement brings with it.
double usual_error(const std::vector<Point>& points, int output) {
  std::vector<double> errors;
  for (const Point& point : points) {
    if (point.output == output) errors.push_back(point.relative_error);
  }
  return median(std::move(errors));
}

Result<PipelineResult> fit_pipeline_model(std::span<const Observation> observations,
                                          const FitOptions& options,
                                          const pipeline::Priors& priors) {
  auto points = read_points(observations);
  if (!points) return pass_on(points);
  auto fit = pipeline::fit_pipeline(points->points, {.seed = options.seed,
                                                     .starts = options.starts,
                                                     .descents = options.starts > 1 ? 4 : 2,
                                                     .priors = &priors});
  if (!fit) return pass_on(fit);
  PipelineState state;
  state.values = fit->values;
  switch (options.intervals) {
    case Intervals::kCovariance:
      break;
    case Intervals::kProfile:
      (void)pipeline::profile_where_needed(points->points, priors, *fit);
      break;
    case Intervals::kBootstrap:
      if (auto done = pipeline::bootstrap(points->points, priors, options.bootstrap_samples,
                                          options.seed, *fit);
          !done) {
        return pass_on(done);
      }
      break;
  }
  state.covariance = fit->covariance;
  state.interval = fit->interval;
  state.noise = fit->noise;
  for (int o = 0; o < kOutputCount; ++o) {
    pipeline::Noise& noise = state.noise[o];
    noise.growth = kLeastGrowth[o];
    noise.scatter = std::hypot(noise.scatter, usual_error(points->points, o));
  }
  for (const Point& point : points->points) state.fitted[point.output] = true;
  pipeline::LawAt law(fit->values);
  for (std::size_t i = 0; i < points->points.size(); ++i) {
    const Point& point = points->points[i];
    if (!fit->anomalous[i]) continue;
    const double error = law.at(point.output, point.setting) - point.log_value;
    state.unexplained[point.output].add(point.setting, error * error);
  }
  state.assumed = points->assumed;
  state.domain = points->domain;
  state.tails = points->tails;
  state.observations = points->observations_used;
  return PipelineResult{std::move(state), std::move(*fit), std::move(*points)};
}

/// What runs of one setting have in common shows only between settings; where too few are there to
/// tell, the published logs do (SEND and WRITE differ by so much).
void widen_for_few_settings(int mask_settings, PipelineState& state) {
  constexpr double kPublishedSpread = 0.05;
  constexpr int kTellingSettings = 5;
  if (mask_settings <= 1 || mask_settings >= kTellingSettings) return;
  for (pipeline::Noise& noise : state.noise) noise.run = std::max(noise.run, kPublishedSpread);
}

/// The law's own error inside the domain, as settings left out show it.
void learn_error_of_law(const CrossValidation& result, const Points& points, PipelineState& state) {
  std::map<std::pair<int, std::size_t>, const Setting*> setting_of;
  for (const Point& point : points.points) {
    setting_of[{point.output, point.observation}] = &point.setting;
  }
  std::array<double, kOutputCount> sum{};
  std::array<double, kOutputCount> count{};
  for (const HeldOut& held : result.held_out) {
    const auto found = setting_of.find({held.output, held.observation});
    if (held.distance > 0.0 || found == setting_of.end()) continue;
    const auto o = static_cast<std::size_t>(held.output);
    const double scatter = state.noise[o].scatter;
    const double excess = held.log_error * held.log_error - scatter * scatter;
    state.left_out[o].add(*found->second, excess);
    sum[o] += excess;
    count[o] += 1.0;
  }
  for (std::size_t o = 0; o < kOutputCount; ++o) {
    if (count[o] > 0.0) state.noise[o].left_out = std::sqrt(std::max(0.0, sum[o] / count[o]));
  }
}

/// Where the law was asked outside its domain and the truth is known, its error tells the growth.
void learn_growth(const CrossValidation& result, PipelineState& state) {
  for (int o = 0; o < kOutputCount; ++o) {
    double sum = 0.0;
    double count = 0.0;
    for (const HeldOut& held : result.held_out) {
      if (held.output != o || held.distance <= 0.0) continue;
      const double beyond = std::log1p(held.distance);
      const double own = state.noise[o].scatter;
      sum += std::max(0.0, held.log_error * held.log_error - own * own) / (beyond * beyond);
      count += 1.0;
    }
    if (count > 0.0) state.noise[o].growth = std::max(kLeastGrowth[o], std::sqrt(sum / count));
  }
}

}  // namespace

Result<FitReport> report_pipeline(std::span<const Observation> observations,
                                  const FitOptions& options) {
  return report_pipeline_with(observations, options, pipeline::table_priors());
}

Result<FitReport> report_pipeline_with(std::span<const Observation> observations,
                                       const FitOptions& options, const pipeline::Priors& priors) {
  auto fitted = fit_pipeline_model(observations, options, priors);
  if (!fitted) return pass_on(fitted);
  FitReport report;
  report.observations_used = fitted->state.observations;
  std::vector<bool> skip(observations.size(), false);
  for (std::size_t i = 0; i < fitted->points.points.size(); ++i) {
    if (fitted->fit.anomalous[i]) skip[fitted->points.points[i].observation] = true;
  }
  report.findings = fitted->points.notes;
  for (auto& finding : describe_anomalies(fitted->points, fitted->fit)) {
    report.findings.push_back(std::move(finding));
  }
  for (auto& finding : describe_identifiability(fitted->fit)) {
    report.findings.push_back(std::move(finding));
  }
  if (options.cross_validate) {
    FitOptions inner = options;
    inner.starts = 2;
    inner.cross_validate = false;
    inner.intervals = Intervals::kCovariance;
    const auto result = add_left_out_errors(
        observations, skip, kMeasures, options.seed,
        [&](std::span<const Observation> rest) -> Result<std::unique_ptr<Model>> {
          auto again = fit_pipeline_model(rest, inner, priors);
          if (!again) return pass_on(again);
          return std::make_unique<PipelineModel>(std::move(again->state));
        },
        report);
    widen_for_few_settings(fitted->points.mask_settings, fitted->state);
    learn_error_of_law(result, fitted->points, fitted->state);
    learn_growth(result, fitted->state);
  }
  fitted->state.findings = report.findings;
  report.model = std::make_unique<PipelineModel>(std::move(fitted->state));
  report.r2 = r2_of(*report.model, observations, skip, kMeasures);
  report.text = summary_text(report) + "\n" + parameter_table(fitted->fit);
  return report;
}

}  // namespace greynic::model
