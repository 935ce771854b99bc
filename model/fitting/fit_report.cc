#include "fitting/fit_report.h"

#include <fmt/core.h>

#include <cmath>
#include <set>

#include "cost/law.h"
#include "data/points.h"

namespace greynic::model {

std::vector<std::string> headline_measures(std::span<const Observation> observations) {
  std::set<std::string> all;
  for (const Observation& observation : observations) {
    if (observation.outcome != Outcome::kMeasured) continue;
    for (const auto& [name, measure] : observation.measures) {
      if (std::isfinite(measure.value) && measure.value > 0.0) all.insert(name);
    }
  }
  std::vector<std::string> known;
  for (const std::string_view name : kOutputNames) {
    if (all.contains(std::string(name))) known.emplace_back(name);
  }
  if (!known.empty()) return known;
  if (auto costs = cost_measures(observations); !costs.empty()) return costs;
  return {all.begin(), all.end()};
}

std::map<std::string, double> r2_of(const Model& model, std::span<const Observation> observations,
                                    const std::vector<bool>& skip,
                                    std::span<const std::string> measures) {
  std::map<std::string, double> result;
  for (const std::string& name : measures) {
    double sum = 0.0;
    double squares = 0.0;
    double misses = 0.0;
    double count = 0.0;
    for (std::size_t i = 0; i < observations.size(); ++i) {
      const auto value = observations[i].value(name);
      if (skip[i] || !value) continue;
      const auto prediction = model.predict(configuration_of(observations[i]));
      if (!prediction) continue;
      const auto found = prediction->measures.find(name);
      if (found == prediction->measures.end()) continue;
      sum += *value;
      squares += *value * *value;
      misses += std::pow(found->second.value - *value, 2.0);
      count += 1.0;
    }
    const double spread = squares - sum * sum / std::max(1.0, count);
    const double r2 = 1.0 - misses / spread;
    if (count > 1.0 && spread > 0.0 && std::isfinite(r2)) result[name] = r2;
  }
  return result;
}

CrossValidation add_left_out_errors(std::span<const Observation> observations,
                                    const std::vector<bool>& skip,
                                    std::span<const std::string> measures, std::uint64_t seed,
                                    const FitFunction& fit, FitReport& report) {
  CrossValidation result = cross_validate(observations, skip, measures, seed, fit);
  for (std::size_t m = 0; m < measures.size(); ++m) {
    const double error = mean_relative_error(result, static_cast<int>(m));
    if (error >= 0.0) report.cross_validated_error[measures[m]] = error;
  }
  if (result.failed_folds > 0) {
    report.findings.push_back(fmt::format("{} of {} left-out fits failed: {}", result.failed_folds,
                                          result.folds, result.why_failed));
  }
  return result;
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

}  // namespace greynic::model
