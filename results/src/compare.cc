#include "greynic/results/compare.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

#include "greynic/results/columns.h"
#include "greynic/statistics/distributions.h"
#include "greynic/statistics/holm.h"
#include "greynic/statistics/mean.h"
#include "greynic/statistics/shrunk_variance.h"

namespace greynic::results {
namespace {

using statistics::average;
using statistics::Spread;
using statistics::student_upper_tail;

struct Metric {
  std::string name;
  bool more_is_better = true;
};

/// One pair of cells of one metric: the repeats before and after.
struct Pair {
  std::size_t index = 0;  ///< of its comparison
  std::vector<double> base;
  std::vector<double> fresh;

  [[nodiscard]] Spread spread() const {
    const auto freedom = static_cast<double>(base.size() + fresh.size()) - 2;
    const double squares = statistics::squares_of(base) + statistics::squares_of(fresh);
    return {.variance = freedom > 0 ? squares / freedom : 0.0, .freedom = freedom};
  }
};

bool all_positive(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double value) { return value > 0.0; });
}

/// Judges all pairs of one metric; p values are not adjusted yet.
void judge_metric(const Metric& metric, std::vector<Pair>& pairs, const CompareOptions& options,
                  std::vector<Comparison>& comparisons) {
  const bool ratios = std::all_of(pairs.begin(), pairs.end(), [](const Pair& pair) {
    return all_positive(pair.base) && all_positive(pair.fresh);
  });
  std::vector<Spread> spreads;
  for (Pair& pair : pairs) {
    if (ratios) {
      for (double& value : pair.base) value = std::log(value);
      for (double& value : pair.fresh) value = std::log(value);
    }
    spreads.push_back(pair.spread());
  }
  const statistics::SpreadPrior prior = statistics::fitted_prior(spreads);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const Pair& pair = pairs[i];
    Comparison& out = comparisons[pair.index];
    const double base = average(pair.base);
    const double change = average(pair.fresh) - base;
    out.is_difference = !ratios;
    out.base_mean = ratios ? std::exp(base) : base;
    out.new_mean = ratios ? std::exp(base + change) : base + change;
    const auto as_effect = [&](double x) { return ratios ? std::expm1(x) : x; };
    out.effect = out.effect_low = out.effect_high = as_effect(change);
    const Spread spread = statistics::shrunk(spreads[i], prior);
    if (spread.freedom <= 0.0) {
      out.reason = "no configuration has a second repeat, so the spread is not known";
      continue;
    }
    const double error =
        std::sqrt(spread.variance * (1.0 / static_cast<double>(pair.base.size()) +
                                     1.0 / static_cast<double>(pair.fresh.size())));
    const double reach = statistics::student_upper_quantile(0.025, spread.freedom) * error;
    out.effect_low = as_effect(change - reach);
    out.effect_high = as_effect(change + reach);
    // A gain has to exceed the tolerance too, so that better and worse are judged alike. Losses
    // have no natural scale: there the tolerance is absolute.
    const double down = ratios ? -std::log1p(-options.tolerance) : options.tolerance;
    const double up = ratios ? std::log1p(options.tolerance) : options.tolerance;
    const auto t = [&](double distance) {
      if (error > 0.0) return distance / error;
      return distance > 0.0 ? std::numeric_limits<double>::infinity()
                            : -std::numeric_limits<double>::infinity();
    };
    const double p_less = student_upper_tail(t(-change - down), spread.freedom);
    const double p_more = student_upper_tail(t(change - up), spread.freedom);
    out.p_worse = metric.more_is_better ? p_less : p_more;
    out.p_better = metric.more_is_better ? p_more : p_less;
    out.change = Change::kSame;
  }
}

