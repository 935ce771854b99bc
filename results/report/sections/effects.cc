#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>

#include "greynic/core/units.h"
#include "greynic/statistics/mean.h"
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
  std::size_t index = 0;
  for (const auto& [level, values] : levels) {
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
              {"axis", title_of(metric)},
              {"name", factor + unit}},
             factor + unit, true);
}

}  // namespace

void add_effects(const Content& content, Page& page) {
  if (content.columns.varied.empty() || content.metric.empty()) return;
  page.section("effects", "Factor effects");
  page.paragraph(
      "Each factor on its own: the line is the mean over all configurations with that level, with "
      "its "
      "95 % interval; a dot is one configuration. Other settings vary along, so dots far from "
      "their line point to interactions, which the causes above take apart.");
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

void add_latency(const Content& content, Page& page) {
  json series = json::array();
  Table table({"configuration", ">samples", ">p50 (µs)", ">p90 (µs)", ">p99 (µs)", ">p99.9 (µs)",
               ">p99.99 (µs)", ">largest (µs)"});
  constexpr double kQuantiles[] = {0.0,  0.1,  0.25,  0.5,   0.75,   0.9,   0.95,
                                   0.98, 0.99, 0.995, 0.999, 0.9995, 0.9999};
  std::vector<std::pair<double, json>> by_tail;
  for (const results::Group& group : content.groups) {
    LatencyHistogram all;
    for (const Observation* observation : group.repeats) all.merge(observation->latency);
    if (all.empty()) continue;
    const auto us = [&](double q) { return all.quantile_ns(q) * 1e-3; };
    const std::string name = content.short_name(*group.configuration);
    table.add({name, std::to_string(all.count()), number(us(0.5)), number(us(0.9)),
               number(us(0.99)), number(us(0.999)), number(us(0.9999)),
               number(static_cast<double>(all.max_ns()) * 1e-3)});
    json points = json::array();
    for (const double q : kQuantiles) {
      // A quantile that fewer than one sample stands for is not known.
      if ((1 - q) * static_cast<double>(all.count()) >= 1) points.push_back({q, us(q)});
    }
    const bool is_baseline = *group.configuration == content.baseline;
    by_tail.emplace_back(is_baseline ? -1.0 : us(0.99),
                         json{{"settings", name}, {"points", points}});
  }
  if (by_tail.empty()) return;
  // The baseline, and the four with the longest tails: more lines cannot be told apart.
  std::stable_sort(by_tail.begin(), by_tail.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  constexpr std::array kNames = {"longest tail", "second", "third", "fourth"};
  for (std::size_t i = 0; i < by_tail.size(); ++i) {
    const bool is_baseline = by_tail[i].first < 0;
    if (i >= kNames.size() && !is_baseline) continue;
    by_tail[i].second["name"] = is_baseline ? "baseline" : kNames[i];
    series.push_back(std::move(by_tail[i].second));
  }
  page.section("latency", "Latency");
  page.chart({{"kind", "quantiles"}, {"series", std::move(series)}, {"axis", "latency (µs)"}},
             "Latency by percentile, on a scale that stretches the tail: the baseline and the "
             "configurations with the longest tails.");
  page.folded(fmt::format("Percentiles of {} configurations", table.size()), table.text());
}

}  // namespace greynic::report
