#pragma once

/// The report of a run as an HTML file, with the model that goes with it.

#include <memory>
#include <string>

#include "greynic/model/model.h"
#include "greynic/results/store.h"

namespace greynic::loop {

/// The model to show with a run: the one named (a file or published:NAME), else the one kept with
/// the run, else null.
[[nodiscard]] Result<std::unique_ptr<model::Model>> model_of(const results::RunStore& store,
                                                             const std::string& run_path,
                                                             const std::string& model);

/// Writes the HTML file `out`. `model` may be null.
[[nodiscard]] Result<void> write_report(const results::RunStore& store, const std::string& run_path,
                                        const model::Model* model, const std::string& title,
                                        const std::string& out);

}  // namespace greynic::loop
