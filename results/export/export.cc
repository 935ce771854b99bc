#include "greynic/results/export.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "greynic/core/units.h"
#include "greynic/files/core_json.h"
#include "greynic/files/json_file.h"
#include "greynic/outlets/influx.h"
#include "greynic/outlets/open_metrics.h"
#include "greynic/results/columns.h"
#include "greynic/statistics/mean.h"

namespace greynic::results {
namespace {

/// Puts `escape` before each of these characters; line breaks become blanks, which no format
/// allows.
std::string escaped(std::string_view text, std::string_view special) {
  std::string out;
  for (const char c : text) {
    if (special.find(c) != std::string_view::npos) out += '\\';
    out += c == '\n' || c == '\r' ? ' ' : c;
  }
  return out;
}

std::string json_lines(std::span<const Observation> observations) {
  std::string out;
  for (const Observation& observation : observations) {
    out += files::json_text(files::to_json(observation));
    out += '\n';
  }
  return out;
}

/// A cell of text. Where a spreadsheet would take it for a formula, a quote keeps it text.
std::string csv_cell(std::string_view text) {
  std::string quoted;
  if (!text.empty() && std::string_view("=+-@\t\r").find(text.front()) != std::string_view::npos) {
    quoted = fmt::format("'{}", text);
    text = quoted;
  }
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string cell = "\"";
  for (const char c : text) {
    if (c == '"') cell += '"';
    cell += c;
  }
  return cell + '"';
}

/// Column names in their order and, for each observation, the cells that it fills.
class CsvTable {
 public:
  explicit CsvTable(std::span<const Observation> observations) {
    const Columns columns = columns_of(observations);
    for (const std::string& factor : columns.factors) add(factor);
    for (const char* fixed : {"repeat", "outcome", "reason"}) add(fixed);
    for (const std::string& measure : columns.measures) {
      add(measure);
      const bool has_error = std::any_of(
          observations.begin(), observations.end(), [&](const Observation& observation) {
            const auto found = observation.measures.find(measure);
            return found != observation.measures.end() && found->second.standard_error;
          });
      if (has_error) add(measure + "_standard_error");
    }
    std::set<std::string> counters;
    for (const Observation& observation : observations) {
      for (const auto& [name, value] : observation.counters_before) counters.insert(name);
      for (const auto& [name, value] : observation.counters_after) counters.insert(name);
    }
    for (const std::string& counter : counters) {
      add("counter." + counter + ".before");
      add("counter." + counter + ".after");
    }
    for (const char* fixed : {"seed", "elapsed_seconds"}) add(fixed);
  }

  [[nodiscard]] std::string header() const {
    std::string line;
    for (const std::string& name : names_) line += (line.empty() ? "" : ",") + csv_cell(name);
    return line + "\n";
  }

  [[nodiscard]] std::string line(const Observation& observation) const {
    std::map<std::string, std::string> cells;
    const auto text_of = [](const FactorValue& level) {
      return std::holds_alternative<std::string>(level) ? csv_cell(to_string(level))
                                                        : to_string(level);
    };
    // Fixed columns and measures come last, so a factor of the same name does not hide them.
    for (const auto& [factor, level] : observation.asked.levels()) cells[factor] = text_of(level);
    for (const auto& [name, value] : observation.counters_before) {
      cells["counter." + name + ".before"] = number_to_string(value);
    }
    for (const auto& [name, value] : observation.counters_after) {
      cells["counter." + name + ".after"] = number_to_string(value);
    }
    for (const auto& [name, measure] : observation.measures) {
      cells[name] = number_to_string(measure.value);
      if (measure.standard_error) {
        cells[name + "_standard_error"] = number_to_string(*measure.standard_error);
      }
    }
    cells["repeat"] = std::to_string(observation.repeat);
    cells["outcome"] = to_string(observation.outcome);
    cells["reason"] = csv_cell(observation.reason);
    cells["seed"] = std::to_string(observation.seed);
    cells["elapsed_seconds"] = number_to_string(observation.elapsed_seconds);
    std::string line;
    bool first = true;
    for (const std::string& name : names_) {
      line += (std::exchange(first, false) ? "" : ",") + cells[name];
    }
    return line + "\n";
  }

