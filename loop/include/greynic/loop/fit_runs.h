#pragma once

/// Fits a law to stored runs, and compares models on them.

#include <string>
#include <vector>

#include "greynic/loop/talk.h"
#include "greynic/model/comparison.h"
#include "greynic/model/model.h"

namespace greynic::loop {

/// Fits one run, or several together by the pipeline law, where each lends the others what it
/// knows; one report a run, in their order. Each model is kept with its run, where `greynic report`
/// finds it, and written to `out` when that is not empty: a file for one run, a folder for several,
/// which gets one file named after each run.
[[nodiscard]] Result<std::vector<model::FitReport>> fit_runs(const std::vector<std::string>& runs,
                                                             const model::FitOptions& options,
                                                             const std::string& out,
                                                             const Talk& talk);

/// How far two model files are apart, and which of them predicts the runs better, when there are
/// any.
[[nodiscard]] Result<model::ModelComparison> compare_model_files(
    const std::string& a, const std::string& b, const std::vector<std::string>& runs,
    std::uint64_t seed);

}  // namespace greynic::loop
