#include "greynic/outlets/open_metrics.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>

namespace greynic::outlets {
namespace {

std::string value_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

std::string quoted(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    out += c == '\n' ? std::string_view("\\n") : std::string_view(&c, 1);
  }
  return out;
}

/// `{a="1",b="2"}` with `last` behind; empty when there is none. Of two labels whose names became
/// one, the second gets an underscore more: no sample may have a label twice.
std::string label_text(const Labels& labels, std::string_view last = {}) {
  std::string out;
  std::set<std::string> taken;
  for (const auto& [name, value] : labels) {
    std::string label = open_metrics_name(name);
    while (!taken.insert(label).second) label += '_';
    out += fmt::format("{}{}=\"{}\"", out.empty() ? "" : ",", label, quoted(value));
  }
  if (!last.empty()) out += fmt::format("{}{}", out.empty() ? "" : ",", last);
  return out.empty() ? out : "{" + out + "}";
}

std::string without_suffix(std::string name, std::string_view suffix) {
  if (name.ends_with(suffix)) name.resize(name.size() - suffix.size());
  return name;
}

}  // namespace

std::string open_metrics_name(std::string_view text) {
  std::string out;
  for (const char c : text) {
    out += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  }
  if (out.empty() || std::isdigit(static_cast<unsigned char>(out.front())) != 0) out.insert(0, "_");
  return out;
}

std::string& OpenMetrics::family(const std::string& name, std::string_view kind,
                                 std::string_view help) {
  const auto [place, added] = places_.emplace(name, families_.size());
  if (added) {
    // The older text format knows no escaped quote here, the newer one no bare one.
    std::string plain(help);
    std::replace(plain.begin(), plain.end(), '"', '\'');
    families_.push_back({name, kind, quoted(plain), {}});
  }
  return families_[place->second].samples;
}

void OpenMetrics::gauge(std::string_view name, std::string_view help, const Labels& labels,
                        double value) {
  const std::string own = open_metrics_name(name);
  family(own, "gauge", help) +=
      fmt::format("{}{} {}\n", own, label_text(labels), value_text(value));
}

void OpenMetrics::counter(std::string_view name, std::string_view help, const Labels& labels,
                          double value) {
  const std::string own = without_suffix(open_metrics_name(name), "_total");
  family(own, "counter", help) +=
      fmt::format("{}_total{} {}\n", own, label_text(labels), value_text(value));
}

void OpenMetrics::histogram(std::string_view name, std::string_view help, const Labels& labels,
                            std::span<const Bucket> buckets, std::uint64_t count, double sum) {
  const std::string own = open_metrics_name(name);
  std::string& samples = family(own, "histogram", help);
  const auto bucket = [&](const std::string& bound, std::uint64_t up_to) {
    samples += fmt::format("{}_bucket{} {}\n", own,
                           label_text(labels, fmt::format("le=\"{}\"", bound)), up_to);
  };
  for (const Bucket& each : buckets) {
    if (std::isfinite(each.upper_bound)) bucket(value_text(each.upper_bound), each.count);
  }
  bucket("+Inf", count);
  samples += fmt::format("{}_count{} {}\n", own, label_text(labels), count);
  samples += fmt::format("{}_sum{} {}\n", own, label_text(labels), value_text(sum));
}

std::string OpenMetrics::text(Format format) const {
  const bool older = format == Format::kOlderText;
  std::string out;
  for (const Family& family : families_) {
    // The older format describes samples by their own name.
    const std::string name = family.name + (older && family.kind == "counter" ? "_total" : "");
    out += fmt::format("# TYPE {} {}\n# HELP {} {}\n{}", name, family.kind, name, family.help,
                       family.samples);
  }
  return older ? out : out + "# EOF\n";
}

}  // namespace greynic::outlets
