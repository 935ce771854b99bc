#pragma once

/// The one door for JSON files: read, check against the schema of the format, write whole or not at
/// all. Messages name the file, the path inside it, what is wrong and what to do. Schemas live in
/// configs/schema/NAME.schema.json and are compiled into the program, so it needs no files of its
/// own.

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "greynic/core/result.h"

namespace greynic::files {

/// The whole file; `.xz` and `.gz` are unpacked. kBadInput names the file when it cannot be read.
[[nodiscard]] Result<std::string> read_text(const std::filesystem::path& path);

/// Writes to a temporary name beside `path`, syncs, and renames: readers see the old file or the
/// new.
[[nodiscard]] Result<void> write_text(const std::filesystem::path& path, std::string_view text);

/// Parses text; kBadInput with file, line and column. Duplicate keys and NaN are refused.
[[nodiscard]] Result<nlohmann::json> parse_json(std::string_view text, const std::string& source);

/// Checks a document against configs/schema/`schema`.schema.json; kBadInput with the JSON path.
[[nodiscard]] Result<void> check_schema(const nlohmann::json& document, std::string_view schema,
                                        const std::string& source);

/// read_text, parse_json, check_schema.
[[nodiscard]] Result<nlohmann::json> read_json(const std::filesystem::path& path,
                                               std::string_view schema);

/// kBadInput for a value that the schema cannot judge: "file: at /factors/x: reason".
[[nodiscard]] tl::unexpected<Error> bad_value(const std::string& source, std::string_view json_path,
                                              std::string_view reason);

}  // namespace greynic::files
