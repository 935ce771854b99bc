#pragma once

/// What layouts cost, as JSON: what `greynic optimize --json` prints and `greynic tune` keeps.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "greynic/loop/tune.h"
#include "greynic/optimizer/optimize.h"

namespace greynic::loop {

/// tables, matchers, rules, matchers_tried_mean and _most, and predicted where a model was asked.
[[nodiscard]] nlohmann::json to_json(const optimizer::LayoutCost& cost);

/// A new layout's costs beside those of the rules in their order, its proof, and what bounds a
/// single chain: schema `optimization`. `rules` and `traffic` are as the user gave them.
[[nodiscard]] nlohmann::json to_json(const optimizer::OptimizedLayout& layout,
                                     const std::string& rules, const std::string& traffic);

/// What is kept with a run under the kind "optimization", once a layout was fitted: the numbers
/// that the summary prints, and how the packets spread around them, for the report.
/// docs/formats/optimization.md has the fields.
[[nodiscard]] std::string optimization_text(const TuneOptions& options, const TuneOutcome& outcome);

}  // namespace greynic::loop
