#pragma once

/// Did anything get worse between two runs? Each configuration and metric that both runs have gets
/// one answer, by a statistical test whose false alarms are bounded over all answers together.
///
/// The test: logarithms of the repeats, so that effects are ratios. The spread of each pair of
/// cells is shrunk towards the spread that all pairs of the metric share (empirical Bayes, G. K.
/// Smyth 2004), so that three repeats are enough to judge by; the moderated t statistic then asks
/// two one-sided questions: is it worse, and is it better, by more than the tolerance? Their p
/// values are adjusted by Holm over all comparisons: the chance that a comparison of equal runs
/// shows any regression is at most alpha. Metrics that can be 0 (losses) are compared by
/// differences instead of ratios.
///
/// What it cannot tell: spreads that differ much between the two runs, and drifts between them. A
/// single repeat is judged by the spread of the others; when no cell has a second repeat, nothing
/// is judged.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "greynic/core/measure.h"
#include "greynic/core/observation.h"
#include "greynic/core/result.h"

namespace greynic::results {

struct CompareOptions {
  double alpha = 0.05;               ///< chance of any false regression among all comparisons
  double tolerance = 0.02;           ///< share of the base that does not matter
  std::vector<std::string> metrics;  ///< empty: all whose better direction is known
  std::optional<Better> better;      ///< direction of named metrics that have none of their own
};

enum class Change : std::uint8_t {
  kSame,  ///< no change beyond the tolerance was shown
  kRegressed,
  kImproved,
  kBroke,      ///< was measured in the base, and in the new run every repeat failed or was refused
  kMended,     ///< the other way round
  kNotJudged,  ///< no spread is known, or one side was not measured at all
};
[[nodiscard]] std::string_view to_string(Change change);

struct Comparison {
  Configuration configuration;
  std::string metric;
  Change change = Change::kNotJudged;
  std::size_t base_count = 0;  ///< repeats
  std::size_t new_count = 0;
  double base_mean = 0.0;  ///< geometric for ratios
  double new_mean = 0.0;
  /// Change from base to new with its 95 % interval (not adjusted): shares of the base (-0.2: a
  /// fifth less), or differences in the metric's unit where `is_difference`.
  double effect = 0.0;
  double effect_low = 0.0;
  double effect_high = 0.0;
  bool is_difference = false;
  double p_worse = 1.0;   ///< adjusted by Holm
  double p_better = 1.0;  ///< adjusted by Holm
  std::string reason;     ///< for kBroke, kMended and kNotJudged
};

struct CompareReport {
  std::vector<Comparison> comparisons;   ///< worst first
  std::size_t regressions = 0;           ///< kRegressed and kBroke
  std::size_t not_judged = 0;            ///< kNotJudged
  std::vector<Configuration> only_base;  ///< configurations that the new run lacks
  std::size_t base_configurations = 0;
  std::size_t only_new = 0;  ///< configurations that the base lacks
  std::string method;        ///< one sentence for people

  /// Why this is too little to call the new run as good as the base; empty when it is enough. The
  /// base's configurations must all be judged, or with `allow_missing` at least one of them.
  [[nodiscard]] std::string too_little(bool allow_missing) const;
};

/// kBadInput when the runs have no configuration, or no metric, in common, and when nobody said
/// which direction of a named metric is better.
[[nodiscard]] Result<CompareReport> compare(std::span<const Observation> base,
                                            std::span<const Observation> fresh,
                                            const CompareOptions& options = {});

/// JUnit XML: one test case a comparison. A regression is a failure. What was not judged, and a
/// configuration that the new run lacks, is skipped.
[[nodiscard]] std::string junit_text(const CompareReport& report, const std::string& name);

}  // namespace greynic::results
