#include "greynic/files/json_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "greynic/core/text.h"
#include "json_builder.h"
#include "places.h"

namespace greynic::files {

using nlohmann::json;

namespace {

/// Where a text is nested deeper than recursion should follow; empty when it is nowhere.
std::optional<std::size_t> too_deep(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (in_string) {
      if (c == '\\') ++at;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kMostDepth) return at;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return std::nullopt;
}

}  // namespace

std::string place_of(std::string_view text, std::size_t offset) {
  offset = std::min(offset, text.size());
  const std::string_view before = text.substr(0, offset);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t start = before.rfind('\n');
  const std::size_t column = start == std::string_view::npos ? offset + 1 : offset - start;
  return fmt::format("line {}, column {}", line, column);
}

Result<json> parse_json(std::string_view text, const std::string& source) {
  if (const auto deep = too_deep(text)) {
    return fail(ErrorCode::kBadInput,
                fmt::format("{}: {}: is nested more than {} deep; no format of greynic is", source,
                            place_of(text, *deep), kMostDepth));
  }
  json document;
  Builder builder(document, text.size());
  try {
    if (json::sax_parse(text.begin(), text.end(), &builder, json::input_format_t::json, true,
                        true)) {
      return document;
    }
  } catch (const Refused& refused) {
    return fail(refused.code, fmt::format("{}: {}", source, refused.why));
  }
  std::string what = builder.wrong();
  if (const std::size_t detail = what.find("syntax error"); detail != std::string::npos) {
    what = what.substr(detail);
  }
  return fail(ErrorCode::kBadInput,
              fmt::format("{}: {}: not valid JSON: {}", source, place_of(text, builder.wrong_at()),
                          shortened(printable(what), 300)));
}

std::string json_text(const json& document, int indent) {
  return document.dump(indent, ' ', false, json::error_handler_t::replace);
}

Result<json> read_json(const std::filesystem::path& path, std::string_view schema) {
  auto text = read_text(path);
  if (!text) return pass_on(text);
  auto document = parse_json(*text, path.string());
  if (!document) return document;
  if (auto fits = check_schema(*document, schema, path.string()); !fits) return pass_on(fits);
  return document;
}

tl::unexpected<Error> bad_value(const std::string& source, std::string_view json_path,
                                std::string_view reason) {
  // Both may quote what stands in the file, however long it is and whatever its bytes are.
  return fail(ErrorCode::kBadInput,
              fmt::format("{}: at {}: {}", source, printable(shortened(json_path, 500)),
                          printable(shortened(reason, 2000))));
}

}  // namespace greynic::files
