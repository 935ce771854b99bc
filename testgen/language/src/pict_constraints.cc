#include "pict_constraints.h"

#include <fmt/core.h>

#include <cctype>
#include <charconv>
#include <cmath>

namespace greynic::language {

namespace {

struct LeadingNumber {
  double value = 0.0;
  std::size_t length = 0;  ///< characters of the text
};

/// The number that a text begins with, as C writes them: 12, -1.5e3, +7, 0x1F, -0x10.
std::optional<LeadingNumber> leading_number(std::string_view text) {
  const bool negative = text.starts_with('-');
  const std::size_t sign = negative || text.starts_with('+') ? 1 : 0;
  std::string_view digits = text.substr(sign);
  // After its own sign from_chars would take another.
  if (digits.starts_with('-')) return std::nullopt;
  const bool hex = digits.size() > 2 && digits[0] == '0' &&
                   (digits[1] == 'x' || digits[1] == 'X') &&
                   std::isxdigit(static_cast<unsigned char>(digits[2])) != 0;
  if (hex) digits.remove_prefix(2);
  double value = 0.0;
  const auto [end, status] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value,
                      hex ? std::chars_format::hex : std::chars_format::general);
  if (status != std::errc() || !std::isfinite(value)) return std::nullopt;
  return LeadingNumber{negative ? -value : value, static_cast<std::size_t>(end - text.data())};
}

constexpr int kDeepest = 200;

struct PictError {
  std::size_t position;
  std::string what;
};

/// '*' is any text, '?' one character.
bool matches_wildcards(std::string_view pattern, std::string_view text) {
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star = std::string_view::npos;
  std::size_t retry = 0;
  while (t < text.size()) {
    if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t]) && pattern[p] != '*') {
      ++p;
      ++t;
    } else if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      retry = t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++retry;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

enum class Relation : std::uint8_t { kCompare, kLike, kIn };

struct Value {
  bool is_number = false;
  double number = 0.0;
  std::string text;  ///< folded
};

class PictParser {
 public:
  PictParser(TextCursor& cursor, const CoverModel& model) : cursor_(cursor), model_(model) {}

  /// IF clause THEN clause [ELSE clause];  or  clause;
  Expr constraint() {
    Expr out;
    if (keyword("IF")) {
      Expr condition = clause();
      if (!keyword("THEN")) refuse("THEN expected");
      Expr consequence = clause();
      if (keyword("ELSE")) {
        Expr otherwise = clause();
        out = Expr::all_of({Expr::implies(condition, std::move(consequence)),
                            Expr::implies(Expr::negation(condition), std::move(otherwise))});
      } else {
        out = Expr::implies(std::move(condition), std::move(consequence));
      }
    } else {
      out = clause();
    }
    if (!symbol(";")) refuse("';' expected at the end of the constraint");
    return out;
  }

 private:
  [[noreturn]] void refuse(std::string what) {
    cursor_.skip_space();
    throw PictError{cursor_.position(), std::move(what)};
  }

  bool symbol(std::string_view text) {
    cursor_.skip_space();
    if (!cursor_.rest().starts_with(text)) return false;
    cursor_.advance(text.size());
    return true;
  }

  /// A word of the language; unlike PICT's, it must not run into another word.
  bool keyword(std::string_view word) {
    cursor_.skip_space();
    const std::string_view rest = cursor_.rest();
    if (rest.size() < word.size() ||
        pict_folded(rest.substr(0, word.size())) != pict_folded(word)) {
      return false;
    }
    if (rest.size() > word.size() &&
        (std::isalnum(static_cast<unsigned char>(rest[word.size()])) != 0 ||
         rest[word.size()] == '_')) {
      return false;
    }
    cursor_.advance(word.size());
    return true;
  }

  Expr clause() {
    if (++depth_ > kDeepest) refuse("nested too deeply");
    std::vector<Expr> alternatives;
    do {
      std::vector<Expr> parts;
      do {
        parts.push_back(condition());
      } while (keyword("AND"));
      alternatives.push_back(parts.size() == 1 ? std::move(parts[0])
                                               : Expr::all_of(std::move(parts)));
    } while (keyword("OR"));
    --depth_;
    return alternatives.size() == 1 ? std::move(alternatives[0])
                                    : Expr::any_of(std::move(alternatives));
  }

  Expr condition() {
    bool negated = false;
    while (keyword("NOT")) negated = !negated;
    Expr inner;
    if (symbol("(")) {
      inner = clause();
      if (!symbol(")")) refuse("')' expected");
    } else if (keyword("ISNEGATIVE")) {
      inner = sign_function(true);
    } else if (keyword("ISPOSITIVE")) {
      inner = sign_function(false);
    } else {
      inner = term();
    }
    return negated ? Expr::negation(std::move(inner)) : inner;
  }

