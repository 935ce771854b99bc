#include "constraint_lexer.h"

#include <fmt/core.h>

#include <cctype>
#include <charconv>
#include <cmath>
#include <map>

#include "greynic/core/text.h"

namespace greynic::language {

namespace {

bool starts_name(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool continues_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

const std::map<std::string_view, TokenKind>& words() {
  static const std::map<std::string_view, TokenKind> kWords = {
      {"and", TokenKind::kAnd},     {"AND", TokenKind::kAnd},      {"or", TokenKind::kOr},
      {"OR", TokenKind::kOr},       {"not", TokenKind::kNot},      {"NOT", TokenKind::kNot},
      {"if", TokenKind::kIf},       {"IF", TokenKind::kIf},        {"then", TokenKind::kThen},
      {"THEN", TokenKind::kThen},   {"else", TokenKind::kElse},    {"ELSE", TokenKind::kElse},
      {"in", TokenKind::kIn},       {"IN", TokenKind::kIn},        {"true", TokenKind::kTrue},
      {"false", TokenKind::kFalse}, {"exists", TokenKind::kExists}};
  return kWords;
}

/// Longest first, so that "<->" is not "<".
constexpr std::pair<std::string_view, TokenKind> kSymbols[] = {
    {"<->", TokenKind::kIff},      {"<=>", TokenKind::kIff},         {"->", TokenKind::kImplies},
    {"=>", TokenKind::kImplies},   {"&&", TokenKind::kAnd},          {"||", TokenKind::kOr},
    {"==", TokenKind::kEqual},     {"!=", TokenKind::kNotEqual},     {"<>", TokenKind::kNotEqual},
    {"<=", TokenKind::kLessEqual}, {">=", TokenKind::kGreaterEqual}, {"..", TokenKind::kRange},
    {"<", TokenKind::kLess},       {">", TokenKind::kGreater},       {"=", TokenKind::kEqual},
    {"!", TokenKind::kNot},        {"+", TokenKind::kPlus},          {"-", TokenKind::kMinus},
    {"*", TokenKind::kTimes},      {"/", TokenKind::kDivide},        {"(", TokenKind::kOpen},
    {")", TokenKind::kClose},      {"{", TokenKind::kOpenSet},       {"}", TokenKind::kCloseSet},
    {",", TokenKind::kComma}};

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  Lexed run() {
    while (out_.error.empty()) {
      while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
      if (at_ == text_.size()) break;
      token();
    }
    out_.tokens.push_back({TokenKind::kEnd, text_.size() + 1, "the end", 0.0});
    return std::move(out_);
  }

 private:
  void token() {
    const char c = text_[at_];
    if (starts_name(c)) return name();
    if (is_digit(c) || (c == '.' && at_ + 1 < text_.size() && is_digit(text_[at_ + 1]))) {
      return number();
    }
    if (c == '"' || c == '\'') return quoted(c, TokenKind::kText);
    if (c == '`') return quoted('`', TokenKind::kQuotedName);
    if (c == '[') return quoted(']', TokenKind::kQuotedName);
    for (const auto& [symbol, kind] : kSymbols) {
      if (text_.substr(at_).starts_with(symbol)) {
        push(kind, std::string(symbol), at_, at_ + symbol.size());
        return;
      }
    }
    fail_at(at_, fmt::format("unexpected character '{}'",
                               first_character(text_.substr(at_))));
  }

  void name() {
    std::size_t end = at_;
    // A dot joins names ("leaf0.route.action"), two dots are a range.
    while (end < text_.size() &&
           (continues_name(text_[end]) ||
            (text_[end] == '.' && end + 1 < text_.size() && continues_name(text_[end + 1])))) {
      ++end;
    }
    const std::string_view word = text_.substr(at_, end - at_);
    const auto known = words().find(word);
    push(known == words().end() ? TokenKind::kName : known->second, std::string(word), at_, end);
  }

  void number() {
    std::size_t end = at_;
    while (end < text_.size() && is_digit(text_[end])) ++end;
    if (end < text_.size() && text_[end] == '.' && !text_.substr(end).starts_with("..")) {
      ++end;
      while (end < text_.size() && is_digit(text_[end])) ++end;
    }
    if (end < text_.size() && (text_[end] == 'e' || text_[end] == 'E')) {
      std::size_t exponent = end + 1;
      if (exponent < text_.size() && (text_[exponent] == '+' || text_[exponent] == '-')) ++exponent;
      if (exponent < text_.size() && is_digit(text_[exponent])) {
        while (exponent < text_.size() && is_digit(text_[exponent])) ++exponent;
        end = exponent;
      }
    }
    const std::string_view word = text_.substr(at_, end - at_);
    double value = 0.0;
    const auto [rest, status] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (status != std::errc() || rest != word.data() + word.size() || !std::isfinite(value)) {
      return fail_at(at_, fmt::format("'{}' is not a number", word));
    }
    if (end < text_.size() && starts_name(text_[end])) {
      return fail_at(end, "a number must be followed by an operator; units are not written here");
    }
    push(TokenKind::kNumber, std::string(word), at_, end);
    out_.tokens.back().number = value;
  }

  void quoted(char closing, TokenKind kind) {
    std::string value;
    std::size_t at = at_ + 1;
    for (; at < text_.size() && text_[at] != closing; ++at) {
      if (text_[at] == '\\' && at + 1 < text_.size()) ++at;
      value.push_back(text_[at]);
    }
    if (at >= text_.size()) return fail_at(at_, fmt::format("'{}' is missing", closing));
    push(kind, std::move(value), at_, at + 1);
  }

  void push(TokenKind kind, std::string text, std::size_t from, std::size_t to) {
    out_.tokens.push_back({kind, from + 1, std::move(text), 0.0});
    at_ = to;
  }

  void fail_at(std::size_t at, std::string error) {
    out_.error = std::move(error);
    out_.column = at + 1;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  Lexed out_;
};

}  // namespace

Lexed lex_constraint(std::string_view text) { return Lexer(text).run(); }

}  // namespace greynic::language
