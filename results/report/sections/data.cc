#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "sections/content.h"

namespace greynic::report {
namespace {

/// More rows make the page slow and tell nobody anything; the export has them all.
constexpr std::size_t kMostRows = 5000;

/// Least, median and most of each measure.
Table measures_of(const Content& content) {
  Table measures({"measure", ">observations", ">least", ">median", ">most"});
  for (const std::string& name : content.columns.measures) {
    std::vector<double> values;
    for (const Observation& observation : content.observations) {
      if (const auto value = observation.value(name)) values.push_back(*value);
    }
    if (values.empty()) continue;
    std::sort(values.begin(), values.end());
    measures.add({name, std::to_string(values.size()), number(values.front()),
                  number(values[values.size() / 2]), number(values.back())});
  }
  return measures;
}

/// What was not measured, and why.
Table failures_of(const Content& content) {
  std::map<std::pair<std::string, std::string>, std::size_t> outcomes;
  for (const Observation& observation : content.observations) {
    if (observation.outcome == Outcome::kMeasured) continue;
    ++outcomes[{std::string(to_string(observation.outcome)), observation.reason}];
  }
  Table table({"not measured", "reason", ">observations"});
  for (const auto& [what, count] : outcomes) {
    table.add({what.first, what.second, std::to_string(count)});
  }
  return table;
}

Table observations_of(const Content& content) {
  std::vector<std::string> names = content.columns.varied;
  for (const char* fixed : {">repeat", "outcome"}) names.emplace_back(fixed);
  for (const std::string& name : content.columns.measures) names.push_back(">" + name);
  Table table(names);
  for (const Observation& observation : content.observations) {
    if (table.size() == kMostRows) break;
    std::vector<std::string> cells;
    for (const std::string& factor : content.columns.varied) {
      const FactorValue* level = observation.asked.find(factor);
      cells.push_back(level == nullptr ? "" : to_string(*level));
    }
    cells.push_back(std::to_string(observation.repeat));
    cells.emplace_back(to_string(observation.outcome));
    for (const std::string& name : content.columns.measures) {
      const auto value = observation.value(name);
      cells.push_back(value ? number(*value) : "");
    }
    table.add(std::move(cells));
  }
  return table;
}

}  // namespace

void add_data(const Content& content, Page& page) {
  page.section("data", "Data");
  page.table(measures_of(content));
  if (const Table failures = failures_of(content); !failures.empty()) page.table(failures);
  page.folded(content.observations.size() > kMostRows
                  ? fmt::format("The first {} of {} observations; `greynic export` has all",
                                kMostRows, content.observations.size())
                  : fmt::format("All {} observations", content.observations.size()),
              observations_of(content).text());
}

}  // namespace greynic::report
