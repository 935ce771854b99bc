#pragma once

/// Metrics as text that Prometheus scrapes: OpenMetrics 1.0, or the older format before it, which
/// promtool reads. Samples may be added in any order: those of one family come out together,
/// families in the order of their first sample.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace greynic::outlets {

/// Names may be any text: what a label's name may not hold becomes an underscore.
using Labels = std::vector<std::pair<std::string, std::string>>;

class OpenMetrics {
 public:
  struct Bucket {
    double upper_bound = 0.0;  ///< included
    std::uint64_t count = 0;   ///< of samples up to there, those of smaller buckets among them
  };

  /// `name` ends with its unit, which is a base unit here: "greynic_hop_delay_seconds", bytes,
  /// ratio. Samples of a counter end with "_total", whether its name does or not. The first `help`
  /// of a family stays.
  void gauge(std::string_view name, std::string_view help, const Labels& labels, double value);
  void counter(std::string_view name, std::string_view help, const Labels& labels, double value);
  /// Buckets with rising bounds; the one without a bound is made from `count`.
  void histogram(std::string_view name, std::string_view help, const Labels& labels,
                 std::span<const Bucket> buckets, std::uint64_t count, double sum);

  enum class Format { kOpenMetrics, kOlderText };
  [[nodiscard]] std::string text(Format format = Format::kOpenMetrics) const;

 private:
  struct Family {
    std::string name;
    std::string_view kind;
    std::string help, samples;
  };
  std::string& family(const std::string& name, std::string_view kind, std::string_view help);

  std::map<std::string, std::size_t> places_;
  std::vector<Family> families_;
};

/// The text with an underscore for whatever a metric's name may not hold.
[[nodiscard]] std::string open_metrics_name(std::string_view text);

}  // namespace greynic::outlets