/// Holm's adjustment of one of the p values over all tested comparisons.
void adjust_by_holm(std::vector<Comparison>& comparisons, double Comparison::*p) {
  std::vector<Comparison*> tested;
  std::vector<double> p_values;
  for (Comparison& comparison : comparisons) {
    if (comparison.change != Change::kSame) continue;
    tested.push_back(&comparison);
    p_values.push_back(comparison.*p);
  }
  const std::vector<double> adjusted = statistics::holm_adjusted(p_values);
  for (std::size_t i = 0; i < tested.size(); ++i) tested[i]->*p = adjusted[i];
}

/// The metrics to compare, with their directions; a direction that nobody knows is never guessed.
Result<std::vector<Metric>> metrics_of(std::span<const Observation> base,
                                       const CompareOptions& options) {
  std::vector<Metric> metrics;
  const auto has_direction = [](std::optional<Better> better) {
    return better && *better != Better::kNeither;
  };
  for (const std::string& name : options.metrics) {
    auto better = better_direction(name);
    if (!has_direction(better)) better = options.better;
    if (!has_direction(better)) {
      return fail(ErrorCode::kBadInput,
                  fmt::format("metric {}: greynic does not know which direction is better; add "
                              "--better more or --better less",
                              name));
    }
    metrics.push_back({name, *better == Better::kMore});
  }
  if (!options.metrics.empty()) return metrics;
  for (const std::string& name : columns_of(base).measures) {
    const auto better = better_direction(name);
    if (has_direction(better)) metrics.push_back({name, *better == Better::kMore});
  }
  if (metrics.empty() && !base.empty()) {
    return fail(ErrorCode::kBadInput,
                "the base has no metric whose better direction greynic knows; name one with "
                "--metric, and its direction with --better");
  }
  return metrics;
}

/// Why no repeat of a configuration has a value.
std::string why_no_value(const Group& group) {
  const Observation& first = *group.repeats.front();
  return fmt::format("{}{}{}", to_string(first.outcome), first.reason.empty() ? "" : ": ",
                     first.reason);
}

/// The device refused or failed; it was not the measurement that did not take the value.
bool device_said_no(const Group& group) {
  return std::any_of(group.repeats.begin(), group.repeats.end(), [](const Observation* one) {
    return one->outcome == Outcome::kRefused || one->outcome == Outcome::kFailed ||
           one->outcome == Outcome::kTimedOut;
  });
}

/// The comparison of one configuration whose metric only one run has.
void judge_one_sided(const Group& silent, std::string_view run, Change if_device_said_no,
                     Comparison& comparison) {
  if (device_said_no(silent)) {
    comparison.change = if_device_said_no;
    comparison.reason = why_no_value(silent);
  } else {
    comparison.reason = fmt::format("the {} run did not take it ({})", run, why_no_value(silent));
  }
}

/// Every comparison of a configuration; those that have values on both sides are tested later.
void compare_configuration(const Group& before, const Group& after,
                           const std::vector<Metric>& metrics,
                           std::vector<std::vector<Pair>>& pairs,
                           std::vector<Comparison>& comparisons) {
  for (std::size_t m = 0; m < metrics.size(); ++m) {
    Pair pair{.index = comparisons.size(),
              .base = values_of(before, metrics[m].name),
              .fresh = values_of(after, metrics[m].name)};
    if (pair.base.empty() && pair.fresh.empty()) continue;
    Comparison comparison;
    comparison.configuration = *before.configuration;
    comparison.metric = metrics[m].name;
    comparison.base_count = pair.base.size();
    comparison.new_count = pair.fresh.size();
    comparison.base_mean = average(pair.base);
    comparison.new_mean = average(pair.fresh);
    if (pair.fresh.empty()) {
      judge_one_sided(after, "new", Change::kBroke, comparison);
    } else if (pair.base.empty()) {
      judge_one_sided(before, "base", Change::kMended, comparison);
    } else {
      pairs[m].push_back(std::move(pair));
    }
    comparisons.push_back(std::move(comparison));
  }
}

