#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "sections/content.h"

namespace greynic::report {
namespace {

using nlohmann::json;

/// Latency of all repeats of one configuration.
struct Tail {
  const Configuration* configuration = nullptr;
  LatencyHistogram samples;

  [[nodiscard]] double us(double quantile) const { return samples.quantile_ns(quantile) * 1e-3; }
  [[nodiscard]] json points() const {
    constexpr double kQuantiles[] = {0.0,  0.1,  0.25,  0.5,   0.75,   0.9,   0.95,
                                     0.98, 0.99, 0.995, 0.999, 0.9995, 0.9999};
    json points = json::array();
    for (const double q : kQuantiles) {
      // A quantile that fewer than one sample stands for is not known.
      if ((1 - q) * static_cast<double>(samples.count()) >= 1) points.push_back({q, us(q)});
    }
    return points;
  }
};

/// The baseline, and the four with the longest tails: more lines cannot be told apart.
json series_of(const Content& content, std::vector<Tail> tails) {
  std::stable_sort(tails.begin(), tails.end(),
                   [](const Tail& a, const Tail& b) { return a.us(0.99) > b.us(0.99); });
  constexpr std::array kNames = {"longest tail", "second", "third", "fourth"};
  json series = json::array();
  json baseline;
  for (const Tail& tail : tails) {
    json line = {{"settings", content.short_name(*tail.configuration)}, {"points", tail.points()}};
    if (content.is_baseline(*tail.configuration)) {
      line["name"] = "baseline";
      baseline = std::move(line);
    } else if (series.size() < kNames.size()) {
      line["name"] = kNames[series.size()];
      series.push_back(std::move(line));
    }
  }
  if (!baseline.is_null()) series.push_back(std::move(baseline));
  return series;
}

}  // namespace

void add_latency(const Content& content, Page& page) {
  Table table({"configuration", ">samples", ">p50 (µs)", ">p90 (µs)", ">p99 (µs)", ">p99.9 (µs)",
               ">p99.99 (µs)", ">largest (µs)"});
  std::vector<Tail> tails;
  for (const results::Group& group : content.groups) {
    Tail tail{group.configuration, {}};
    for (const Observation* observation : group.repeats) tail.samples.merge(observation->latency);
    if (tail.samples.empty()) continue;
    std::vector<std::string> cells = {content.short_name(*group.configuration),
                                      std::to_string(tail.samples.count())};
    for (const double q : {0.5, 0.9, 0.99, 0.999, 0.9999}) cells.push_back(number(tail.us(q)));
    cells.push_back(number(static_cast<double>(tail.samples.max_ns()) * 1e-3));
    table.add(std::move(cells));
    tails.push_back(std::move(tail));
  }
  if (tails.empty()) return;
  page.section("latency", "Latency");
  std::vector<double> range;
  for (const Tail& tail : tails) {
    for (const double q : {0.0, 0.9999}) range.push_back(tail.us(q));
  }
  page.chart({{"kind", "quantiles"},
              {"series", series_of(content, std::move(tails))},
              {"axis", axis_of(std::string(measure::kLatencyP50), range)}},
             "Latency by percentile, on a scale that stretches the tail: the baseline and the "
             "configurations with the longest tails.");
  page.folded(fmt::format("Percentiles of {} configurations", table.size()), table.text());
}

}  // namespace greynic::report
