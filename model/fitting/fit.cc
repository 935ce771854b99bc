#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "cost/law.h"
#include "fitting/fit_report.h"
#include "scalacn/model.h"
#include "surrogate/model.h"

namespace greynic::model {
namespace {

/// Goodness of the report's model and, where asked, its errors on settings left out.
void add_errors(std::span<const Observation> observations, const FitOptions& options,
                const FitFunction& fit, FitReport& report) {
  const std::vector<bool> skip(observations.size(), false);
  const auto measures = headline_measures(observations);
  report.r2 = r2_of(*report.model, observations, skip, measures);
  if (options.cross_validate) {
    add_left_out_errors(observations, skip, measures, options.seed, fit, report);
  }
}

}  // namespace

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
  add_errors(
      observations, options,
      [&](std::span<const Observation> rest) -> Result<std::unique_ptr<Model>> {
        const auto some = read_points(rest);
        if (!some) return pass_on(some);
        auto again = fit_scalacn(*some, options.seed);
        if (!again) return pass_on(again);
        return std::make_unique<ScalacnModel>(std::move(*again));
      },
      report);
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
  const std::string table = surrogate_table(*state);
  FitReport report;
  report.observations_used = state->observations;
  report.findings = state->findings;
  report.model = std::make_unique<SurrogateModel>(std::move(*state));
  add_errors(
      observations, options,
      [&](std::span<const Observation> rest) -> Result<std::unique_ptr<Model>> {
        auto again = fit_surrogate(rest, options.seed);
        if (!again) return pass_on(again);
        return std::make_unique<SurrogateModel>(std::move(*again));
      },
      report);
  report.text = summary_text(report) + "\n" + table;
  return report;
}

Result<FitReport> report_cost(std::span<const Observation> observations,
                              const FitOptions& options) {
  auto state = fit_cost(observations);
  if (!state) return pass_on(state);
  FitReport report;
  report.observations_used = state->observations;
  const auto measures = cost_measures(observations);
  const std::vector<bool> skip(observations.size(), false);
  if (options.cross_validate) {
    add_left_out_errors(
        observations, skip, measures, options.seed,
        [&](std::span<const Observation> rest) -> Result<std::unique_ptr<Model>> {
          auto again = fit_cost(rest);
          if (!again) return pass_on(again);
          return std::make_unique<CostModel>(std::move(*again));
        },
        report);
  }
  state->findings = report.findings;
  const std::string table = cost_table(*state);
  report.model = std::make_unique<CostModel>(std::move(*state));
  report.r2 = r2_of(*report.model, observations, skip, measures);
  report.text = summary_text(report) + "\n" + table;
  return report;
}

namespace {

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
  if (!cost_measures(observations).empty()) {
    candidates.push_back({"cost", report_cost(observations, options)});
  }
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
  if (name == "cost") return Form::kCost;
  if (name == "auto") return Form::kAuto;
  return std::nullopt;
}

std::optional<Intervals> intervals_named(std::string_view name) {
  if (name == "covariance") return Intervals::kCovariance;
  if (name == "profile") return Intervals::kProfile;
  if (name == "bootstrap") return Intervals::kBootstrap;
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
    case Form::kCost:
      return report_cost(observations, options);
    case Form::kAuto:
      return report_best(observations, options);
  }
  return fail(ErrorCode::kInternal, "unknown form");
}

}  // namespace greynic::model
