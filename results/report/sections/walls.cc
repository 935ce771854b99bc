#include <fmt/core.h>

#include <algorithm>

#include "greynic/files/core_json.h"
#include "sections/content.h"

namespace greynic::report {
namespace {

using nlohmann::json;

/// The line that makes a wall, in the metric's unit.
struct Line {
  std::optional<double> baseline;
  std::optional<double> bound;
  bool below = true;  ///< a wall lies below the bound

  [[nodiscard]] bool beyond(double value) const {
    return bound && (below ? value < *bound : value > *bound);
  }
};

Line line_of(const Content& content) {
  Line line;
  for (const results::Group& group : content.groups) {
    const statistics::Mean mean = statistics::mean_of(results::values_of(group, content.metric));
    if (content.is_baseline(*group.configuration) && mean.count > 0) line.baseline = mean.value;
  }
  if (!content.campaign) return line;
  const WallRule& wall = content.campaign->wall;
  line.below = wall.below || wall.below_baseline_by;
  line.bound = wall.below ? wall.below : wall.above;
  const json* explanation = content.document("explanation");
  if (!line.bound && explanation != nullptr && explanation->value("expected", 0.0) > 0.0) {
    line.baseline = explanation->at("expected").get<double>();
  }
  if (!line.bound && line.baseline && *line.baseline > 0.0) {
    if (wall.below_baseline_by) line.bound = *line.baseline * (1 - *wall.below_baseline_by);
    if (wall.above_baseline_by) line.bound = *line.baseline * (1 + *wall.above_baseline_by);
  }
  return line;
}

/// What is known of one configuration. The role tells charts.js the colour and the pattern.
struct Standing {
  std::string role;
  std::string text;
  int cause = -1;
};

Standing wall_standing(const json& cause) {
  if (!cause.is_number_integer()) return {"unexplained", "wall, no cause found"};
  const int index = cause.get<int>();
  return {"cause", fmt::format("wall, cause {}", index + 1), index};
}

/// What the explanation says of each configuration by name: its walls, what it left undecided, and
/// the tests that it ordered.
std::map<std::string, Standing> standings_of(const json& explanation) {
  std::map<std::string, Standing> standings;
  const auto name_of = [](const json& configuration) {
    auto read = files::configuration_from_json(configuration, "explanation", "/configuration");
    return read ? read->name() : std::string();
  };
  int index = 0;
  for (const json& cause : explanation.value("causes", json::array())) {
    for (const json& evidence : cause.value("evidence", json::array())) {
      if (!evidence.contains("configuration")) continue;
      standings[name_of(evidence.at("configuration"))] =
          !evidence.value("decided", false) ? Standing{"undecided", "undecided"}
          : evidence.value("wall", false)   ? wall_standing(index)
                                            : Standing{"clear", "clear"};
    }
    ++index;
  }
  for (const json& one : explanation.value("undecided_configurations", json::array())) {
    standings[name_of(one)] = {"undecided", "undecided"};
  }
  for (const json& wall : explanation.value("walls", json::array())) {
    standings[name_of(wall.at("configuration"))] = wall_standing(wall.value("cause", json()));
  }
  return standings;
}

struct Bar {
  const results::Group* group = nullptr;
  statistics::Mean mean;
  Standing standing;
};

/// Without an explanation nothing is tested, and what lies beyond the line only looks like a wall.
/// With one, what lies beyond the line and is no wall was not shown to be one: it is undecided.
Standing standing_of(const Bar& bar, const Line& line, bool explained,
                     const std::map<std::string, Standing>& standings) {
  const auto found = standings.find(bar.group->configuration->name());
  if (bar.mean.count == 0) {
    const Observation& first = *bar.group->repeats.front();
    const std::string why = fmt::format("{}: {}", to_string(first.outcome), first.reason);
    const bool wall = found != standings.end() && found->second.role != "clear";
    return {"unmeasured", wall ? found->second.text + ", " + why : why};
  }
  if (found != standings.end()) return found->second;
  const bool beyond = line.beyond(bar.mean.value);
  if (explained) {
    return beyond ? Standing{"undecided", "undecided"} : Standing{"clear", "clear"};
  }
  return beyond ? Standing{"beyond", "beyond the line, not tested"}
                : Standing{"untested", "not tested"};
}

/// Best first, what was not measured last; largest first where nobody knows what is better.
std::vector<Bar> bars_of(const Content& content, const Line& line) {
  const json* explanation = content.document("explanation");
  const auto standings =
      explanation != nullptr ? standings_of(*explanation) : std::map<std::string, Standing>();
  std::vector<Bar> bars;
  for (const results::Group& group : content.groups) {
    Bar bar{&group, statistics::mean_of(results::values_of(group, content.metric)), {}};
    bar.standing = standing_of(bar, line, explanation != nullptr, standings);
    bars.push_back(std::move(bar));
  }
  const bool least_first = content.better(content.metric) == Better::kLess;
  std::stable_sort(bars.begin(), bars.end(), [&](const Bar& a, const Bar& b) {
    if ((a.mean.count == 0) != (b.mean.count == 0)) return b.mean.count == 0;
    return least_first ? a.mean.value < b.mean.value : a.mean.value > b.mean.value;
  });
  return bars;
}

json chart_of(const Content& content, const std::vector<Bar>& bars, const Line& line,
              const std::string& order) {
  json rows = json::array();
  json groups = json::array();
  std::vector<double> values;
  for (const Bar& bar : bars) {
    // The tests that the explanation ordered stand with their cause; here are the campaign's own.
    if (content.was_ordered(*bar.group->configuration)) continue;
    const bool measured = bar.mean.count > 0;
    const json group = {{"role", bar.standing.role},
                        {"cause", bar.standing.cause},
                        {"name", measured ? bar.standing.text : "not measured"}};
    auto at = std::find(groups.begin(), groups.end(), group);
    if (at == groups.end()) at = groups.insert(groups.end(), group);
    const auto value = [&](double x) { return measured ? json(x) : json(nullptr); };
    if (measured) values.push_back(bar.mean.value);
    rows.push_back({content.short_name(*bar.group->configuration), value(bar.mean.value),
                    value(bar.mean.value - bar.mean.half_width),
                    value(bar.mean.value + bar.mean.half_width), at - groups.begin(),
                    bar.standing.text});
  }
  return {{"kind", "walls"},
          {"rows", std::move(rows)},
          {"groups", std::move(groups)},
          {"order", order},
          {"axis", axis_of(content.metric, values)},
          {"baseline", line.baseline ? json(*line.baseline) : json(nullptr)},
          {"baseline_name", content.campaign ? "baseline" : "best"},
          {"bound", line.bound ? json(*line.bound) : json(nullptr)}};
}

Table table_of(const Content& content, const std::vector<Bar>& bars, const Line& line) {
  Table table({"configuration", ">" + title_of(content.metric), ">95 % interval", ">repeats",
               ">of the baseline", "verdict", "asked by"});
  for (const Bar& bar : bars) {
    const auto& mean = bar.mean;
    table.add(
        {content.short_name(*bar.group->configuration), mean.count > 0 ? number(mean.value) : "",
         mean.count > 1 ? interval(mean.value - mean.half_width, mean.value + mean.half_width) : "",
         std::to_string(bar.group->repeats.size()),
         line.baseline && *line.baseline > 0 && mean.count > 0
             ? percent(mean.value / *line.baseline)
             : "",
         bar.standing.text,
         content.was_ordered(*bar.group->configuration) ? "the explanation" : "the campaign"});
  }
  return table;
}

}  // namespace

void add_walls(const Content& content, Page& page) {
  if (content.metric.empty()) return;
  const Line line = line_of(content);
  const std::vector<Bar> bars = bars_of(content, line);
  if (bars.front().mean.count == 0) return;
  page.section("walls", "Walls");
  if (const json* explanation = content.document("explanation")) {
    page.paragraph(fmt::format(
        "{} of {} configurations are walls: {}, at {:g} % confidence over all of them. What lies "
        "beyond the line without that confidence is undecided.",
        explanation->value("walls", json::array()).size(),
        explanation->value("configurations", content.groups.size()),
        explanation->value("bound", std::string("the bound")),
        explanation->value("confidence", 0.0) * 100));
  } else {
    page.paragraph(
        "Every configuration by its mean. Which of them are walls has not been tested: "
        "`greynic explain` does that.");
  }
  const auto better = content.better(content.metric);
  const bool directed = better && *better != Better::kNeither;
  if (!directed) {
    page.paragraph(fmt::format(
        "greynic does not know whether more or less of {} is better, so no configuration is called "
        "the best; the largest value comes first.",
        content.metric));
  }
  const std::string order = directed ? "best first" : "largest first";
  page.chart(chart_of(content, bars, line, order),
             fmt::format("{} of each configuration, {}; whiskers are 95 % intervals of the mean.",
                         title_of(content.metric), order));
  page.folded(fmt::format("All {} configurations as a table", bars.size()),
              table_of(content, bars, line).text());
}

}  // namespace greynic::report
