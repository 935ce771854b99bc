#include "greynic/monitor/publish.h"

#include <bit>
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

/// Points by their tags. InfluxDB keeps one of two points that have the same tags and time, so those
/// are made one here: counters and histograms are added up, and of gauges the newest counts.
class InfluxPoints {
 public:
  /// `apart`: only what has the same time too is made one.
  void add(const series::Group& group, std::int64_t time_ns, std::span<const std::uint64_t> values,
           bool apart = false) {
    for (const series::Field& field : group.fields) {
      const bool is_histogram = field.kind == ZERO_HISTOGRAM;
      const std::uint32_t width = is_histogram ? field.count : 1;
      for (std::uint32_t i = 0; i < field.count; i += width) {
        outlets::InfluxPoint point(field.name);
        point.tag("host", group.host).tag("program", group.source);
        for (const auto& [name, value] : labels_of(field.labels)) point.tag(name, value);
        if (!is_histogram && field.count > 1) point.tag("index", std::to_string(i));
        const auto words = values.subspan(i, width);
        const Point made{point, field, {words.begin(), words.end()}, time_ns};
        const std::string tags = field.name + '\0' + group.host + '\0' + group.source + '\0' +
                                 field.labels + '\0' + std::to_string(i);
        const auto [place, is_new] = points_.try_emplace({tags, apart ? time_ns : 0}, made);
        if (!is_new) join(place->second, made);
      }
      values = values.subspan(field.count);
    }
  }

  [[nodiscard]] std::string lines() const {
    std::string lines;
    for (const auto& [key, one] : points_) lines += line_of(one);
    return lines;
  }

 private:
  struct Point {
    outlets::InfluxPoint head;
    series::Field field;
    std::vector<std::uint64_t> words;
    std::int64_t time_ns = 0;
  };

  static void join(Point& into, const Point& more) {
    const bool is_sum = into.field.kind != ZERO_GAUGE && into.field.kind == more.field.kind &&
                        into.field.floating == more.field.floating &&
                        into.field.parameter == more.field.parameter &&
                        into.words.size() == more.words.size();
    if (!is_sum) {
      if (more.time_ns >= into.time_ns) into = more;
      return;
    }
    for (std::size_t i = 0; i < into.words.size(); ++i) {
      const double sum =
          series::value_of(into.field, into.words[i]) + series::value_of(more.field, more.words[i]);
      into.words[i] =
          into.field.floating ? std::bit_cast<std::uint64_t>(sum) : into.words[i] + more.words[i];
    }
    into.time_ns = std::max(into.time_ns, more.time_ns);
  }

  static std::string line_of(const Point& one) {
    outlets::InfluxPoint point = one.head;
    const std::uint64_t word = one.words[0];
    if (one.field.kind == ZERO_HISTOGRAM) {
      point.count("sum", word);
      point.count("count",
                  std::accumulate(one.words.begin() + 1, one.words.end(), std::uint64_t{0}));
      point.number("p50", series::quantile_of(one.field, one.words, 0.5));
      point.number("p99", series::quantile_of(one.field, one.words, 0.99));
    } else if (one.field.floating) {
      point.number("value", series::value_of(one.field, word));
    } else if (one.field.is_signed) {
      point.integer("value", static_cast<std::int64_t>(word));
    } else {
      point.count("value", word);
    }
    return point.line(one.time_ns);
  }

  std::map<std::pair<std::string, std::int64_t>, Point> points_;
};

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

std::string influx_lines_of(Collector& collector) {
  InfluxPoints points;
  collector.latest([&](const auto& group, std::int64_t time_ns, auto values) {
    points.add(group, time_ns, values);
  });
  // What has ended comes once more by itself, with its last values, at the time of its end.
  InfluxPoints ended;
  collector.take_ended([&](const auto& group, std::int64_t time_ns, auto values) {
    ended.add(group, time_ns, values, true);
  });
  return points.lines() + ended.lines();
}

}  // namespace greynic::monitor
