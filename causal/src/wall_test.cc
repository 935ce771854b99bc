#include "wall_test.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "greynic/statistics/distributions.h"
#include "greynic/statistics/mean.h"

namespace greynic::causal {
namespace {

using statistics::average;
using statistics::Spread;
using statistics::student_upper_tail;

constexpr double kMostSharedFreedom = 8.0;  // weight of the pooled variance, in degrees of freedom

Spread spread_of(const std::vector<double>& scores) {
  const double freedom = static_cast<double>(scores.size()) - 1.0;
  if (freedom <= 0.0) return {};
  return {.variance = statistics::squares_of(scores) / freedom, .freedom = freedom};
}

}  // namespace

Result<WallTester> WallTester::create(const Campaign& campaign, const Configuration& baseline,
                                      std::span<const Observation> observations,
                                      double confidence) {
  WallTester tester;
  tester.rule_ = campaign.wall;
  tester.confidence_ = confidence;
  std::vector<double> of_baseline;
  bool metric_seen = false;
  for (const Observation& observation : observations) {
    const auto value = observation.value(campaign.wall.metric);
    metric_seen |= value.has_value();
    if (value && observation.asked == baseline) of_baseline.push_back(*value);
  }
  if (!metric_seen) {
    return fail(ErrorCode::kNotMeasured,
                fmt::format("no observation holds the wall's metric {}; `greynic export` shows "
                            "which measures there are",
                            campaign.wall.metric));
  }
  if (auto learned = tester.learn_bound(baseline, of_baseline); !learned) return pass_on(learned);
  for (const Observation& observation : observations) tester.add(observation);
  std::vector<Spread> spreads;
  for (const auto& [configuration, samples] : tester.samples_) {
    spreads.push_back(spread_of(samples.scores));
  }
  tester.noise_ = statistics::pooled_prior(spreads, kMostSharedFreedom);
  if (is_relative(campaign.wall) && of_baseline.size() > 1) {
    tester.baseline_error_ =
        std::sqrt(tester.noise_.variance / static_cast<double>(of_baseline.size()));
  }
  return tester;
}

Result<void> WallTester::learn_bound(const Configuration& baseline,
                                     const std::vector<double>& of_baseline) {
  if (!is_relative(rule_)) {
    expected_ = rule_.below ? *rule_.below : rule_.above.value_or(0.0);
  } else if (of_baseline.empty()) {
    return fail(ErrorCode::kNotMeasured,
                fmt::format("the baseline {} was not measured; run the campaign again, or give a "
                            "target with --target",
                            baseline.name()));
  } else {
    expected_ = average(of_baseline);
    if (!(expected_ > 0.0)) {
      return fail(ErrorCode::kBadInput,
                  fmt::format("the baseline's {} is {}; a share of it says nothing, state an "
                              "absolute bound (wall.below or wall.above)",
                              rule_.metric, expected_));
    }
  }
  scale_ = Scale(rule_, expected_);
  bound_ = scale_.bound(scale_.score(expected_));
  return {};
}

double WallTester::score(double value) const { return scale_.score(value) - bound_; }

double WallTester::ratio_of(double score) const {
  const double value = scale_.value(score + bound_);
  return expected_ != 0.0 ? value / expected_ : value;
}

void WallTester::add(const Observation& observation) {
  Samples& samples = samples_[observation.asked];
  switch (observation.outcome) {
    case Outcome::kMeasured:
      if (const auto value = observation.value(rule_.metric))
        samples.scores.push_back(score(*value));
      break;
    case Outcome::kFailed:
    case Outcome::kTimedOut:
      ++samples.failed;
      samples.reason = fmt::format("{}: {}", to_string(observation.outcome), observation.reason);
      break;
    case Outcome::kTooShort:
      ++samples.too_short;
      break;
    case Outcome::kRefused:
    case Outcome::kNotRun:
      break;
  }
}

WallTest WallTester::test(const Configuration& configuration, double alpha) const {
  const auto found = samples_.find(configuration);
  if (found == samples_.end()) return {};
  const Samples& samples = found->second;
  // A failure now and then happens to any configuration: the values then decide.
  const bool mostly_failed = 2 * samples.failed >= static_cast<int>(samples.scores.size());
  if (samples.failed > 0 && mostly_failed) return test_failures(samples, alpha);
  if (!samples.scores.empty()) return test_scores(samples.scores, alpha);
  return {.too_short = samples.too_short > 0};
}

/// A device that fails did not just get slower. Each failure is taken as a fair coin under the
/// hypothesis that it is chance, each success likewise.
WallTest WallTester::test_failures(const Samples& samples, double alpha) const {
  WallTest test{.testable = true, .tests = static_cast<int>(samples.scores.size())};
  test.tests += samples.failed;
  test.wall = 2 * samples.failed > test.tests;
  test.outcome = test.wall ? samples.reason : std::string();
  const int net = std::abs(2 * samples.failed - test.tests);
  (test.wall ? test.p_wall : test.p_clear) = std::pow(0.5, net);
  test.decided = net >= 2 && std::pow(0.5, net) <= std::max(alpha, 0.25);
  test.ratio = {0.0, 0.0, 0.0};
  return test;
}

WallTest WallTester::test_scores(const std::vector<double>& scores, double alpha) const {
  WallTest test{.testable = true, .tests = static_cast<int>(scores.size())};
  const double mean = average(scores);
  test.wall = mean > 0.0;
  test.ratio = {ratio_of(mean), ratio_of(mean), ratio_of(mean)};
  const Spread spread = statistics::shrunk(spread_of(scores), noise_);
  if (spread.freedom <= 0.0) return test;  // one sample and no idea of the noise
  const double error = std::sqrt(spread.variance / static_cast<double>(scores.size()) +
                                 baseline_error_ * baseline_error_);
  // Rounding is the least noise there is: an exact repeat proves no more than the arithmetic can.
  const double t = mean / std::max(error, 1e-12);
  test.p_wall = student_upper_tail(t, spread.freedom);
  test.p_clear = student_upper_tail(-t, spread.freedom);
  test.decided = std::min(test.p_wall, test.p_clear) <= alpha;
  const double half =
      statistics::student_upper_quantile((1.0 - confidence_) / 2.0, spread.freedom) * error;
  const double a = ratio_of(mean - half);
  const double b = ratio_of(mean + half);
  test.ratio.low = std::min(a, b);
  test.ratio.high = std::max(a, b);
  return test;
}

std::vector<Configuration> WallTester::configurations() const {
  std::vector<Configuration> all;
  for (const auto& [configuration, samples] : samples_) all.push_back(configuration);
  return all;
}

}  // namespace greynic::causal
