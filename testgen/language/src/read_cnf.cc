#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <unordered_set>

#include "greynic/core/text.h"
#include "greynic/language/model_reader.h"
#include "text_cursor.h"

namespace greynic::language {

namespace {

constexpr std::int64_t kMostVariables = 1'000'000;

std::optional<std::int64_t> integer(std::string_view word) {
  std::int64_t value = 0;
  const auto [end, status] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (status != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return value;
}

class CnfReader {
 public:
  CnfReader(std::string_view text, const std::string& source)
      : text_(text), source_(source), cursor_(text, source) {
    model_.source = source;
  }

  Result<CoverModel> read() {
    std::size_t at = 0;
    std::size_t line_number = 1;
    while (at < text_.size()) {
      const std::size_t end = std::min(text_.find('\n', at), text_.size());
      std::string_view line = text_.substr(at, end - at);
      if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
      if (line.starts_with('%')) break;  // some generators end their files so
      if (line.starts_with('c') && (line.size() == 1 || TextCursor::is_space(line[1]))) {
        comment(line.substr(1));
      } else if (auto done = data(line, at, line_number); !done) {
        return pass_on(done);
      }
      at = end + 1;
      ++line_number;
    }
    if (!seen_header_) return cursor_.error_at(0, "no 'p cnf VARIABLES CLAUSES' line");
    if (!clause_.empty())
      return cursor_.error_at(text_.size(), "the last clause does not end in 0");
    if (model_.clauses.size() != clause_count_) {
      return cursor_.error_at(text_.size(), fmt::format("{} clauses announced, {} found",
                                                        clause_count_, model_.clauses.size()));
    }
    name_variables();
    return std::move(model_);
  }

 private:
  /// "c 12 NAME" or "c 12$ NAME" (a variable that a translation made up) names a variable.
  void comment(std::string_view rest) {
    TextCursor words(rest, source_);
    std::string_view number = words.word();
    if (number.ends_with('$')) number.remove_suffix(1);
    const auto index = integer(number);
    std::string_view name = words.word();
    if (!index || *index < 1 || *index > kMostVariables || name.empty()) return;
    words.word();                       // KConfig's translators add the type: "c 1 CONFIG_A bool"
    if (!words.word().empty()) return;  // prose that begins with a number
    names_.emplace_back(*index, std::string(name));
  }

  Result<void> data(std::string_view line, std::size_t at, std::size_t line_number) {
    TextCursor words(line, source_);
    for (std::string_view word = words.word(); !word.empty(); word = words.word()) {
      const std::size_t position = at + words.position() - word.size();
      if (word == "p") {
        if (seen_header_) return cursor_.error_at(position, "a second 'p' line");
        const std::string_view kind = words.word();
        const auto variables = integer(words.word());
        const auto clauses = integer(words.word());
        if (kind != "cnf" || !variables || !clauses || *variables < 1 || *clauses < 0) {
          return cursor_.error_at(position, "'p cnf VARIABLES CLAUSES' expected");
        }
        if (*variables > kMostVariables) {
          return cursor_.error_at(position, fmt::format("{} variables; at most {} are taken",
                                                        *variables, kMostVariables));
        }
        seen_header_ = true;
        model_.parameters.resize(static_cast<std::size_t>(*variables));
        clause_count_ = static_cast<std::size_t>(*clauses);
        continue;
      }
      if (!seen_header_) return cursor_.error_at(position, "the 'p cnf' line must come first");
      const auto literal = integer(word);
      if (!literal) {
        return cursor_.error_at(position, fmt::format("'{}' is not a literal", shortened(word, 40)));
      }
      if (*literal == 0) {
        model_.clauses.push_back(std::move(clause_));
        in_line_ = line_number == line_ ? in_line_ + 1 : 1;
        line_ = line_number;
        model_.clause_where.push_back(in_line_ == 1
                                          ? fmt::format("clause in line {}", line_)
                                          : fmt::format("clause {} in line {}", in_line_, line_));
        clause_.clear();
        continue;
      }
      const auto count = static_cast<std::int64_t>(model_.parameters.size());
      if (*literal > count || *literal < -count) {
        return cursor_.error_at(position, fmt::format("variable {} is beyond the {} announced",
                                                      *literal, model_.parameters.size()));
      }
      clause_.push_back({static_cast<std::uint32_t>(std::abs(*literal) - 1), 1, *literal > 0});
    }
    return {};
  }

  void name_variables() {
    for (std::size_t p = 0; p < model_.parameters.size(); ++p) {
      model_.parameters[p].name = std::to_string(p + 1);
      model_.parameters[p].levels = {"0", "1"};
    }
    std::unordered_set<std::string> used;
    for (auto& [index, name] : names_) {
      if (static_cast<std::size_t>(index) > model_.parameters.size()) continue;
      // Two variables of one name would be one column.
      if (!used.insert(name).second) name += fmt::format("#{}", index);
      model_.parameters[static_cast<std::size_t>(index) - 1].name = name;
    }
  }

  std::string_view text_;
  const std::string& source_;
  TextCursor cursor_;
  CoverModel model_;
  bool seen_header_ = false;
  std::size_t clause_count_ = 0;
  Clause clause_;
  std::size_t line_ = 0;     ///< of the last clause
  std::size_t in_line_ = 0;  ///< clauses that ended there
  std::vector<std::pair<std::int64_t, std::string>> names_;
};

}  // namespace

Result<CoverModel> parse_cnf(std::string_view text, const std::string& source) {
  return CnfReader(text, source).read();
}

}  // namespace greynic::language
