#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cross_validation.h"
#include "findings.h"
#include "greynic/model/model.h"
#include "pipeline_model.h"
#include "scalacn_model.h"
#include "surrogate.h"

namespace greynic::model {
namespace {

// Outside of its domain a law is trusted less even where it never failed: shares for each e-fold of
// 1 + distance. Latency adds up and rests on few assumptions; bandwidth may meet a bottleneck that
// was never seen.
constexpr std::array<double, kOutputCount> kLeastGrowth = {0.10, 0.05};

const Configuration& configuration_of(const Observation& observation) {
  return observation.granted.empty() ? observation.asked : observation.granted;
}

struct PipelineResult {
  PipelineState state;
  pipeline::PipelineFit fit;
  Points points;
};

Result<PipelineResult> fit_pipeline_model(std::span<const Observation> observations,
                                          const FitOptions& options) {
  auto points = read_points(observations);
  if (!points) return pass_on(points);
  auto fit =
      pipeline::fit_pipeline(points->points, {.seed = options.seed, .starts = options.starts});
  if (!fit) return pass_on(fit);
  PipelineState state;
  state.values = fit->values;
  state.covariance = fit->covariance;
  state.noise = fit->noise;
  for (int o = 0; o < kOutputCount; ++o) state.noise[o].growth = kLeastGrowth[o];
  for (const Point& point : points->points) state.fitted[point.output] = true;
  state.assumed = points->assumed;
  state.domain = points->domain;
  state.tails = points->tails;
  state.observations = points->observations_used;
  return PipelineResult{std::move(state), std::move(*fit), std::move(*points)};
}

/// What runs of one setting have in common shows only between settings, so the settings left out
/// tell it; where too few are there to tell, the published logs do (SEND and WRITE differ by so
/// much).
void learn_run_spread(const CrossValidation& result, int mask_settings, PipelineState& state) {
  constexpr double kPublishedSpread = 0.05;
  constexpr int kTellingSettings = 5;
  for (int o = 0; o < kOutputCount; ++o) {
    double& run = state.noise[o].run;
    if (mask_settings > 1 && mask_settings < kTellingSettings)
      run = std::max(run, kPublishedSpread);
    double sum = 0.0;
    double count = 0.0;
    for (const HeldOut& held : result.held_out) {
      if (held.output != o || held.distance > 0.0) continue;
      sum += held.log_error * held.log_error;
      count += 1.0;
    }
    const double scatter = state.noise[o].scatter;
    if (count > 0.0) run = std::max(run, std::sqrt(std::max(0.0, sum / count - scatter * scatter)));
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

std::map<std::string, double> r2_of(const Model& model, std::span<const Observation> observations,
                                    const std::vector<bool>& skip) {
  std::map<std::string, double> result;
  for (const std::string_view name : kOutputNames) {
    double sum = 0.0;
    double squares = 0.0;
    double misses = 0.0;
    double count = 0.0;
    for (std::size_t i = 0; i < observations.size(); ++i) {
      const auto value = observations[i].value(name);
      if (skip[i] || !value) continue;
      const auto prediction = model.predict(configuration_of(observations[i]));
      if (!prediction) continue;
      const auto found = prediction->measures.find(std::string(name));
      if (found == prediction->measures.end()) continue;
      sum += *value;
      squares += *value * *value;
      misses += std::pow(found->second.value - *value, 2.0);
      count += 1.0;
    }
    const double spread = squares - sum * sum / std::max(1.0, count);
    if (count > 1.0 && spread > 0.0) result[std::string(name)] = 1.0 - misses / spread;
  }
  return result;
}

void add_cross_validation(const CrossValidation& result, FitReport& report) {
  for (int o = 0; o < kOutputCount; ++o) {
    const double error = mean_relative_error(result, o);
    if (error >= 0.0) report.cross_validated_error[std::string(kOutputNames[o])] = error;
  }
  if (result.failed_folds > 0) {
    report.findings.push_back(fmt::format("{} of {} left-out fits failed: {}", result.failed_folds,
                                          result.folds, result.why_failed));
  }
}

std::string summary_text(const FitReport& report) {
  std::string text =
      fmt::format("law {}, {} observations\n", report.model->law(), report.observations_used);
  for (const auto& [name, r2] : report.r2) {
    text += fmt::format("  {:<18} R2 {:.4f}", name, r2);
    const auto error = report.cross_validated_error.find(name);
    if (error != report.cross_validated_error.end()) {
      text += fmt::format(", mean error {:.2f} % on settings left out", 100.0 * error->second);
    }
    text += "\n";
  }
  return text;
}

Result<FitReport> report_pipeline(std::span<const Observation> observations,
                                  const FitOptions& options) {
  auto fitted = fit_pipeline_model(observations, options);
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
    inner.starts = 1;
    inner.cross_validate = false;
    const auto result =
        cross_validate(observations, skip, options.seed,
                       [&](std::span<const Observation> rest) -> Result<std::unique_ptr<Model>> {
                         auto again = fit_pipeline_model(rest, inner);
                         if (!again) return pass_on(again);
                         return std::make_unique<PipelineModel>(std::move(again->state));
                       });
    learn_run_spread(result, fitted->points.mask_settings, fitted->state);
    learn_growth(result, fitted->state);
    add_cross_validation(result, report);
  }
  fitted->state.findings = report.findings;
  report.model = std::make_unique<PipelineModel>(std::move(fitted->state));
  report.r2 = r2_of(*report.model, observations, skip);
  report.text = summary_text(report) + "\n" + parameter_table(fitted->fit);
  return report;
}

Result<FitReport> report_scalacn(std::span<const Observation> observations,
                                 const FitOptions& options) {
  const auto points = read_points(observations);
  if (!points) return pass_on(points);
  auto state = fit_scalacn(*points, options.seed);
  if (!state) return pass_on(state);
  FitReport report;
  report.observations_used = points->observations_used;
  report.findings = points->notes;
  report.findings.insert(report.findings.end(), state->findings.begin(), state->findings.end());
  state->findings = report.findings;
  const ScalacnCoefficients k = state->coefficients;
  report.model = std::make_unique<ScalacnModel>(std::move(*state));
  const std::vector<bool> skip(observations.size(), false);
  report.r2 = r2_of(*report.model, observations, skip);
  if (options.cross_validate) {
    const auto result =
        cross_validate(observations, skip, options.seed,
                       [&](std::span<const Observation> rest) -> Result<std::unique_ptr<Model>> {
                         const auto some = read_points(rest);
                         if (!some) return pass_on(some);
                         auto again = fit_scalacn(*some, options.seed);
                         if (!again) return pass_on(again);
                         return std::make_unique<ScalacnModel>(std::move(*again));
                       });
    add_cross_validation(result, report);
  }
  report.text = summary_text(report) +
                fmt::format(
                    "\n  u {:.5g}  v {:.5g}  m {:.5g}  n {:.5g}  w {:.5g}  (2^30 bit/s)\n"
                    "  a {:.5g}  b {:.5g}  c {:.5g}  (us)\n",
                    k.u, k.v, k.m, k.n, k.w, k.a, k.b, k.c);
  return report;
}

Result<FitReport> report_surrogate(std::span<const Observation> observations,
                                   const FitOptions& options) {
  auto state = fit_surrogate(observations, options.seed);
  if (!state) return pass_on(state);
  FitReport report;
  report.observations_used = state->observations;
  report.findings = state->findings;
  report.model = std::make_unique<SurrogateModel>(std::move(*state));
  const std::vector<bool> skip(observations.size(), false);
  report.r2 = r2_of(*report.model, observations, skip);
  if (options.cross_validate) {
    const auto result =
        cross_validate(observations, skip, options.seed,
                       [&](std::span<const Observation> rest) -> Result<std::unique_ptr<Model>> {
                         auto again = fit_surrogate(rest, options.seed);
                         if (!again) return pass_on(again);
                         return std::make_unique<SurrogateModel>(std::move(*again));
                       });
    add_cross_validation(result, report);
  }
  report.text = summary_text(report);
  return report;
}

/// Mean relative error over the outputs on settings left out; the measure that `auto` goes by.
double left_out_error(const FitReport& report) {
  double sum = 0.0;
  for (const auto& [name, error] : report.cross_validated_error) sum += error;
  return report.cross_validated_error.empty()
             ? HUGE_VAL
             : sum / static_cast<double>(report.cross_validated_error.size());
}

Result<FitReport> report_best(std::span<const Observation> observations, FitOptions options) {
  options.cross_validate = true;
  struct Candidate {
    std::string law;
    Result<FitReport> report;
  };
  std::vector<Candidate> candidates;
  candidates.push_back({"pipeline", report_pipeline(observations, options)});
  candidates.push_back({"scalacn", report_scalacn(observations, options)});
  candidates.push_back({"surrogate", report_surrogate(observations, options)});
  Candidate* best = nullptr;
  std::string scores;
  for (Candidate& candidate : candidates) {
    if (!candidate.report) {
      scores += fmt::format("; {} cannot be fitted ({})", candidate.law,
                            candidate.report.error().message);
      continue;
    }
    const double error = left_out_error(*candidate.report);
    scores += std::isfinite(error) ? fmt::format("; {} {:.2f} %", candidate.law, 100.0 * error)
                                   : fmt::format("; {} could not be tested", candidate.law);
    if (best == nullptr || error < left_out_error(*best->report)) best = &candidate;
  }
  if (best == nullptr) return pass_on(candidates.front().report);
  best->report->findings.insert(
      best->report->findings.begin(),
      fmt::format("auto chose {} by mean error on settings left out{}", best->law, scores));
  return std::move(best->report);
}

}  // namespace

std::optional<Form> form_named(std::string_view name) {
  if (name == "pipeline") return Form::kPipeline;
  if (name == "scalacn") return Form::kScalacn;
  if (name == "surrogate") return Form::kSurrogate;
  if (name == "auto") return Form::kAuto;
  return std::nullopt;
}

Result<FitReport> fit(std::span<const Observation> observations, const FitOptions& options) {
  switch (options.form) {
    case Form::kScalacn:
      return report_scalacn(observations, options);
    case Form::kPipeline:
      return report_pipeline(observations, options);
    case Form::kSurrogate:
      return report_surrogate(observations, options);
    case Form::kAuto:
      return report_best(observations, options);
  }
  return fail(ErrorCode::kInternal, "unknown form");
}

}  // namespace greynic::model
