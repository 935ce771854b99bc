#include <fmt/core.h>
#include <fmt/ranges.h>

#include "greynic/files/json_file.h"
#include "sections/content.h"

namespace greynic::report {
namespace {

using nlohmann::json;

/// "2.5 [2.4, 2.6]"; empty where nothing was measured.
std::string with_interval(const json& estimate) {
  if (!estimate.is_object()) return "";
  return fmt::format("{} {}", number(estimate.at("value").get<double>()),
                     interval(estimate.at("low").get<double>(), estimate.at("high").get<double>()));
}

std::string moved_alone(const json& moved) {
  if (!moved.is_object()) return "";
  return fmt::format("{}: {}", files::json_text(moved.at("level")),
                     with_interval(moved.at("ratio")));
}

void add_path(const json& path, const std::string& metric, Page& page) {
  page.section("critical-path", "Critical path");
  if (path.at("symptom").is_string()) {
    page.paragraph(fmt::format("Symptom {}: {}.", path.at("symptom").get<std::string>(),
                               path.at("symptom_text").get<std::string>()));
  }
  if (path.at("stages").empty()) return;
  page.paragraph(
      "Each setting of the worst wall acts at one stage between host and virtual switch. A stage "
      "is "
      "healed when its settings alone go back to the baseline's levels. One that brings most of "
      "the "
      "way back holds the wall. Counters are for each packet.");
  Table table({"stage", "settings", ">healed, times the wall", ">alone, of the baseline",
               ">with all before it, of the baseline", "holds the wall", "counters that rose"});
  json nodes = json::array();
  for (const json& stage : path.at("stages")) {
    std::vector<std::string> counters;
    for (const json& one : stage.at("counters")) {
      counters.push_back(fmt::format("{} {} -> {}", one.at("name").get<std::string>(),
                                     number(one.at("baseline").get<double>()),
                                     number(one.at("wall").get<double>())));
    }
    const bool holds = stage.at("holds").get<bool>();
    const std::string name = stage.at("stage").get<std::string>();
    const auto settings = stage.at("settings").get<std::vector<std::string>>();
    table.add({name, fmt::format("{}", fmt::join(settings, ", ")),
               with_interval(stage.at("healed")), with_interval(stage.at("alone")),
               with_interval(stage.at("up_to_here")), holds ? "yes" : "",
               fmt::format("{}", fmt::join(counters, "; "))});
    const json& reached = stage.at("up_to_here");
    nodes.push_back({name, holds, reached.is_object() ? reached.at("value") : json(nullptr),
                     !counters.empty(), settings});
  }
  page.chart({{"kind", "path"}, {"nodes", std::move(nodes)}},
             fmt::format("The path from host to virtual switch. At an edge: the share of the "
                         "baseline's {} that is left with everything up to there as in the wall. "
                         "Filled: the stage holds the wall. Thick border: a counter of it rose.",
                         metric));
  page.folded("The path as a table", table.text());
}

void add_sensitivity(const json& sensitivity, const std::string& metric, Page& page) {
  page.section("sensitivity", "Sensitivity around the worst wall");
  page.paragraph(fmt::format(
      "How strongly each setting matters, whatever the causes are. Healed, weaker, stronger: that "
      "setting alone moves, and {} is told as times the wall's. Mean: the natural logarithm of "
      "what "
      "the wall's level does to it on {} paths. First and total: the share of the variance that "
      "the "
      "setting explains alone, and that it takes part in, over {} rows (Sobol); a total above the "
      "first means that it acts together with others. Noise of one test: {}.",
      metric, sensitivity.at("paths").get<int>(), sensitivity.at("rows").get<int>(),
      percent(sensitivity.at("noise").get<double>())));
  Table table({"setting", ">healed", ">weaker", ">stronger", ">mean", ">mean of size", ">spread",
               ">first", ">total"});
  json rows = json::array();
  for (const json& one : sensitivity.at("settings")) {
    const std::string factor = one.at("factor").get<std::string>();
    table.add({factor, moved_alone(one.at("healed")), moved_alone(one.at("weaker")),
               moved_alone(one.at("stronger")), with_interval(one.at("mean")),
               with_interval(one.at("mean_of_size")), number(one.at("spread").get<double>()),
               with_interval(one.at("first")), with_interval(one.at("total"))});
    if (!one.at("total").is_object()) continue;
    const auto triple = [](const json& index) {
      return json::array({index.at("value"), index.at("low"), index.at("high")});
    };
    rows.push_back({factor, triple(one.at("first")), triple(one.at("total"))});
  }
  if (!rows.empty()) {
    page.chart({{"kind", "sensitivity"}, {"rows", std::move(rows)}},
               "Sobol's indices with their intervals: the share of the variance that a setting "
               "explains alone (first) and that it takes part in (total).");
  }
  page.folded("All settings as a table", table.text());
}

}  // namespace

void add_around(const Content& content, Page& page) {
  const json* explanation = content.document("explanation");
  if (explanation == nullptr) return;
  const std::string metric = explanation->value("metric", content.metric);
  if (explanation->contains("critical_path")) {
    add_path(explanation->at("critical_path"), metric, page);
  }
  if (explanation->contains("sensitivity")) {
    add_sensitivity(explanation->at("sensitivity"), metric, page);
  }
}

}  // namespace greynic::report
