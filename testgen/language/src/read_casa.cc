#include <fmt/core.h>

#include <charconv>

#include "greynic/core/text.h"
#include "greynic/language/model_reader.h"
#include "text_cursor.h"

namespace greynic::language {

namespace {

/// Reads one number that must lie between two others.
Result<std::int64_t> number(TextCursor& cursor, std::string_view what, std::int64_t low,
                            std::int64_t high) {
  const std::string_view word = cursor.word();
  const std::size_t position = cursor.position() - word.size();
  std::int64_t value = 0;
  const auto [end, status] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (word.empty()) return cursor.error_at(position, fmt::format("{} is missing", what));
  if (status != std::errc() || end != word.data() + word.size() || value < low || value > high) {
    return cursor.error_at(position, fmt::format("{} must be a number from {} to {}, not '{}'",
                                                 what, low, high, shortened(word, 40)));
  }
  return value;
}

Result<void> at_end(TextCursor& cursor) {
  const std::string_view word = cursor.word();
  if (word.empty()) return {};
  return cursor.error_at(cursor.position() - word.size(),
                         fmt::format("'{}' after the last number", shortened(word, 40)));
}

}  // namespace

Result<CoverModel> parse_casa(std::string_view text, const std::string& model_source,
                              std::string_view constraints, const std::string& constraints_source) {
  CoverModel model;
  model.source = model_source;
  TextCursor cursor(text, model_source);
  const auto strength = number(cursor, "the strength", 1, 6);
  if (!strength) return pass_on(strength);
  model.strength = static_cast<int>(*strength);
  const auto options = number(cursor, "the number of options", 1, 1'000'000);
  if (!options) return pass_on(options);
  std::vector<std::pair<std::uint32_t, std::uint16_t>> symbols;
  for (std::int64_t p = 0; p < *options; ++p) {
    const auto levels =
        number(cursor, fmt::format("the level count of option {}", p + 1), 1, kMostLevels);
    if (!levels) return pass_on(levels);
    ModelParameter parameter;
    parameter.name = fmt::format("p{}", p + 1);
    for (std::int64_t level = 0; level < *levels; ++level) {
      parameter.levels.push_back(std::to_string(symbols.size()));
      symbols.emplace_back(static_cast<std::uint32_t>(p), static_cast<std::uint16_t>(level));
    }
    model.parameters.push_back(std::move(parameter));
  }
  if (auto end = at_end(cursor); !end) return pass_on(end);

  TextCursor terms(constraints, constraints_source);
  terms.skip_space();
  if (terms.done()) return model;
  const auto count = number(terms, "the number of constraints", 0, 100'000'000);
  if (!count) return pass_on(count);
  for (std::int64_t c = 0; c < *count; ++c) {
    const auto size = number(terms, fmt::format("the number of terms of constraint {}", c + 1), 1,
                             static_cast<std::int64_t>(symbols.size()));
    if (!size) return pass_on(size);
    const std::size_t position = terms.position();
    Clause clause;
    for (std::int64_t t = 0; t < *size; ++t) {
      terms.skip_space();
      const char sign = terms.peek();
      if (sign != '-' && sign != '+') {
        return terms.error_at(terms.position(), "a term must begin with '-' or '+'");
      }
      terms.advance();
      const auto symbol =
          number(terms, "the symbol", 0, static_cast<std::int64_t>(symbols.size()) - 1);
      if (!symbol) return pass_on(symbol);
      const auto& [parameter, level] = symbols[static_cast<std::size_t>(*symbol)];
      clause.push_back({parameter, level, sign == '+'});
    }
    model.clauses.push_back(std::move(clause));
    model.clause_where.push_back(
        fmt::format("constraint {} in line {}", c + 1, terms.line_of(position)));
  }
  if (auto end = at_end(terms); !end) return pass_on(end);
  return model;
}

}  // namespace greynic::language
