#include "greynic/monitor_page/monitor_page.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>

#include "greynic/core/embedded.h"
#include "greynic/files/json_file.h"
#include "greynic/monitor/snapshot.h"
#include "greynic/web/page.h"

namespace greynic::monitor_page {

std::span<const EmbeddedFile> files();

namespace {

constexpr std::size_t kMostSeries = 500;
constexpr std::size_t kMostMapped = 1 << 20;

nlohmann::json hosts_of(const monitor::Collector& collector) {
  nlohmann::json hosts = nlohmann::json::array();
  for (const auto& host : collector.hosts()) {
    hosts.push_back({{"name", host.name},
                     {"up", host.up},
                     {"reason", host.up ? "" : host.reason},
                     {"interval_ns", host.interval.count()},
                     {"looked_ns", host.looked_ns}});
  }
  return hosts;
}

/// One number for each host: the sum over all series of that name; of gauges the mean.
nlohmann::json map_of(const monitor::Collector& collector, const std::string& metric) {
  struct Sum {
    double value = 0;
    std::size_t count = 0;
  };
  std::map<std::string, Sum> sums;
  bool gauge = false;
  std::string unit;
  for (const auto& one : monitor::snapshot_of(collector, {"*", metric, kMostMapped}).series) {
    Sum& sum = sums[one.host];
    sum.value += one.value;
    ++sum.count;
    gauge = one.kind == 2;
    unit = one.unit;
  }
  nlohmann::json values = nlohmann::json::object();
  for (const auto& [host, sum] : sums) {
    values[host] = gauge ? sum.value / static_cast<double>(sum.count) : sum.value;
  }
  return {{"metric", metric}, {"rate", !gauge}, {"unit", unit}, {"values", values}};
}

nlohmann::json series_of(const monitor::Snapshot& snapshot) {
  nlohmann::json series = nlohmann::json::array();
  for (const auto& one : snapshot.series) {
    nlohmann::json made = {{"id", one.id()},         {"host", one.host},  {"name", one.name},
                           {"kind", one.kind},       {"unit", one.unit},  {"help", one.help},
                           {"time_ns", one.time_ns}, {"value", one.value}};
    if (one.kind == 3) {
      made["p50"] = one.p50;
      made["p99"] = one.p99;
    }
    series.push_back(std::move(made));
  }
  return series;
}

std::string filter_value(const http::Request& request, std::string_view name) {
  const std::string_view value = request.value(name);
  return value.empty() ? "*" : std::string(value.substr(0, 200));
}

http::Answer live(const monitor::Collector& collector, const http::Request& request) {
  const auto snapshot = monitor::snapshot_of(
      collector, {filter_value(request, "host"), filter_value(request, "metric"), kMostSeries});
  const auto counts = collector.counts();
  nlohmann::json document = {{"hosts", hosts_of(collector)},
                             {"counts",
                              {{"looks", counts.looks},
                               {"samples", counts.samples},
                               {"lost", counts.lost},
                               {"late", counts.late_looks},
                               {"gaps", counts.gaps}}},
                             {"series", series_of(snapshot)},
                             {"left_out", snapshot.left_out}};
  const std::string_view metric = request.value("map");
  if (!metric.empty()) document["map"] = map_of(collector, std::string(metric.substr(0, 200)));
  return {files::json_text(document)};
}

}  // namespace

void serve(http::Server& server, const monitor::Collector& collector) {
  server.files(web::files());
  server.files(monitor_page::files());
  server.get("/live",
             [&collector](const http::Request& request) { return live(collector, request); });
}

}  // namespace greynic::monitor_page
