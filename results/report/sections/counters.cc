#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "sections/content.h"

namespace greynic::report {
namespace {

using nlohmann::json;

constexpr std::size_t kMostCharts = 8;

/// How a counter moved between two samples.
struct RateOf {
  double ms = 0, per_second = 0;
};

std::vector<RateOf> rates_of(const std::vector<CounterSample>& samples) {
  std::vector<RateOf> rates;
  for (std::size_t i = 1; i < samples.size(); ++i) {
    const auto span = static_cast<double>(samples[i].time_ns - samples[i - 1].time_ns);
    if (span <= 0) continue;
    rates.push_back({static_cast<double>(samples[i].time_ns) * 1e-6,
                     (samples[i].value - samples[i - 1].value) / span * 1e9});
  }
  return rates;
}

/// A configuration whose counters are drawn.
struct Shown {
  std::string name, settings;
  const Observation* observation = nullptr;
};

/// The baseline, and the configuration that is worst by the run's metric.
std::vector<Shown> shown_of(const Content& content) {
  const Observation* baseline = nullptr;
  const Observation* worst = nullptr;
  double worst_value = 0;
  const bool less_is_better = content.better(content.metric) == Better::kLess;
  for (const Observation& one : content.observations) {
    if (one.counter_samples.empty()) continue;
    if (content.is_baseline(one.asked)) {
      if (baseline == nullptr) baseline = &one;
      continue;
    }
    const auto value = one.value(content.metric);
    if (!value) continue;
    if (worst != nullptr && (less_is_better ? *value <= worst_value : *value >= worst_value)) {
      continue;
    }
    worst = &one;
    worst_value = *value;
  }
  std::vector<Shown> shown;
  if (baseline != nullptr) shown.push_back({"baseline", "", baseline});
  if (worst != nullptr) shown.push_back({"worst", "", worst});
  for (Shown& one : shown) one.settings = content.short_name(one.observation->asked);
  return shown;
}

bool tells_trouble(const std::string& name) {
  for (const char* part : {"pause", "retr", "err", "drop", "discard", "nak", "timeout", "congest",
                           "out_of", "not_ready", "cnp", "ecn", "miss"}) {
    if (name.find(part) != std::string::npos) return true;
  }
  return false;
}

/// Traffic first, then what tells of trouble, then the others.
std::vector<std::string> names_of(const std::vector<Shown>& shown) {
  std::set<std::string> all;
  for (const Shown& one : shown) {
    for (const auto& [name, samples] : one.observation->counter_samples) all.insert(name);
  }
  std::vector<std::string> names(all.begin(), all.end());
  const auto rank = [](const std::string& name) {
    const bool traffic =
        name.find("bytes") != std::string::npos || name.find("packets") != std::string::npos;
    return tells_trouble(name) ? 1 : traffic ? 0 : 2;
  };
  std::stable_sort(names.begin(), names.end(),
                   [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
  return names;
}

}  // namespace

void add_counters(const Content& content, Page& page) {
  const std::vector<Shown> shown = shown_of(content);
  if (shown.empty()) return;
  page.section("counters", "Counters while traffic ran");
  for (const Shown& one : shown) {
    page.paragraph(fmt::format("{}: {}", one.name, one.settings));
  }
  Table table(
      {"counter", "configuration", ">samples", ">mean (1/s)", ">least (1/s)", ">greatest (1/s)"});
  std::size_t charts = 0;
  page.begin_grid();
  for (const std::string& name : names_of(shown)) {
    json series = json::array();
    for (const Shown& one : shown) {
      const auto samples = one.observation->counter_samples.find(name);
      if (samples == one.observation->counter_samples.end()) continue;
      json points = json::array();
      double sum = 0, least = 0, greatest = 0;
      const auto rates = rates_of(samples->second);
      for (const RateOf& rate : rates) {
        points.push_back({rate.ms, rate.per_second});
        least = points.size() == 1 ? rate.per_second : std::min(least, rate.per_second);
        greatest = points.size() == 1 ? rate.per_second : std::max(greatest, rate.per_second);
        sum += rate.per_second;
      }
      if (rates.empty()) continue;
      table.add({name, one.name, std::to_string(samples->second.size()),
                 number(sum / static_cast<double>(rates.size())), number(least), number(greatest)});
      series.push_back({{"name", one.name}, {"points", std::move(points)}});
    }
    if (series.empty() || charts++ >= kMostCharts) continue;
    page.chart({{"kind", "rates"},
                {"name", "per second"},
                {"x", "ms since the traffic began"},
                {"series", std::move(series)}},
               name + " a second", true);
  }
  page.end_grid();
  page.folded(fmt::format("{} counters that moved", table.size()), table.text());
}

}  // namespace greynic::report
