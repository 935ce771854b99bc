#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "greynic/core/units.h"
#include "sections/content.h"

namespace greynic::report {
namespace {

using nlohmann::json;

/// Means of the configurations that have a level, by level.
using Levels = std::map<FactorValue, std::vector<double>>;

void add_effect(const std::string& factor, const std::string& metric, const Levels& levels,
                Page& page, Table& table) {
  const bool numeric = std::all_of(levels.begin(), levels.end(), [](const auto& level) {
    return std::holds_alternative<double>(level.first);
  });
  json means = json::array();
  json dots = json::array();
  std::vector<double> all;
  std::size_t index = 0;
  for (const auto& [level, values] : levels) {
    all.insert(all.end(), values.begin(), values.end());
    const statistics::Mean mean = statistics::mean_of(values);
    const double low = mean.value - mean.half_width;
    const double high = mean.value + mean.half_width;
    means.push_back({to_string(level), mean.value, low, high});
    for (const double value : values) dots.push_back({index, value});
    ++index;
    table.add({metric, factor, to_string(level), std::to_string(values.size()), number(mean.value),
               mean.count > 1 ? interval(low, high) : "",
               number(*std::min_element(values.begin(), values.end())),
               number(*std::max_element(values.begin(), values.end()))});
  }
  const FactorInfo* info = find_factor(factor);
  const std::string unit = info == nullptr || info->unit.empty() || info->unit == "count"
                               ? std::string()
                               : fmt::format(" ({})", info->unit);
  page.chart({{"kind", "effect"},
              {"numeric", numeric},
              {"means", std::move(means)},
              {"dots", std::move(dots)},
              {"axis", axis_of(metric, all)}},
             factor + unit, true);
}

}  // namespace

void add_effects(const Content& content, Page& page) {
  if (content.columns.varied.empty() || content.metric.empty()) return;
  page.section("effects", "Factor effects");
  page.paragraph(
      "Each factor on its own. The line is the mean over all configurations with that level, with "
      "its 95 % interval; a dot is one configuration. The other settings vary too, so dots far "
      "from their line point to interactions. The causes above separate them.");
  Table table({"measure", "factor", "level", ">configurations", ">mean", ">95 % interval", ">least",
               ">most"});
  for (const std::string& metric : {content.metric, content.second_metric}) {
    if (metric.empty()) continue;
    page.raw(fmt::format("<h3>{}</h3>\n", escape_markup(title_of(metric))));
    page.begin_grid();
    for (const std::string& factor : content.columns.varied) {
      Levels levels;
      for (const results::Group& group : content.groups) {
        const FactorValue* level = group.configuration->find(factor);
        const statistics::Mean mean = statistics::mean_of(results::values_of(group, metric));
        if (level != nullptr && mean.count > 0) levels[*level].push_back(mean.value);
      }
      if (levels.size() > 1) add_effect(factor, metric, levels, page, table);
    }
    page.end_grid();
  }
  page.folded("All effects as a table", table.text());
}

}  // namespace greynic::report
