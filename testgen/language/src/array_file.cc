#include "greynic/language/array_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "greynic/core/text.h"
#include "greynic/files/json_file.h"
#include "text_cursor.h"

namespace greynic::language {

namespace {

using nlohmann::json;

std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> cells;
  while (true) {
    const std::size_t tab = line.find('\t');
    cells.push_back(line.substr(0, tab));
    if (tab == std::string_view::npos) return cells;
    line.remove_prefix(tab + 1);
  }
}

/// Finds levels by any of their names.
class LevelNames {
 public:
  explicit LevelNames(const CoverModel& model) {
    for (const ModelParameter& parameter : model.parameters) {
      auto& names = names_.emplace_back();
      for (std::size_t level = 0; level < parameter.levels.size(); ++level) {
        names.emplace(parameter.levels[level], static_cast<int>(level));
        if (parameter.aliases.empty()) continue;
        for (const std::string& alias : parameter.aliases[level]) {
          names.emplace(alias, static_cast<int>(level));
        }
      }
      if (parameter.only_if) names.emplace("", -1);
    }
  }

  std::optional<int> find(std::size_t parameter, const std::string& text) const {
    const auto found = names_[parameter].find(text);
    if (found == names_[parameter].end()) return std::nullopt;
    return found->second;
  }

 private:
  std::vector<std::unordered_map<std::string, int>> names_;
};

/// The parameter of each column; kBadInput when they are not the model's.
Result<std::vector<std::uint32_t>> columns_of(const CoverModel& model,
                                              const std::vector<std::string>& header,
                                              const std::string& source) {
  std::unordered_map<std::string_view, std::uint32_t> by_name;
  for (std::uint32_t p = 0; p < model.parameters.size(); ++p) {
    by_name.emplace(model.parameters[p].name, p);
  }
  std::vector<std::uint32_t> columns;
  std::vector<bool> seen(model.parameters.size());
  for (const std::string& name : header) {
    const auto found = by_name.find(name);
    if (found == by_name.end() || seen[found->second]) {
      return fail(ErrorCode::kBadInput,
                  fmt::format("{}:1: {} '{}' in the header row", source,
                              found == by_name.end() ? "unknown parameter" : "a second column",
                              shortened(name, 60)));
    }
    seen[found->second] = true;
    columns.push_back(found->second);
  }
  const auto missing = std::find(seen.begin(), seen.end(), false);
  if (missing != seen.end()) {
    return fail(
        ErrorCode::kBadInput,
        fmt::format("{}:1: the column of '{}' is missing", source,
                    model.parameters[static_cast<std::size_t>(missing - seen.begin())].name));
  }
  return columns;
}

Result<std::vector<int>> row_of(const CoverModel& model, const LevelNames& names,
                                const std::vector<std::uint32_t>& columns,
                                const std::vector<std::string>& cells, const std::string& place) {
  if (cells.size() != columns.size()) {
    return fail(ErrorCode::kBadInput, fmt::format("{}: {} cells, the header has {}", place,
                                                  cells.size(), columns.size()));
  }
  std::vector<int> row(columns.size());
  for (std::size_t c = 0; c < cells.size(); ++c) {
    const auto level = names.find(columns[c], cells[c]);
    if (!level) {
      return fail(ErrorCode::kBadInput,
                  fmt::format("{}: '{}' is no level of '{}'", place, shortened(cells[c], 60),
                              model.parameters[columns[c]].name));
    }
    row[columns[c]] = *level;
  }
  return row;
}

Result<LevelRows> parse_json_rows(const CoverModel& model, std::string_view text,
                                  const std::string& source) {
  const auto document = files::parse_json(text, source);
  if (!document) return pass_on(document);
  if (!document->is_object() || !document->contains("parameters") || !document->contains("rows") ||
      !(*document)["parameters"].is_array() || !(*document)["rows"].is_array()) {
    return files::bad_value(source, "/",
                            "'parameters' and 'rows' expected, as greynic cover --json "
                            "writes them");
  }
  const auto texts = [&](const json& list) {
    std::vector<std::string> out;
    for (const json& cell : list) {
      out.push_back(cell.is_string() ? cell.get<std::string>()
                    : cell.is_null() ? std::string()
                                     : files::json_text(cell));
    }
    return out;
  };
  const auto columns = columns_of(model, texts((*document)["parameters"]), source);
  if (!columns) return pass_on(columns);
  const LevelNames names(model);
  LevelRows rows;
  for (const json& entry : (*document)["rows"]) {
    const std::string place = fmt::format("{}: at /rows/{}", source, rows.size());
    if (!entry.is_array()) return fail(ErrorCode::kBadInput, place + ": a list expected");
    auto row = row_of(model, names, *columns, texts(entry), place);
    if (!row) return pass_on(row);
    rows.push_back(std::move(*row));
  }
  return rows;
}

}  // namespace

std::string rows_to_tsv(const CoverModel& model, const LevelRows& rows) {
  std::string out;
  for (std::size_t p = 0; p < model.parameters.size(); ++p) {
    if (p > 0) out += '\t';
    out += model.parameters[p].name;
  }
  out += '\n';
  std::map<std::pair<std::size_t, std::size_t>, std::size_t>
      shown;  // levels with aliases: how often
  for (const std::vector<int>& row : rows) {
    for (std::size_t p = 0; p < model.parameters.size(); ++p) {
      if (p > 0) out += '\t';
      if (row[p] < 0) continue;
      const auto level = static_cast<std::size_t>(row[p]);
      const ModelParameter& parameter = model.parameters[p];
      const bool one_name = parameter.aliases.empty() || parameter.aliases[level].empty();
      const std::size_t turn =
          one_name ? 0 : shown[{p, level}]++ % (1 + parameter.aliases[level].size());
      out += turn == 0 ? parameter.levels[level] : parameter.aliases[level][turn - 1];
    }
    out += '\n';
  }
  return out;
}

Result<LevelRows> parse_rows(const CoverModel& model, std::string_view text,
                             const std::string& source) {
  text = without_mark(text);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && text[first] == '{') {
    return parse_json_rows(model, text, source);
  }
  const LevelNames names(model);
  std::vector<std::uint32_t> columns;
  LevelRows rows;
  std::size_t line_number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(text.size(), end + 1));
    ++line_number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    // An empty line is a row only for a model of one conditional parameter.
    if (line.empty() && model.parameters.size() != 1) continue;
    std::vector<std::string> cells;
    for (const std::string_view cell : cells_of(line)) cells.emplace_back(cell);
    if (columns.empty()) {
      auto found = columns_of(model, cells, source);
      if (!found) return pass_on(found);
      columns = std::move(*found);
      continue;
    }
    auto row = row_of(model, names, columns, cells, fmt::format("{}:{}", source, line_number));
    if (!row) return pass_on(row);
    rows.push_back(std::move(*row));
  }
  if (columns.empty()) {
    return fail(ErrorCode::kBadInput, fmt::format("{}:1: the header row is missing", source));
  }
  return rows;
}

std::optional<double> cost_of(const CoverModel& model, const LevelRows& rows) {
  std::optional<double> sum;
  for (std::size_t p = 0; p < model.parameters.size(); ++p) {
    const std::vector<double>& costs = model.parameters[p].costs;
    if (costs.empty()) continue;
    sum = sum.value_or(0.0);
    for (const std::vector<int>& row : rows) {
      if (row[p] >= 0) *sum += costs[static_cast<std::size_t>(row[p])];
    }
  }
  return sum;
}

}  // namespace greynic::language