/// Turns adjusted p values into changes, counts them, and sorts the worst to the front.
void conclude(CompareReport& report, double alpha) {
  adjust_by_holm(report.comparisons, &Comparison::p_worse);
  adjust_by_holm(report.comparisons, &Comparison::p_better);
  for (Comparison& comparison : report.comparisons) {
    Change& change = comparison.change;
    if (change == Change::kSame && comparison.p_worse <= alpha) {
      change = Change::kRegressed;
    } else if (change == Change::kSame && comparison.p_better <= alpha) {
      change = Change::kImproved;
    }
    report.regressions += change == Change::kRegressed || change == Change::kBroke ? 1 : 0;
    report.not_judged += change == Change::kNotJudged ? 1 : 0;
  }
  const auto rank = [](Change change) {
    constexpr std::array<int, 6> kRanks = {4, 1, 2, 0, 3, 5};  // in the order of the enumerators
    return kRanks[static_cast<std::size_t>(change)];
  };
  std::stable_sort(report.comparisons.begin(), report.comparisons.end(),
                   [&](const Comparison& a, const Comparison& b) {
                     return std::pair(rank(a.change), a.p_worse) <
                            std::pair(rank(b.change), b.p_worse);
                   });
}

}  // namespace

std::string_view to_string(Change change) {
  switch (change) {
    case Change::kSame:
      return "same";
    case Change::kRegressed:
      return "regressed";
    case Change::kImproved:
      return "improved";
    case Change::kBroke:
      return "broke";
    case Change::kMended:
      return "mended";
    case Change::kNotJudged:
      return "not judged";
  }
  return {};
}

std::string CompareReport::too_little(bool allow_missing) const {
  const std::string allowed = "; measure them, or add --allow-missing";
  if (not_judged == comparisons.size()) {
    return comparisons.empty() ? "no configuration was compared"
                               : "nothing could be judged: " + comparisons.front().reason;
  }
  if (allow_missing) return {};
  if (!only_base.empty()) {
    return fmt::format("{} of {} configurations of the base are not in the new run{}",
                       only_base.size(), base_configurations, allowed);
  }
  if (not_judged > 0) {
    return fmt::format("{} of {} comparisons could not be judged ({}){}", not_judged,
                       comparisons.size(), comparisons.back().reason, allowed);
  }
  return {};
}

Result<CompareReport> compare(std::span<const Observation> base, std::span<const Observation> fresh,
                              const CompareOptions& options) {
  const auto metrics = metrics_of(base, options);
  if (!metrics) return pass_on(metrics);
  CompareReport report;
  std::map<Configuration, Group> fresh_groups;
  for (Group& group : group_by_configuration(fresh)) {
    fresh_groups.emplace(*group.configuration, std::move(group));
  }
  std::vector<std::vector<Pair>> pairs(metrics->size());
  for (const Group& before : group_by_configuration(base)) {
    ++report.base_configurations;
    const auto found = fresh_groups.find(*before.configuration);
    if (found == fresh_groups.end()) {
      report.only_base.push_back(*before.configuration);
    } else {
      compare_configuration(before, found->second, *metrics, pairs, report.comparisons);
    }
  }
  const std::size_t shared = report.base_configurations - report.only_base.size();
  report.only_new = fresh_groups.size() - shared;
  if (report.comparisons.empty()) {
    return fail(ErrorCode::kBadInput, shared == 0
                                          ? "the two runs have no configuration in common"
                                          : "the two runs have no metric in common to compare");
  }
  for (std::size_t m = 0; m < pairs.size(); ++m) {
    judge_metric((*metrics)[m], pairs[m], options, report.comparisons);
  }
  conclude(report, options.alpha);
  report.method = fmt::format(
      "moderated t test on log ratios, worse by more than {:g} % of the base, Holm over {} "
      "verdicts, "
      "alpha {:g}",
      options.tolerance * 100, report.comparisons.size(), options.alpha);
  return report;
}

}  // namespace greynic::results