  /// IsNegative(p) or IsNegative(), which is about all parameters; IsPositive likewise.
  Expr sign_function(bool negative) {
    if (!symbol("(")) refuse("'(' expected");
    cursor_.skip_space();
    std::vector<std::uint32_t> parameters;
    if (cursor_.peek() == ')') {
      for (std::uint32_t p = 0; p < model_.parameters.size(); ++p) parameters.push_back(p);
    } else {
      const std::size_t position = cursor_.position();
      std::string name = bounded_text(')', false);
      if (name.size() >= 2 && name.front() == '[' && name.back() == ']') {
        name = name.substr(1, name.size() - 2);
      }
      parameters.push_back(parameter_named(name, position));
    }
    if (!symbol(")")) refuse("')' expected");
    std::vector<Expr> parts;
    for (const std::uint32_t p : parameters) {
      std::vector<std::uint16_t> levels;
      const std::vector<bool>& is_negative = model_.parameters[p].negative;
      for (std::size_t level = 0; level < is_negative.size(); ++level) {
        if (is_negative[level]) levels.push_back(static_cast<std::uint16_t>(level));
      }
      parts.push_back(Expr::level_in(p, std::move(levels)));
    }
    Expr some_negative = parts.size() == 1 ? std::move(parts[0]) : Expr::any_of(std::move(parts));
    return negative ? some_negative : Expr::negation(std::move(some_negative));
  }

  /// [parameter] relation value-or-parameter
  Expr term() {
    cursor_.skip_space();
    const std::size_t start = cursor_.position();
    if (!symbol("[")) refuse("'[parameter]' expected");
    const std::uint32_t left = bracketed(start);
    cursor_.skip_space();
    const std::size_t relation_at = cursor_.position();
    if (keyword("NOT")) {
      if (keyword("IN")) return Expr::negation(in_set(left));
      if (keyword("LIKE")) return Expr::negation(like(left));
      refuse("IN or LIKE expected after NOT");
    }
    if (keyword("IN")) return in_set(left);
    if (keyword("LIKE")) return like(left);
    const CompareOp op = compare_op();
    cursor_.skip_space();
    const std::size_t value_at = cursor_.position();
    if (symbol("[")) {
      const std::uint32_t right = bracketed(value_at);
      return between_parameters(op, left, right, relation_at);
    }
    const Value other = value();
    check_type(left, other, value_at);
    return level_set(left, [&](std::uint32_t p, std::size_t level) {
      return compares(op, value_of(p, level), other);
    });
  }

  CompareOp compare_op() {
    if (symbol("<>")) return CompareOp::kNotEqual;
    if (symbol("<=")) return CompareOp::kLessEqual;
    if (symbol(">=")) return CompareOp::kGreaterEqual;
    if (symbol("=")) return CompareOp::kEqual;
    if (symbol("<")) return CompareOp::kLess;
    if (symbol(">")) return CompareOp::kGreater;
    refuse("a relation expected: = <> < <= > >= LIKE IN NOT");
  }

  Expr in_set(std::uint32_t parameter) {
    if (!symbol("{")) refuse("'{' expected after IN");
    std::vector<Value> values;
    do {
      cursor_.skip_space();
      const std::size_t position = cursor_.position();
      values.push_back(value());
      check_type(parameter, values.back(), position);
    } while (symbol(","));
    if (!symbol("}")) refuse("',' or '}' expected");
    return level_set(parameter, [&](std::uint32_t p, std::size_t level) {
      for (const Value& other : values) {
        if (compares(CompareOp::kEqual, value_of(p, level), other)) return true;
      }
      return false;
    });
  }

  Expr like(std::uint32_t parameter) {
    cursor_.skip_space();
    const std::size_t position = cursor_.position();
    const Value pattern = value();
    if (pattern.is_number) throw PictError{position, "LIKE needs text in quotes"};
    check_type(parameter, pattern, position);
    return level_set(parameter, [&](std::uint32_t p, std::size_t level) {
      return matches_wildcards(pattern.text, value_of(p, level).text);
    });
  }

  template <typename Test>
  Expr level_set(std::uint32_t parameter, Test test) const {
    std::vector<std::uint16_t> levels;
    for (std::size_t level = 0; level < model_.parameters[parameter].levels.size(); ++level) {
      if (test(parameter, level)) levels.push_back(static_cast<std::uint16_t>(level));
    }
    return Expr::level_in(parameter, std::move(levels));
  }

