#include "greynic/results/compare.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "greynic/results/columns.h"
#include "moderated_variance.h"

namespace greynic::results {
namespace {

// Beyond this the t distribution is the normal one to more digits than anyone prints.
constexpr double kNormalFreedom = 1e6;

double upper_tail(double t, double freedom) {
  if (std::isinf(t)) return t > 0 ? 0.0 : 1.0;
  if (freedom > kNormalFreedom) {
    return boost::math::cdf(boost::math::complement(boost::math::normal(), t));
  }
  return boost::math::cdf(boost::math::complement(boost::math::students_t(freedom), t));
}

double upper_quantile(double p, double freedom) {
  if (freedom > kNormalFreedom) {
    return boost::math::quantile(boost::math::complement(boost::math::normal(), p));
  }
  return boost::math::quantile(boost::math::complement(boost::math::students_t(freedom), p));
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// One pair of cells of one metric: the repeats before and after.
struct Pair {
  std::size_t index = 0;  ///< of its comparison
  std::vector<double> base;
  std::vector<double> fresh;

  [[nodiscard]] Spread spread() const {
    double squares = 0.0;
    for (const auto* values : {&base, &fresh}) {
      const double middle = mean(*values);
      for (const double value : *values) squares += (value - middle) * (value - middle);
    }
    const auto freedom = static_cast<double>(base.size() + fresh.size()) - 2;
    return {.variance = freedom > 0 ? squares / freedom : 0.0, .freedom = freedom};
  }
};

/// Judges all pairs of one metric; p values are not adjusted yet.
void judge_metric(std::vector<Pair>& pairs, const CompareOptions& options,
                  std::vector<Comparison>& comparisons) {
  if (pairs.empty()) return;
  const bool ratios = std::all_of(pairs.begin(), pairs.end(), [](const Pair& pair) {
    const auto positive = [](double value) { return value > 0.0; };
    return std::all_of(pair.base.begin(), pair.base.end(), positive) &&
           std::all_of(pair.fresh.begin(), pair.fresh.end(), positive);
  });
  std::vector<Spread> spreads;
  for (Pair& pair : pairs) {
    if (ratios) {
      for (double& value : pair.base) value = std::log(value);
      for (double& value : pair.fresh) value = std::log(value);
    }
    spreads.push_back(pair.spread());
  }
  const SpreadPrior prior = fit_prior(spreads);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const Pair& pair = pairs[i];
    Comparison& out = comparisons[pair.index];
    const double base = mean(pair.base);
    const double change = mean(pair.fresh) - base;
    out.is_difference = !ratios;
    out.base_mean = ratios ? std::exp(base) : base;
    out.new_mean = ratios ? std::exp(base + change) : base + change;
    const auto as_effect = [&](double x) { return ratios ? std::expm1(x) : x; };
    out.effect = out.effect_low = out.effect_high = as_effect(change);
    const Spread spread = moderated(spreads[i], prior);
    if (spread.freedom <= 0.0) {
      out.reason = "no configuration has a second repeat, so the spread is not known";
      continue;
    }
    const double error =
        std::sqrt(spread.variance * (1.0 / static_cast<double>(pair.base.size()) +
                                     1.0 / static_cast<double>(pair.fresh.size())));
    const double reach = upper_quantile(0.025, spread.freedom) * error;
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
    const double p_less = upper_tail(t(-change - down), spread.freedom);
    const double p_more = upper_tail(t(change - up), spread.freedom);
    const bool more_is_better = better_direction(out.metric) >= 0;
    out.p_worse = more_is_better ? p_less : p_more;
    out.p_better = more_is_better ? p_more : p_less;
    out.verdict = Verdict::kSame;
  }
}

/// Holm's step-down adjustment, in place.
void adjust_by_holm(std::vector<Comparison>& comparisons, double Comparison::*p) {
  std::vector<Comparison*> judged;
  for (Comparison& comparison : comparisons) {
    if (comparison.verdict == Verdict::kSame) judged.push_back(&comparison);
  }
  std::sort(judged.begin(), judged.end(),
            [&](const Comparison* a, const Comparison* b) { return a->*p < b->*p; });
  double largest = 0.0;
  for (std::size_t i = 0; i < judged.size(); ++i) {
    largest =
        std::max(largest, std::min(1.0, judged[i]->*p * static_cast<double>(judged.size() - i)));
    judged[i]->*p = largest;
  }
}

std::string failure_of(const Group& group) {
  const Observation& first = *group.repeats.front();
  return fmt::format("{}{}{}", to_string(first.outcome), first.reason.empty() ? "" : ": ",
                     first.reason);
}

}  // namespace

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::kSame:
      return "same";
    case Verdict::kRegressed:
      return "regressed";
    case Verdict::kImproved:
      return "improved";
    case Verdict::kBroke:
      return "broke";
    case Verdict::kMended:
      return "mended";
    case Verdict::kNotJudged:
      return "not judged";
  }
  return {};
}

