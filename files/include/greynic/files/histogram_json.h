#pragma once

/// A latency histogram as JSON: [[nanoseconds, count], ...].

#include <nlohmann/json.hpp>
#include <string>

#include "greynic/core/observation.h"
#include "greynic/core/result.h"

namespace greynic::files {

/// kBadInput, with the path, for anything but whole numbers of 64 bits.
[[nodiscard]] Result<LatencyHistogram> histogram_from_json(const nlohmann::json& list,
                                                           const std::string& source,
                                                           const std::string& json_path);

}  // namespace greynic::files
