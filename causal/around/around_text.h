#pragma once

/// What was found around a wall, as JSON and for people.

#include <nlohmann/json.hpp>
#include <string>

#include "greynic/causal/critical_path.h"
#include "greynic/causal/sensitivity.h"

namespace greynic::causal {

[[nodiscard]] nlohmann::json json_of(const CriticalPath& path);
[[nodiscard]] nlohmann::json json_of(const Sensitivity& sensitivity);
[[nodiscard]] std::string text_of(const CriticalPath& path);
[[nodiscard]] std::string text_of(const Sensitivity& sensitivity);

}  // namespace greynic::causal
