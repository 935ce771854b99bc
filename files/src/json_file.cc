#include "greynic/files/json_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

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
/// to far more than they are. json::parse() with a callback would do the same, but looks at all
/// elements of a list again behind each object in it.
class Builder final : public nlohmann::json_sax<json> {
 public:
  Builder(json& into, std::size_t text_bytes)
      : into_(into), left_(kFreeBytes + kBytesForEach * static_cast<double>(text_bytes)) {}

  bool null() override { return put(nullptr) != nullptr; }
  bool boolean(bool value) override { return put(value) != nullptr; }
  bool number_integer(number_integer_t value) override { return put(value) != nullptr; }
  bool number_unsigned(number_unsigned_t value) override { return put(value) != nullptr; }
  bool number_float(number_float_t value, const string_t& /*as written*/) override {
    return put(value) != nullptr;
  }
  bool string(string_t& value) override {
    take(kStringBytes + letters(value));
    return put(std::move(value)) != nullptr;
  }
  bool binary(binary_t& /*value*/) override { return false; }  // no text has any
  bool start_object(std::size_t /*size*/) override { return open(json::object(), kObjectBytes); }
  bool start_array(std::size_t /*size*/) override { return open(json::array(), kListBytes); }
  bool end_object() override { return end_array(); }
  bool end_array() override {
    open_.pop_back();
    return true;
  }
  bool key(string_t& name) override {
    take(kKeyBytes + letters(name));
    const auto [entry, is_first] = open_.back()->emplace(name, nullptr);
    if (!is_first) {
      throw Refused{ErrorCode::kBadInput,
                    fmt::format("key \"{}\" stands twice in one object; keep one of them", name)};
    }
    member_ = &*entry;
    return true;
  }
  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const json::exception& error) override {
    wrong_at_ = position > 0 ? position - 1 : 0;
    wrong_ = error.what();
    return false;
  }

  [[nodiscard]] std::size_t wrong_at() const { return wrong_at_; }
  [[nodiscard]] const std::string& wrong() const { return wrong_; }

 private:
  // What a document may take in memory: about four times its text, and so much for small ones.
  static constexpr double kFreeBytes = 192e6;
  static constexpr double kBytesForEach = 4.0;
  static constexpr double kElementBytes = 48.0;  // a list that grows is there twice for a moment
  static constexpr double kKeyBytes = 96.0;      // a node of the object's map, with key and value
  static constexpr double kObjectBytes = 64.0;
  static constexpr double kListBytes = 48.0;
  static constexpr double kStringBytes = 48.0;
  static constexpr std::size_t kInside = 15;  // letters that a std::string holds within itself

  static double letters(const std::string& text) {
    return text.size() > kInside ? static_cast<double>(text.size()) + 17.0 : 0.0;
  }

  void take(double bytes) {
    left_ -= bytes;
    if (left_ < 0) {
      throw Refused{ErrorCode::kTooBig,
                    "holds more values than its size lets expect, and would not fit into memory; "
                    "split it"};
    }
  }

  template <typename Value>
  json* put(Value&& value) {
    if (open_.empty()) {
      into_ = std::forward<Value>(value);
      return &into_;
    }
    if (open_.back()->is_array()) {
      take(kElementBytes);
      return &open_.back()->emplace_back(std::forward<Value>(value));
    }
    *member_ = std::forward<Value>(value);
    return member_;
  }
  bool open(json value, double bytes) {
    take(bytes);
    open_.push_back(put(std::move(value)));
    return true;
  }
  json& into_;
  std::vector<json*> open_;  ///< lists and objects that have not ended, from the outermost
  json* member_ = nullptr;   ///< of the innermost object: what its last key names
  double left_;
  std::size_t wrong_at_ = 0;
  std::string wrong_;
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
