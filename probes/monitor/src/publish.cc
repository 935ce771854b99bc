#include "greynic/monitor/publish.h"

#include <map>
#include <numeric>

#include "greynic/outlets/influx.h"
#include "greynic/series/query.h"
#include "greynic_zero.h"

namespace greynic::monitor {
namespace {

/// The label list of a series, `key="value",...`, which was checked when it was read.
outlets::Labels labels_of(std::string_view text) {
  outlets::Labels labels;
  while (!text.empty()) {
    const std::size_t equals = text.find("=\"");
    if (equals == std::string_view::npos) break;
    const std::string key(text.substr(0, equals));
    std::string value;
    std::size_t at = equals + 2;
    for (; at < text.size() && text[at] != '"'; ++at) {
      if (text[at] != '\\' || at + 1 == text.size()) {
        value += text[at];
        continue;
      }
      ++at;
      value += text[at] == 'n' ? '\n' : text[at];
    }
    labels.emplace_back(key, std::move(value));
    text.remove_prefix(std::min(text.size(), at + 2));  // the quote and the comma
  }
  return labels;
}

/// A divisor where there is one: 3 ns are 3e-09 s then, to the last digit.
struct BaseUnit {
  std::string_view name;
  double times = 1;
  double per = 1;
  [[nodiscard]] double of(double value) const { return value * times / per; }
};

BaseUnit base_unit_of(const std::string& unit) {
  static const std::map<std::string_view, BaseUnit> kUnits = {
      {"ns", {"seconds", 1, 1e9}}, {"us", {"seconds", 1, 1e6}}, {"ms", {"seconds", 1, 1e3}},
      {"s", {"seconds", 1}},       {"B", {"bytes", 1}},         {"KiB", {"bytes", 1024}},
      {"MiB", {"bytes", 1048576}}, {"ratio", {"ratio", 1}},     {"%", {"ratio", 1, 100}}};
  const auto found = kUnits.find(unit);
  return found == kUnits.end() ? BaseUnit{} : found->second;
}

/// One series on its way out.
struct Out {
  const char* kind = "gauge";
  std::string name, help;
  outlets::Labels labels;
  double value = 0;  ///< of a histogram: the sum
  std::map<double, std::uint64_t> buckets;
  std::int64_t time_ns = 0;
};

void merge(Out& to, const series::Field& field, std::span<const std::uint64_t> words,
           const BaseUnit& unit, std::int64_t time_ns) {
  if (field.kind == ZERO_HISTOGRAM) {
    to.kind = "histogram";
    to.value += unit.of(static_cast<double>(words[0]));
    for (std::size_t i = 1; i < words.size(); ++i) {
      if (words[i] == 0) continue;
      const bool is_last = i + 1 == words.size();
      const double most = is_last ? 18446744073709551615.0
                                  : static_cast<double>(zero_bucket_begin(i, field.parameter) - 1);
      to.buckets[unit.of(most)] += words[i];
    }
    return;
  }
  const double value = unit.of(series::value_of(field, words[0]));
  if (field.kind == ZERO_COUNTER) {
    to.kind = "counter";
    to.value += value;
  } else if (time_ns >= to.time_ns) {
    to.value = value;
    to.time_ns = time_ns;
  }
}

void put(outlets::OpenMetrics& into, const Out& one) {
  if (one.kind == std::string_view("counter")) {
    into.counter(one.name, one.help, one.labels, one.value);
  } else if (one.kind == std::string_view("gauge")) {
    into.gauge(one.name, one.help, one.labels, one.value);
  } else {
    std::vector<outlets::OpenMetrics::Bucket> buckets;
    std::uint64_t count = 0;
    for (const auto& [bound, samples] : one.buckets) buckets.push_back({bound, count += samples});
    into.histogram(one.name, one.help, one.labels, buckets, count, one.value);
  }
}

void add_own(outlets::OpenMetrics& into, const Collector& collector) {
  for (const auto& host : collector.hosts()) {
    into.gauge("greynic_zero_host_up", "1: the host is read", {{"host", host.name}},
               host.up ? 1 : 0);
  }
  const auto counts = collector.counts();
  const auto counter = [&](const char* name, const char* help, std::uint64_t value) {
    into.counter(name, help, {}, static_cast<double>(value));
  };
  counter("greynic_zero_samples", "Samples that were read", counts.samples);
  counter("greynic_zero_samples_lost", "Samples that the store did not take", counts.lost);
  counter("greynic_zero_looks_late", "Looks that came an interval late or more", counts.late_looks);
  counter("greynic_zero_gaps", "Times in which a host was not read", counts.gaps);
}

}  // namespace

outlets::OpenMetrics open_metrics_of(const Collector& collector) {
  std::map<std::string, Out> found;
  std::map<std::string, std::string_view> kinds;  // one name has one kind
  collector.latest(
      [&](const series::Group& group, std::int64_t time_ns, std::span<const std::uint64_t> values) {
        std::size_t column = 0;
        for (const series::Field& field : group.fields) {
          const bool is_histogram = field.kind == ZERO_HISTOGRAM;
          const BaseUnit unit = base_unit_of(field.unit);
          std::string name = outlets::open_metrics_name(field.name);
          if (!unit.name.empty() && !name.ends_with(unit.name))
            name += "_" + std::string(unit.name);
          for (std::uint32_t i = 0; i < (is_histogram ? 1 : field.count); ++i) {
            const std::string index = is_histogram || field.count == 1 ? "" : std::to_string(i);
            const std::string key = name + '\0' + group.host + '\0' + group.source + '\0' +
                                    field.labels + '\0' + index + '\0' + std::to_string(field.kind);
            const auto [place, is_new] = found.try_emplace(key);
            Out& out = place->second;
            if (is_new) {
              out.name = name;
              out.help = field.help.empty() ? "Of " + group.source : field.help;
              out.labels = labels_of(field.labels);
              if (!index.empty()) out.labels.emplace_back("index", index);
              out.labels.emplace_back("host", group.host);
              out.labels.emplace_back("program", group.source);
            }
            merge(out, field, values.subspan(column + i, is_histogram ? field.count : 1), unit,
                  time_ns);
          }
          column += field.count;
        }
      });
  outlets::OpenMetrics text;
  for (const auto& [key, out] : found) {
    if (kinds.try_emplace(out.name, out.kind).first->second == out.kind) put(text, out);
  }
  add_own(text, collector);
  return text;
}

std::string influx_lines_of(const Collector& collector) {
  std::string lines;
  collector.latest([&](const series::Group& group, std::int64_t time_ns,
                       std::span<const std::uint64_t> values) {
    std::size_t column = 0;
    for (const series::Field& field : group.fields) {
      const bool is_histogram = field.kind == ZERO_HISTOGRAM;
      for (std::uint32_t i = 0; i < (is_histogram ? 1 : field.count); ++i) {
        outlets::InfluxPoint point(field.name);
        point.tag("host", group.host).tag("program", group.source);
        for (const auto& [name, value] : labels_of(field.labels)) point.tag(name, value);
        if (!is_histogram && field.count > 1) point.tag("index", std::to_string(i));
        const std::uint64_t word = values[column + i];
        if (is_histogram) {
          const auto words = values.subspan(column, field.count);
          point.count("sum", words[0]);
          point.count("count", std::accumulate(words.begin() + 1, words.end(), std::uint64_t{0}));
          point.number("p50", series::quantile_of(field, words, 0.5));
          point.number("p99", series::quantile_of(field, words, 0.99));
        } else if (field.floating) {
          point.number("value", series::value_of(field, word));
        } else if (field.is_signed) {
          point.integer("value", static_cast<std::int64_t>(word));
        } else {
          point.count("value", word);
        }
        lines += point.line(time_ns);
      }
      column += field.count;
    }
  });
  return lines;
}

}  // namespace greynic::monitor
