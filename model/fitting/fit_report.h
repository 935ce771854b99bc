#pragma once

/// What the reports of all laws have in common: goodness, errors on settings left out, and text.

#include <map>
#include <span>
#include <string>
#include <vector>

#include "fitting/cross_validation.h"
#include "greynic/model/model.h"

namespace greynic::model {

/// What fits are judged by: bandwidth and median latency; where neither was measured the measures
/// whose name says cost; else whatever was measured.
[[nodiscard]] std::vector<std::string> headline_measures(std::span<const Observation> observations);

/// Share of the variance that the model explains, by measure.
[[nodiscard]] std::map<std::string, double> r2_of(const Model& model,
                                                  std::span<const Observation> observations,
                                                  const std::vector<bool>& skip,
                                                  std::span<const std::string> measures);

/// Leaves settings out and puts the errors, and folds that failed, into the report.
CrossValidation add_left_out_errors(std::span<const Observation> observations,
                                    const std::vector<bool>& skip,
                                    std::span<const std::string> measures, std::uint64_t seed,
                                    const FitFunction& fit, FitReport& report);

[[nodiscard]] std::string summary_text(const FitReport& report);

/// One law each, as fit() hands them out.
[[nodiscard]] Result<FitReport> report_pipeline(std::span<const Observation> observations,
                                                const FitOptions& options);
[[nodiscard]] Result<FitReport> report_scalacn(std::span<const Observation> observations,
                                               const FitOptions& options);
[[nodiscard]] Result<FitReport> report_surrogate(std::span<const Observation> observations,
                                                 const FitOptions& options);
[[nodiscard]] Result<FitReport> report_cost(std::span<const Observation> observations,
                                            const FitOptions& options);

}  // namespace greynic::model
