#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "greynic/language/model_reader.h"
#include "pict_constraints.h"
#include "text_cursor.h"

namespace greynic::language {

namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && TextCursor::is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && TextCursor::is_space(text.back())) text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> out;
  while (true) {
    const std::size_t at = text.find(separator);
    out.push_back(trimmed(text.substr(0, at)));
    if (at == std::string_view::npos) return out;
    text.remove_prefix(at + 1);
  }
}

bool starts_constraint(std::string_view line) {
  const std::string folded = pict_folded(line);
  if (line.starts_with('[')) return true;
  if (line.starts_with('(')) return line.find('[') != std::string_view::npos;
  for (const std::string_view word : {"if", "not", "isnegative", "ispositive"}) {
    if (!folded.starts_with(word)) continue;
    const std::string_view rest = std::string_view(folded).substr(word.size());
    if (rest.empty()) return true;
    // "If mode: a, b" is a parameter, "IF [mode] ..." is not.
    if (rest[0] == '(' || rest[0] == '[') return true;
    if (TextCursor::is_space(rest[0])) {
      const std::size_t colon = rest.find(':');
      const std::size_t bracket = rest.find_first_of("[(");
      return bracket != std::string_view::npos ? bracket < colon : colon == std::string_view::npos;
    }
  }
  return false;
}

class PictReader {
 public:
  PictReader(std::string_view text, const std::string& source) : source_(source), text_(text) {
    model_.source = source;
    // Blanked comments keep every position where it was.
    for (std::size_t at = 0; at < text_.size();) {
      const std::size_t end = std::min(text_.find('\n', at), text_.size());
      if (trimmed(std::string_view(text_).substr(at, end - at)).starts_with('#')) {
        std::fill(text_.begin() + static_cast<std::ptrdiff_t>(at),
                  text_.begin() + static_cast<std::ptrdiff_t>(end), ' ');
      }
      at = end + 1;
    }
    if (text_.starts_with("\xef\xbb\xbf")) text_.replace(0, 3, 3, ' ');
  }

  Result<CoverModel> read() {
    const TextCursor cursor(text_, source_);
    bool sub_models = false;
    std::size_t at = 0;
    while (at < text_.size()) {
      const std::size_t end = std::min(text_.find('\n', at), text_.size());
      const std::string_view raw = std::string_view(text_).substr(at, end - at);
      const std::string_view line = trimmed(raw);
      const std::size_t position =
          line.empty() ? at : at + static_cast<std::size_t>(line.data() - raw.data());
      if (line.empty()) {
        at = end + 1;
        continue;
      }
      if (starts_constraint(line)) {
        TextCursor constraints = cursor;
        constraints.advance(position);
        if (model_.parameters.empty()) return cursor.error_at(position, "no parameter comes first");
        if (auto read = read_pict_constraints(constraints, model_); !read) return pass_on(read);
        break;
      }
      Result<void> read;
      if (line.starts_with('{')) {
        sub_models = true;
        read = sub_model(cursor, line, position);
      } else if (sub_models) {
        return cursor.error_at(position, "parameters must come before sub-models");
      } else {
        read = parameter(cursor, line, position);
      }
      if (!read) return pass_on(read);
      at = end + 1;
    }
    if (model_.parameters.empty()) return cursor.error_at(0, "the model has no parameters");
    return std::move(model_);
  }

