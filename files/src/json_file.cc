#include "greynic/files/json_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

namespace greynic::files {

namespace {

using nlohmann::json;

/// "line 3, column 7" of a byte offset.
std::string place_of(std::string_view text, std::size_t offset) {
  offset = std::min(offset, text.size());
  const std::string_view before = text.substr(0, offset);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t start = before.rfind('\n');
  const std::size_t column = start == std::string_view::npos ? offset + 1 : offset - start;
  return fmt::format("line {}, column {}", line, column);
}

/// Builds the document while refusing a key that stands twice in one object.
struct Builder {
  std::vector<std::set<std::string>> keys;
  std::string duplicate;

  bool operator()(int, json::parse_event_t event, json& parsed) {
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end && !keys.empty()) keys.pop_back();
    if (event == json::parse_event_t::key && !keys.empty()) {
      if (!keys.back().insert(parsed.get<std::string>()).second && duplicate.empty()) {
        duplicate = parsed.get<std::string>();
      }
    }
    return true;
  }
};

}  // namespace

Result<json> parse_json(std::string_view text, const std::string& source) {
  Builder builder;
  try {
    json document = json::parse(text.begin(), text.end(), std::ref(builder), true, true);
    if (!builder.duplicate.empty()) {
      return fail(ErrorCode::kBadInput,
                  fmt::format("{}: key \"{}\" stands twice in one object; keep one of them", source,
                              builder.duplicate));
    }
    return document;
  } catch (const json::parse_error& error) {
    std::string what = error.what();
    if (const std::size_t detail = what.find("syntax error"); detail != std::string::npos) {
      what = what.substr(detail);
    }
    const std::size_t offset = error.byte > 0 ? error.byte - 1 : 0;
    return fail(ErrorCode::kBadInput,
                fmt::format("{}: {}: not valid JSON: {}", source, place_of(text, offset), what));
  } catch (const json::exception& error) {
    return fail(ErrorCode::kBadInput, fmt::format("{}: not valid JSON: {}", source, error.what()));
  }
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
  return fail(ErrorCode::kBadInput, fmt::format("{}: at {}: {}", source, json_path, reason));
}

}  // namespace greynic::files