int better_direction(std::string_view metric) {
  for (const std::string_view more :
       {"bandwidth", "message_rate", "packet_rate", "transaction_rate"}) {
    if (metric.starts_with(more)) return 1;
  }
  for (const std::string_view less : {"latency", "loss", "cpu_share"}) {
    if (metric.starts_with(less)) return -1;
  }
  return 0;
}

Result<CompareReport> compare(std::span<const Observation> base, std::span<const Observation> fresh,
                              const CompareOptions& options) {
  CompareReport report;
  std::map<Configuration, Group> fresh_groups;
  for (Group& group : group_by_configuration(fresh)) {
    fresh_groups.emplace(*group.configuration, std::move(group));
  }
  std::vector<std::string> metrics = options.metrics;
  if (metrics.empty()) {
    for (const std::string& measure : columns_of(base).measures) {
      if (better_direction(measure) != 0) metrics.push_back(measure);
    }
  }
  std::map<std::string, std::vector<Pair>> pairs;
  std::size_t shared = 0;
  for (const Group& before : group_by_configuration(base)) {
    const auto found = fresh_groups.find(*before.configuration);
    if (found == fresh_groups.end()) {
      ++report.only_base;
      continue;
    }
    ++shared;
    const Group& after = found->second;
    for (const std::string& metric : metrics) {
      Pair pair{.index = report.comparisons.size(),
                .base = values_of(before, metric),
                .fresh = values_of(after, metric)};
      if (pair.base.empty() && pair.fresh.empty()) continue;
      Comparison comparison;
      comparison.configuration = *before.configuration;
      comparison.metric = metric;
      comparison.base_count = pair.base.size();
      comparison.new_count = pair.fresh.size();
      if (pair.fresh.empty()) {
        comparison.base_mean = mean(pair.base);
        comparison.verdict = Verdict::kBroke;
        comparison.reason = failure_of(after);
      } else if (pair.base.empty()) {
        comparison.new_mean = mean(pair.fresh);
        comparison.verdict = Verdict::kMended;
        comparison.reason = failure_of(before);
      } else {
        pairs[metric].push_back(std::move(pair));
      }
      report.comparisons.push_back(std::move(comparison));
    }
  }
  report.only_new = fresh_groups.size() - shared;
  if (report.comparisons.empty()) {
    return fail(ErrorCode::kBadInput, shared == 0
                                          ? "the two runs have no configuration in common"
                                          : "the two runs have no metric in common to compare");
  }
  for (auto& [metric, of_metric] : pairs) judge_metric(of_metric, options, report.comparisons);
  adjust_by_holm(report.comparisons, &Comparison::p_worse);
  adjust_by_holm(report.comparisons, &Comparison::p_better);
  for (Comparison& comparison : report.comparisons) {
    if (comparison.verdict == Verdict::kSame && comparison.p_worse <= options.alpha) {
      comparison.verdict = Verdict::kRegressed;
    } else if (comparison.verdict == Verdict::kSame && comparison.p_better <= options.alpha) {
      comparison.verdict = Verdict::kImproved;
    }
    if (comparison.verdict == Verdict::kRegressed || comparison.verdict == Verdict::kBroke) {
      ++report.regressions;
    }
  }
  const auto rank = [](Verdict verdict) {
    constexpr std::array<int, 6> kRanks = {4, 1, 2, 0, 3, 5};  // in the order of the enumerators
    return kRanks[static_cast<std::size_t>(verdict)];
  };
  std::stable_sort(report.comparisons.begin(), report.comparisons.end(),
                   [&](const Comparison& a, const Comparison& b) {
                     return std::pair(rank(a.verdict), a.p_worse) <
                            std::pair(rank(b.verdict), b.p_worse);
                   });
  report.method = fmt::format(
      "moderated t test on log ratios, worse by more than {:g} % of the base, Holm over {} "
      "verdicts, "
      "alpha {:g}",
      options.tolerance * 100, report.comparisons.size(), options.alpha);
  return report;
}

}  // namespace greynic::results
