#include <fmt/core.h>

#include <algorithm>

#include "greynic/core/units.h"
#include "greynic/files/core_json.h"
#include "greynic/statistics/mean.h"
#include "sections/content.h"

namespace greynic::report {
namespace {

using nlohmann::json;

/// The wall bound in the metric's unit; empty when there is none or the baseline is not known.
std::optional<double> bound_of(const Content& content, double baseline) {
  if (!content.campaign) return std::nullopt;
  const WallRule& wall = content.campaign->wall;
  if (wall.below) return wall.below;
  if (wall.above) return wall.above;
  if (baseline <= 0.0) return std::nullopt;
  if (wall.below_baseline_by) return baseline * (1 - *wall.below_baseline_by);
  if (wall.above_baseline_by) return baseline * (1 + *wall.above_baseline_by);
  return std::nullopt;
}

/// What the explanation says of each wall, by configuration.
std::map<std::string, json> walls_of(const Content& content) {
  std::map<std::string, json> walls;
  if (const json* explanation = content.document("explanation")) {
    for (const json& wall : explanation->value("walls", json::array())) {
      auto configuration = files::configuration_from_json(wall.at("configuration"), "explanation",
                                                          "/walls/configuration");
      if (configuration) walls[configuration->name()] = wall;
    }
  }
  return walls;
}

struct Bar {
  const results::Group* group = nullptr;
  statistics::Mean mean;
  int cause = -2;  ///< -2: no wall, -1: a wall without a cause, else index of the cause
};

}  // namespace

void add_walls(const Content& content, Page& page) {
  if (content.metric.empty()) return;
  const auto walls = walls_of(content);
  const bool explained = content.document("explanation") != nullptr;
  std::vector<Bar> bars;
  double baseline = 0.0;
  for (const results::Group& group : content.groups) {
    Bar bar{.group = &group,
            .mean = statistics::mean_of(results::values_of(group, content.metric))};
    if (bar.mean.count == 0) continue;
    if (*group.configuration == content.baseline) baseline = bar.mean.value;
    const auto found = walls.find(group.configuration->name());
    if (found != walls.end()) {
      const json cause = found->second.value("cause", json(nullptr));
      bar.cause = cause.is_number_integer() ? cause.get<int>() : -1;
    }
    bars.push_back(bar);
  }
  if (bars.empty()) return;
  std::stable_sort(bars.begin(), bars.end(),
                   [](const Bar& a, const Bar& b) { return a.mean.value > b.mean.value; });
  const auto bound = bound_of(content, baseline);

  page.section("walls", "Walls");
  if (explained) {
    const json& explanation = *content.document("explanation");
    page.paragraph(
        fmt::format("{} of {} configurations are walls: {}, at {:g} % confidence over all of them.",
                    walls.size(), explanation.value("configurations", content.groups.size()),
                    explanation.value("bound", std::string("the bound")),
                    explanation.value("confidence", 0.0) * 100));
  } else {
    page.paragraph(
        "Every configuration by its mean. Which of them are walls has not been tested: "
        "`greynic explain` does that.");
  }
  json rows = json::array();
  Table table({"configuration", ">" + title_of(content.metric), ">95 % interval", ">repeats",
               ">of the baseline", "verdict"});
  for (const Bar& bar : bars) {
    const std::string name = content.short_name(*bar.group->configuration);
    const double low = bar.mean.value - bar.mean.half_width;
    const double high = bar.mean.value + bar.mean.half_width;
    rows.push_back({name, bar.mean.value, low, high, bar.cause});
    const std::string verdict = bar.cause == -2   ? (explained ? "clear" : "")
                                : bar.cause == -1 ? "wall, no cause found"
                                                  : fmt::format("wall, cause {}", bar.cause + 1);
    table.add({name, number(bar.mean.value), bar.mean.count > 1 ? interval(low, high) : "",
               std::to_string(bar.mean.count),
               baseline > 0 ? percent(bar.mean.value / baseline) : "", verdict});
  }
  page.chart({{"kind", "walls"},
              {"rows", std::move(rows)},
              {"judged", explained},
              {"axis", title_of(content.metric)},
              {"baseline", baseline > 0 ? json(baseline) : json(nullptr)},
              {"bound", bound ? json(*bound) : json(nullptr)}},
             fmt::format("{} of each configuration, best first; whiskers are 95 % intervals of the "
                         "mean. Hover for the settings.",
                         title_of(content.metric)));
  page.folded(fmt::format("All {} configurations as a table", table.size()), table.text());
}

void add_causes(const Content& content, Page& page) {
  const json* explanation = content.document("explanation");
  if (explanation == nullptr || explanation->value("causes", json::array()).empty()) return;
  page.section("causes", "Causes");
  page.paragraph(fmt::format(
      "The smallest sets of settings that make the walls appear. Read from {} observations, {} of "
      "them ordered for this question.",
      explanation->value("tests_read", 0) + explanation->value("tests_ordered", 0),
      explanation->value("tests_ordered", 0)));
  int index = 0;
  json rows = json::array();
  for (const json& cause : explanation->at("causes")) {
    ++index;
    const json severity = cause.value("severity", json::object());
    const bool tested = cause.value("by_experiment", false);
    page.raw(fmt::format(
        "<div class=\"cause c{}\"><h3><span>{} {}</span> {}</h3><p>Leaves {} {} of the expected "
        "{}, "
        "and explains {} walls. {} Confidence {:.2f} %.</p>\n",
        (index - 1) % 6, tested ? "Cause" : "Hypothesis", index,
        escape_markup(cause.at("text").get<std::string>()), percent(severity.value("value", 0.0)),
        fmt::format("({} to {})", percent(severity.value("low", 0.0)),
                    percent(severity.value("high", 0.0))),
        escape_markup(explanation->value("metric", content.metric)),
        cause.value("walls_explained", 0),
        tested ? "Every term was removed on its own, and the wall went."
               : "Read from the run alone; no term was removed to test it.",
        cause.value("confidence", 0.0) * 100));
    Table table({"tested", "result", ">of expected", ">interval", ">tests", ">p"});
    for (const json& evidence : cause.value("evidence", json::array())) {
      const json ratio = evidence.value("ratio", json::object());
      table.add({evidence.value("role", std::string()),
                 !evidence.value("decided", false) ? "undecided"
                 : evidence.value("wall", false)   ? "wall"
                                                   : "clear",
                 percent(ratio.value("value", 0.0)),
                 fmt::format("[{}, {}]", percent(ratio.value("low", 0.0)),
                             percent(ratio.value("high", 0.0))),
                 std::to_string(evidence.value("tests", 0)),
                 fmt::format("{:.2g}", evidence.value("p_value", 1.0))});
      rows.push_back({fmt::format("{} · {}", index, evidence.value("role", std::string())),
                      ratio.value("value", 0.0), ratio.value("low", 0.0), ratio.value("high", 0.0),
                      evidence.value("wall", false)});
    }
    if (!table.empty()) page.table(table);
    page.raw("</div>\n");
  }
  if (!rows.empty()) {
    page.chart({{"kind", "evidence"},
                {"rows", std::move(rows)},
                {"axis", "share of the expected " + explanation->value("metric", content.metric)}},
               "The evidence: each test of a cause, as a share of what was expected, with its "
               "interval.");
  }
  for (const json& note : explanation->value("notes", json::array())) {
    page.paragraph("Note: " + note.get<std::string>());
  }
}

}  // namespace greynic::report