 private:
  /// name: value (weight), ~negative, name | alias, <other parameter>
  Result<void> parameter(const TextCursor& cursor, std::string_view line, std::size_t position) {
    std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) colon = line.find(',');
    if (colon == std::string_view::npos) {
      return cursor.error_at(position, "'name: value, value, ...' expected");
    }
    ModelParameter parameter;
    parameter.name = std::string(trimmed(line.substr(0, colon)));
    if (parameter.name.empty()) return cursor.error_at(position, "the parameter has no name");
    if (parameter.name.starts_with('$')) {
      return cursor.error_at(position, "result parameters ($...) are not taken; remove the line");
    }
    if (const auto order = split(parameter.name, '@'); order.size() == 2 && pict_number(order[1])) {
      return cursor.error_at(position,
                             "an order of one parameter (@) is not taken; use a sub-model");
    }
    if (index_of(parameter.name)) {
      return cursor.error_at(position, fmt::format("a second parameter '{}'", parameter.name));
    }
    for (const std::string_view item : split(line.substr(colon + 1), ',')) {
      if (item.size() >= 2 && item.front() == '<' && item.back() == '>') {
        if (const auto other = index_of(item.substr(1, item.size() - 2))) {
          append_levels(parameter, model_.parameters[*other]);
          continue;
        }
      }
      add_level(parameter, item);
      if (parameter.levels.size() > kMostLevels) {
        return cursor.error_at(position,
                               fmt::format("more values than the {} that are taken", kMostLevels));
      }
    }
    finish(parameter);
    model_.parameters.push_back(std::move(parameter));
    return {};
  }

  static void add_level(ModelParameter& parameter, std::string_view item) {
    double weight = 1.0;
    if (const std::size_t open = item.rfind('(');
        item.ends_with(')') && open != std::string_view::npos) {
      const auto number = pict_number(trimmed(item.substr(open + 1, item.size() - open - 2)));
      if (number && *number >= 1.0) {
        weight = std::floor(*number);
        item = trimmed(item.substr(0, open));
      }
    }
    const std::vector<std::string_view> names = split(item, '|');
    const bool negative = names[0].starts_with('~');
    // All names of a negative value are marked.
    std::vector<std::string> aliases;
    for (std::size_t i = 1; i < names.size(); ++i) {
      aliases.push_back((negative ? "~" : "") + std::string(names[i]));
    }
    add_level(parameter,
              negative ? "~" + std::string(trimmed(names[0].substr(1))) : std::string(names[0]),
              aliases, negative, weight);
  }

  /// A value that is written twice is one value of twice the weight: nothing could tell them apart.
  static void add_level(ModelParameter& parameter, const std::string& name,
                        const std::vector<std::string>& aliases, bool negative, double weight) {
    const auto known = std::find(parameter.levels.begin(), parameter.levels.end(), name);
    const auto at = static_cast<std::size_t>(known - parameter.levels.begin());
    if (known == parameter.levels.end()) {
      parameter.levels.push_back(name);
      parameter.aliases.push_back(aliases);
      parameter.negative.push_back(negative);
      parameter.weights.push_back(weight);
      return;
    }
    parameter.weights[at] += weight;
    auto& names = parameter.aliases[at];
    names.insert(names.end(), aliases.begin(), aliases.end());
  }

  static void append_levels(ModelParameter& to, const ModelParameter& from) {
    for (std::size_t level = 0; level < from.levels.size(); ++level) {
      add_level(to, from.levels[level],
                from.aliases.empty() ? std::vector<std::string>{} : from.aliases[level],
                !from.negative.empty() && from.negative[level],
                from.weights.empty() ? 1.0 : from.weights[level]);
    }
  }

  /// Numeric when all its values are numbers; leaves lists away that say nothing.
  static void finish(ModelParameter& parameter) {
    for (std::size_t level = 0; level < parameter.levels.size(); ++level) {
      std::string_view text = parameter.levels[level];
      if (parameter.negative[level]) text.remove_prefix(1);
      if (const auto number = pict_number(text)) parameter.numbers.push_back(*number);
    }
    if (parameter.numbers.size() != parameter.levels.size()) parameter.numbers.clear();
    const auto is_one = [](double weight) { return weight == 1.0; };
    if (std::all_of(parameter.weights.begin(), parameter.weights.end(), is_one)) {
      parameter.weights.clear();
    }
    const auto has_none = [](const auto& names) { return names.empty(); };
    if (std::all_of(parameter.aliases.begin(), parameter.aliases.end(), has_none)) {
      parameter.aliases.clear();
    }
    if (std::find(parameter.negative.begin(), parameter.negative.end(), true) ==
        parameter.negative.end()) {
      parameter.negative.clear();
    }
  }

  /// { a, b, c } @ 3
  Result<void> sub_model(const TextCursor& cursor, std::string_view line, std::size_t position) {
    const std::size_t close = line.find('}');
    if (close == std::string_view::npos) return cursor.error_at(position, "'}' is missing");
    SubModel group;
    group.strength = 0;  // the overall order, which adds nothing
    for (const std::string_view name : split(line.substr(1, close - 1), ',')) {
      const auto index = index_of(name);
      if (!index) {
        return cursor.error_at(position,
                               fmt::format("the sub-model names an unknown parameter '{}'", name));
      }
      group.parameters.push_back(*index);
    }
    std::sort(group.parameters.begin(), group.parameters.end());
    group.parameters.erase(std::unique(group.parameters.begin(), group.parameters.end()),
                           group.parameters.end());
    const std::string_view rest = trimmed(line.substr(close + 1));
    if (rest.empty()) return {};
    const auto order = rest.starts_with('@') ? pict_number(trimmed(rest.substr(1))) : std::nullopt;
    if (!order || *order < 1.0 || *order != std::floor(*order)) {
      return cursor.error_at(position + close + 1, "'@ order' expected after the sub-model");
    }
    if (*order > 6.0 || *order > static_cast<double>(group.parameters.size())) {
      return cursor.error_at(position + close + 1,
                             fmt::format("an order from 1 to {} expected",
                                         std::min<std::size_t>(6, group.parameters.size())));
    }
    group.strength = static_cast<int>(*order);
    model_.groups.push_back(std::move(group));
    return {};
  }

  std::optional<std::uint32_t> index_of(std::string_view name) const {
    const std::string wanted = pict_folded(trimmed(name));
    for (std::uint32_t p = 0; p < model_.parameters.size(); ++p) {
      if (pict_folded(model_.parameters[p].name) == wanted) return p;
    }
    return std::nullopt;
  }

  const std::string& source_;
  std::string text_;
  CoverModel model_;
};

}  // namespace

Result<CoverModel> parse_pict(std::string_view text, const std::string& source) {
  return PictReader(text, source).read();
}

}  // namespace greynic::language
