#include "greynic/files/json_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <set>

#include "greynic/core/text.h"
#include "places.h"

namespace greynic::files {

using nlohmann::json;

namespace {

/// Thrown while a document is built; the parser takes nothing but exceptions for a reason to stop.
struct Refused {
  ErrorCode code;
  std::string why;
};

constexpr int kMostDepth = 64;

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

/// Builds the document while refusing a key that stands twice in one object, and texts that unfold
/// to far more than they are.
class Builder {
 public:
  explicit Builder(std::size_t text_bytes)
      : left_(kFreeBytes + kBytesForEach * static_cast<double>(text_bytes)) {}

  bool operator()(int, json::parse_event_t event, json& parsed) {
    if (event == json::parse_event_t::object_start) keys_.emplace_back();
    if (event == json::parse_event_t::object_end) keys_.pop_back();
    if (event == json::parse_event_t::key) {
      take(keys_.back().size() > kManyKeys ? kLateKeyBytes : kKeyBytes);
      if (!keys_.back().insert(parsed.get<std::string>()).second) {
        throw Refused{ErrorCode::kBadInput,
                      fmt::format("key \"{}\" stands twice in one object; keep one of them",
                                  parsed.get<std::string>())};
      }
    }
    take(kValueBytes);
    return true;
  }

 private:
  // What a document may take in memory: about four times its text, and so much for small ones.
  static constexpr double kFreeBytes = 192e6;
  static constexpr double kBytesForEach = 4.0;
  static constexpr double kValueBytes = 48.0;  // a list that grows is there twice for a moment
  static constexpr double kKeyBytes = 112.0;
  static constexpr double kLateKeyBytes = 200.0;  // while its object is open
  static constexpr std::size_t kManyKeys = 1000;

  void take(double bytes) {
    left_ -= bytes;
    if (left_ < 0) {
      throw Refused{ErrorCode::kTooBig,
                    "holds more values than its size lets expect, and would not fit into memory; "
                    "split it"};
    }
  }

  std::vector<std::set<std::string>> keys_;
  double left_;
};

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
  try {
    return json::parse(text.begin(), text.end(), Builder(text.size()), true, true);
  } catch (const Refused& refused) {
    return fail(refused.code, fmt::format("{}: {}", source, refused.why));
  } catch (const json::parse_error& error) {
    std::string what = error.what();
    if (const std::size_t detail = what.find("syntax error"); detail != std::string::npos) {
      what = what.substr(detail);
    }
    const std::size_t offset = error.byte > 0 ? error.byte - 1 : 0;
    return fail(ErrorCode::kBadInput,
                fmt::format("{}: {}: not valid JSON: {}", source, place_of(text, offset),
                            shortened(printable(what), 300)));
  } catch (const json::exception& error) {
    return fail(ErrorCode::kBadInput, fmt::format("{}: not valid JSON: {}", source,
                                                  shortened(printable(error.what()), 300)));
  }
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
  return fail(ErrorCode::kBadInput, fmt::format("{}: at {}: {}", source, json_path, reason));
}

}  // namespace greynic::files