 private:
  void add(const std::string& name) {
    if (std::find(names_.begin(), names_.end(), name) == names_.end()) names_.push_back(name);
  }
  std::vector<std::string> names_;
};

std::string csv(std::span<const Observation> observations) {
  const CsvTable table(observations);
  std::string out = table.header();
  for (const Observation& observation : observations) out += table.line(observation);
  return out;
}

std::string markdown(const RunHeader& header, std::span<const Observation> observations) {
  const Columns columns = columns_of(observations);
  std::string out =
      fmt::format("# {}\n\nTarget `{}`, seed {}, {} observations.\n", header.campaign_name,
                  header.target, header.seed, observations.size());
  Configuration common;
  if (!observations.empty()) {
    common = observations.front().asked;
    for (const std::string& factor : columns.varied) common.erase(factor);
  }
  if (!common.empty()) out += fmt::format("Everywhere: {}.\n", escaped(common.name(), "|"));
  out += "Means over the repeats, plus or minus half a 95 % interval.\n\n|";
  for (const std::string& factor : columns.varied)
    out += fmt::format(" {} |", escaped(factor, "|"));
  out += " repeats |";
  for (const std::string& name : columns.measures) out += fmt::format(" {} |", escaped(name, "|"));
  out += "\n|";
  for (std::size_t i = 0; i <= columns.varied.size() + columns.measures.size(); ++i) out += "---|";
  out += "\n";
  for (const Group& group : group_by_configuration(observations)) {
    out += "|";
    for (const std::string& factor : columns.varied) {
      const FactorValue* level = group.configuration->find(factor);
      out += fmt::format(" {} |", level == nullptr ? "" : escaped(to_string(*level), "|"));
    }
    out += fmt::format(" {} |", group.repeats.size());
    for (const std::string& name : columns.measures) {
      const statistics::Mean mean = statistics::mean_of(values_of(group, name));
      if (mean.count == 0) {
        out += fmt::format(" {} |", to_string(group.repeats.front()->outcome));
      } else if (mean.count == 1) {
        out += fmt::format(" {:.5g} |", mean.value);
      } else {
        out += fmt::format(" {:.5g} ± {:.2g} |", mean.value, mean.half_width);
      }
    }
    out += "\n";
  }
  return out;
}

std::string open_metrics(const RunHeader& header, std::span<const Observation> observations) {
  outlets::OpenMetrics metrics;
  for (const std::string& measure : columns_of(observations).measures) {
    for (const Observation& observation : observations) {
      const auto value = observation.value(measure);
      if (!value) continue;
      outlets::Labels labels = {{"campaign", header.campaign_name},
                                {"target", header.target},
                                {"repeat", std::to_string(observation.repeat)}};
      for (const auto& [factor, level] : observation.asked.levels()) {
        labels.emplace_back(factor, to_string(level));
      }
      metrics.gauge("greynic_" + measure, measure + " of one observation.", labels, *value);
    }
  }
  return metrics.text();
}

std::string influx(const RunHeader& header, std::span<const Observation> observations) {
  std::string out;
  for (const Observation& observation : observations) {
    outlets::InfluxPoint point("greynic");
    point.tag("campaign", header.campaign_name)
        .tag("target", header.target)
        .tag("repeat", std::to_string(observation.repeat));
    for (const auto& [factor, level] : observation.asked.levels()) {
      point.tag(factor, to_string(level));
    }
    point.text("outcome", to_string(observation.outcome));
    for (const auto& [name, measure] : observation.measures) point.number(name, measure.value);
    out += point.line();
  }
  return out;
}

}  // namespace

std::optional<ExportFormat> export_format_named(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, ExportFormat>, 5> kNames = {
      {{"jsonl", ExportFormat::kJsonLines},
       {"csv", ExportFormat::kCsv},
       {"markdown", ExportFormat::kMarkdown},
       {"openmetrics", ExportFormat::kOpenMetrics},
       {"influx", ExportFormat::kInflux}}};
  for (const auto& [known, format] : kNames) {
    if (known == name) return format;
  }
  return std::nullopt;
}

std::string export_text(const RunHeader& header, std::span<const Observation> observations,
                        ExportFormat format) {
  switch (format) {
    case ExportFormat::kJsonLines:
      return json_lines(observations);
    case ExportFormat::kCsv:
      return csv(observations);
    case ExportFormat::kMarkdown:
      return markdown(header, observations);
    case ExportFormat::kOpenMetrics:
      return open_metrics(header, observations);
    case ExportFormat::kInflux:
      return influx(header, observations);
  }
  return {};
}

}  // namespace greynic::results
