#pragma once

/// A place in a text, for readers: knows its line and column, and makes their errors.

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "greynic/core/result.h"

namespace greynic::language {

/// Without the mark that some editors and shells put before UTF-8.
inline std::string_view without_mark(std::string_view text) {
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  if (text.starts_with(kMark)) text.remove_prefix(kMark.size());
  return text;
}

class TextCursor {
 public:
  TextCursor(std::string_view text, const std::string& source) : text_(text), source_(source) {}

  [[nodiscard]] bool done() const { return at_ >= text_.size(); }
  [[nodiscard]] char peek() const { return done() ? '\0' : text_[at_]; }
  [[nodiscard]] std::string_view rest() const { return text_.substr(at_); }
  [[nodiscard]] std::size_t position() const { return at_; }
  void advance(std::size_t count = 1) { at_ = std::min(text_.size(), at_ + count); }

  void skip_space() {
    while (!done() && is_space(text_[at_])) ++at_;
  }
  /// The next word up to white space; empty at the end.
  std::string_view word() {
    skip_space();
    const std::size_t from = at_;
    while (!done() && !is_space(text_[at_])) ++at_;
    return text_.substr(from, at_ - from);
  }

  [[nodiscard]] std::size_t line() const { return line_of(at_); }
  [[nodiscard]] std::size_t line_of(std::size_t position) const {
    std::size_t line = 1;
    for (std::size_t i = 0; i < position && i < text_.size(); ++i) line += text_[i] == '\n' ? 1 : 0;
    return line;
  }
  /// kBadInput at a place of the text.
  [[nodiscard]] tl::unexpected<Error> error_at(std::size_t position, std::string_view what) const {
    std::size_t start = std::min(position, text_.size());
    while (start > 0 && text_[start - 1] != '\n') --start;
    return fail(ErrorCode::kBadInput, source_ + ":" + std::to_string(line_of(position)) + ":" +
                                          std::to_string(position - start + 1) + ": " +
                                          std::string(what));
  }

  static bool is_space(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v';
  }

 private:
  std::string_view text_;
  const std::string& source_;
  std::size_t at_ = 0;
};

}  // namespace greynic::language
