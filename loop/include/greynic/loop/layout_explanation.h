#pragma once

/// Why a layout is cheaper, for people and for programs: what `greynic optimize --explain` adds.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "greynic/optimizer/explanation.h"
#include "greynic/optimizer/growth.h"
#include "greynic/optimizer/mask_curve.h"

namespace greynic::loop {

/// Three tables: flows, tables and masks, each with before, after and why; the first ten of each,
/// and how many more there are.
[[nodiscard]] std::string to_text(const optimizer::Explanation& explanation);

/// All of it: `masks`, `tables` and `flows` of docs/formats/optimization.md.
[[nodiscard]] nlohmann::json to_json(const optimizer::Explanation& explanation);

/// The curve of --growth auto: [{growth, rules, matchers_tried_mean, matchers_tried_p99}, ...].
[[nodiscard]] nlohmann::json to_json(const optimizer::GrowthCurve& curve);

/// Masks of single chains against entries: `mask_curve` of docs/formats/optimization.md.
[[nodiscard]] nlohmann::json to_json(const optimizer::MaskCurve& curve);
[[nodiscard]] std::string to_text(const optimizer::MaskCurve& curve);

}  // namespace greynic::loop
