#pragma once

/// What a schema validator has against a value, in words that say what would do.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace greynic::files {

/// `complaint` is the validator's, about the value at `path` of `document`.
[[nodiscard]] std::string in_words(const std::string& complaint, const nlohmann::json& schema,
                                   const nlohmann::json& document,
                                   const std::vector<std::string>& path);

}  // namespace greynic::files
