#include "greynic/monitor/snapshot.h"

#include <fmt/core.h>
#include <fnmatch.h>

#include <algorithm>
#include <numeric>
#include <tuple>

#include "greynic/series/query.h"
#include "greynic_zero.h"

namespace greynic::monitor {
namespace {

bool fits(const std::string& pattern, const std::string& text) {
  return ::fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
}

auto place_of(const ShownSeries& one) {
  return std::tie(one.name, one.host, one.program, one.labels);
}

void add_series(std::vector<ShownSeries>& into, const series::Group& group,
                const series::Field& field, std::int64_t time_ns,
                std::span<const std::uint64_t> words) {
  ShownSeries made{group.host, group.source, field.name, field.labels,
                   field.unit, field.help,   field.kind};
  made.time_ns = time_ns;
  if (field.kind == ZERO_HISTOGRAM) {
    made.value =
        static_cast<double>(std::accumulate(words.begin() + 1, words.end(), std::uint64_t{0}));
    made.p50 = series::quantile_of(field, words, 0.5);
    made.p99 = series::quantile_of(field, words, 0.99);
    into.push_back(std::move(made));
    return;
  }
  for (std::uint32_t i = 0; i < field.count; ++i) {
    ShownSeries one = made;
    if (field.count > 1) {
      one.labels += fmt::format("{}index=\"{}\"", one.labels.empty() ? "" : ",", i);
    }
    one.value = series::value_of(field, words[i]);
    into.push_back(std::move(one));
  }
}

}  // namespace

std::string ShownSeries::id() const {
  return labels.empty() ? fmt::format("{} {}", host, name)
                        : fmt::format("{} {}{{{}}}", host, name, labels);
}

Snapshot snapshot_of(const Collector& collector, const SnapshotFilter& filter) {
  Snapshot snapshot;
  collector.latest(
      [&](const series::Group& group, std::int64_t time_ns, std::span<const std::uint64_t> values) {
        std::size_t column = 0;
        const bool of_host = fits(filter.host, group.host);
        for (const series::Field& field : group.fields) {
          if (of_host && fits(filter.metric, field.name)) {
            add_series(snapshot.series, group, field, time_ns, values.subspan(column, field.count));
          }
          column += field.count;
        }
      });
  std::sort(snapshot.series.begin(), snapshot.series.end(),
            [](const auto& a, const auto& b) { return place_of(a) < place_of(b); });
  if (snapshot.series.size() > filter.most) {
    snapshot.left_out = snapshot.series.size() - filter.most;
    snapshot.series.resize(filter.most);
  }
  return snapshot;
}

}  // namespace greynic::monitor
