#pragma once

/// Writing the report of a run: shared by the commands report and tune.

#include <string>

#include "greynic/model/model.h"
#include "greynic/results/store.h"

namespace greynic::cli {

/// Writes the HTML file and gives its path; an empty path when this build draws none (ECharts was
/// not there when it was configured). `model` may be null.
[[nodiscard]] Result<std::string> write_report(const results::RunStore& store,
                                               const std::string& run_path,
                                               const model::Model* model, const std::string& title,
                                               const std::string& out);

}  // namespace greynic::cli