  Expr between_parameters(CompareOp op, std::uint32_t left, std::uint32_t right,
                          std::size_t position) const {
    if (is_numeric(left) != is_numeric(right)) {
      throw PictError{position,
                      fmt::format("[{}] and [{}] are of different types",
                                  model_.parameters[left].name, model_.parameters[right].name)};
    }
    if (left == right) throw PictError{position, "a parameter is compared to itself"};
    std::vector<Expr> alternatives;
    for (std::size_t level = 0; level < model_.parameters[left].levels.size(); ++level) {
      const Value value = value_of(left, level);
      Expr others = level_set(right, [&](std::uint32_t p, std::size_t other) {
        return compares(op, value, value_of(p, other));
      });
      if (others.levels.empty()) continue;
      alternatives.push_back(Expr::all_of(
          {Expr::level_in(left, {static_cast<std::uint16_t>(level)}), std::move(others)}));
    }
    if (alternatives.empty()) return Expr::constant(false);
    return Expr::any_of(std::move(alternatives));
  }

  static bool compares(CompareOp op, const Value& left, const Value& right) {
    if (left.is_number) return holds(op, left.number, right.number);
    const int order = left.text.compare(right.text);
    return holds(op, order < 0 ? -1.0 : order > 0 ? 1.0 : 0.0, 0.0);
  }

  bool is_numeric(std::uint32_t parameter) const {
    return !model_.parameters[parameter].numbers.empty();
  }

  Value value_of(std::uint32_t parameter, std::size_t level) const {
    const ModelParameter& info = model_.parameters[parameter];
    if (is_numeric(parameter)) return {true, info.numbers[level], ""};
    std::string_view text = info.levels[level];
    // The prefix of a negative value is no part of it.
    if (!info.negative.empty() && info.negative[level]) text.remove_prefix(1);
    return {false, 0.0, pict_folded(text)};
  }

  void check_type(std::uint32_t parameter, const Value& value, std::size_t position) const {
    if (is_numeric(parameter) == value.is_number) return;
    throw PictError{position, is_numeric(parameter)
                                  ? fmt::format("[{}] is numeric: compare it to a number, without "
                                                "quotes",
                                                model_.parameters[parameter].name)
                                  : fmt::format("[{}] is text: compare it to text in quotes",
                                                model_.parameters[parameter].name)};
  }

  Value value() {
    cursor_.skip_space();
    const std::size_t opened = cursor_.position();
    if (symbol("\"")) {
      std::string text = bounded_text('"', true);
      if (!symbol("\"")) throw PictError{opened, "the quote that opens here is not closed"};
      return {false, 0.0, pict_folded(text)};
    }
    const auto number = leading_number(cursor_.rest());
    if (!number) refuse("a number, text in quotes or a [parameter] expected");
    cursor_.advance(number->length);
    return {true, number->value, ""};
  }

  std::uint32_t bracketed(std::size_t start) {
    const std::string name = bounded_text(']', true);
    if (!symbol("]")) refuse("']' expected");
    return parameter_named(name, start);
  }

  std::uint32_t parameter_named(std::string_view name, std::size_t position) const {
    const std::string wanted = pict_folded(name);
    for (std::uint32_t p = 0; p < model_.parameters.size(); ++p) {
      if (pict_folded(model_.parameters[p].name) == wanted) return p;
    }
    throw PictError{position, fmt::format("unknown parameter [{}]", name)};
  }

  /// Text up to an end character, which stays; a backslash escapes \, " and ].
  std::string bounded_text(char end, bool escapes) {
    std::string out;
    while (!cursor_.done() && cursor_.peek() != end) {
      if (escapes && cursor_.peek() == '\\') {
        cursor_.advance();
        const char escaped = cursor_.peek();
        if (escaped != '\\' && escaped != '"' && escaped != ']') refuse("unknown escape");
      }
      out.push_back(cursor_.peek());
      cursor_.advance();
    }
    return out;
  }

  TextCursor& cursor_;
  const CoverModel& model_;
  int depth_ = 0;
};

}  // namespace

std::string pict_folded(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

std::optional<double> pict_number(std::string_view text) {
  const auto number = leading_number(text);
  if (!number || number->length != text.size()) return std::nullopt;
  return number->value;
}

namespace {

/// Constraints run over several lines; messages do not.
std::string one_line(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (!TextCursor::is_space(c)) {
      out.push_back(c);
    } else if (!out.ends_with(' ')) {
      out.push_back(' ');
    }
  }
  return out;
}

}  // namespace

Result<void> read_pict_constraints(TextCursor cursor, CoverModel& model) {
  cursor.skip_space();
  while (!cursor.done()) {
    const std::size_t start = cursor.position();
    const std::string_view text = cursor.rest();
    try {
      Expr expression = PictParser(cursor, model).constraint();
      model.constraints.push_back({std::move(expression),
                                   one_line(text.substr(0, cursor.position() - start)),
                                   fmt::format("line {}", cursor.line_of(start))});
    } catch (const PictError& error) {
      return cursor.error_at(error.position, error.what);
    }
    cursor.skip_space();
  }
  return {};
}

}  // namespace greynic::language
