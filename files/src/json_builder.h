#pragma once

/// What makes a document of the parser's events, within bounds.

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "greynic/core/result.h"

namespace greynic::files {

inline constexpr int kMostDepth = 64;  ///< of lists and objects in one another

/// Thrown while a document is built; the parser takes nothing but exceptions for a reason to stop.
struct Refused {
  ErrorCode code;
  std::string why;
};

/// Builds the document while refusing a key that stands twice in one object, and texts that unfold
/// to far more than they are. json::parse() with a callback would do the same, but looks at all
/// elements of a list again behind each object in it.
class Builder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  using json = nlohmann::json;

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

  /// Counts what is kept elsewhere.
  void take(double bytes) {
    left_ -= bytes;
    if (left_ < 0) {
      throw Refused{ErrorCode::kTooBig,
                    "holds more values than its size lets expect, and would not fit into memory; "
                    "split it"};
    }
  }
  [[nodiscard]] int depth() const { return static_cast<int>(open_.size()); }

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

}  // namespace greynic::files
