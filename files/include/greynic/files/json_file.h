#pragma once

/// The one door for JSON and other text that greynic reads, and for JSON that it makes: read, check
/// against the schema of the format. Messages name the file, the path inside it, what is wrong and
/// what to do. Schemas live in configs/schema/NAME.schema.json and are compiled into the program,
/// so it needs no files of its own.

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "greynic/core/result.h"

namespace greynic::files {

/// The whole file; `.xz` and `.gz` are unpacked. kBadInput names the file when it cannot be read,
/// and the place of what is no UTF-8; kTooBig what would not fit into memory.
[[nodiscard]] Result<std::string> read_text(const std::filesystem::path& path);

/// Parses text; kBadInput with file, line and column. Duplicate keys, NaN and nesting of more than
/// 64 are refused; kTooBig a text whose values would take far more memory than it is long.
[[nodiscard]] Result<nlohmann::json> parse_json(std::string_view text, const std::string& source);

/// A document as text; what is no UTF-8 in it becomes U+FFFD. With an indent one value a line.
[[nodiscard]] std::string json_text(const nlohmann::json& document, int indent = -1);

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
