#include "judge.h"

#include <fmt/core.h>

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>

#include "greynic/core/units.h"

namespace greynic::causal {
namespace {

constexpr double kMostSharedFreedom = 8.0;  // weight of the pooled variance, in degrees of freedom
constexpr double kSmallestShare = 1e-9;     // of the baseline: keeps the logarithm of a zero finite

double mean_of(const std::vector<double>& values) {
  double sum = 0.0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double squares_of(const std::vector<double>& values, double mean) {
  double sum = 0.0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return sum;
}

double upper_tail(double t, double freedom) {
  if (!std::isfinite(t)) return t > 0 ? 0.0 : 1.0;
  const boost::math::students_t distribution(freedom);
  return boost::math::cdf(boost::math::complement(distribution, t));
}

double t_quantile(double upper, double freedom) {
  const boost::math::students_t distribution(freedom);
  return boost::math::quantile(boost::math::complement(distribution, upper));
}

}  // namespace

Result<Judge> Judge::create(const Campaign& campaign, const Configuration& baseline,
                            std::span<const Observation> observations, double confidence) {
  Judge judge;
  judge.rule_ = campaign.wall;
  judge.confidence_ = confidence;
  judge.relative_ = campaign.wall.below_baseline_by || campaign.wall.above_baseline_by;
  const std::string& metric = campaign.wall.metric;
  std::vector<double> baseline_values;
  bool metric_seen = false;
  for (const Observation& observation : observations) {
    const auto value = observation.value(metric);
    metric_seen |= value.has_value();
    if (value && observation.asked == baseline) baseline_values.push_back(*value);
  }
  if (!metric_seen) {
    return fail(ErrorCode::kNotMeasured,
                fmt::format("no observation holds the wall's metric {}; `greynic export` shows "
                            "which measures there are",
                            metric));
  }
  if (judge.relative_) {
    if (baseline_values.empty()) {
      return fail(ErrorCode::kNotMeasured,
                  fmt::format("the baseline {} was not measured; run the campaign again, or give a "
                              "target with --target",
                              baseline.name()));
    }
    judge.expected_ = mean_of(baseline_values);
    if (!(judge.expected_ > 0.0)) {
      return fail(ErrorCode::kBadInput,
                  fmt::format("the baseline's {} is {}; a share of it says nothing, state an "
                              "absolute bound (wall.below or wall.above)",
                              metric, judge.expected_));
    }
    const bool below = campaign.wall.below_baseline_by.has_value();
    const double share =
        below ? *campaign.wall.below_baseline_by : *campaign.wall.above_baseline_by;
    judge.bound_text_ = fmt::format("{} {} the baseline by more than {:.0f} %", metric,
                                    below ? "below" : "above", share * 100.0);
  } else {
    const bool below = campaign.wall.below.has_value();
    judge.expected_ = below ? *campaign.wall.below : campaign.wall.above.value_or(0.0);
    judge.bound_text_ = fmt::format("{} {} {}", metric, below ? "below" : "above",
                                    number_to_string(judge.expected_));
  }
  for (const Observation& observation : observations) judge.add(observation);
  judge.learn_noise();
  if (judge.relative_ && baseline_values.size() > 1) {
    judge.baseline_error_ =
        std::sqrt(judge.noise_variance_ / static_cast<double>(baseline_values.size()));
  }
  return judge;
}

double Judge::score(double value) const {
  if (rule_.below_baseline_by) {
    return std::log((1.0 - *rule_.below_baseline_by) * expected_ /
                    std::max(value, kSmallestShare * expected_));
  }
  if (rule_.above_baseline_by) {
    return std::log(std::max(value, kSmallestShare * expected_) /
                    ((1.0 + *rule_.above_baseline_by) * expected_));
  }
  return rule_.below ? expected_ - value : value - expected_;
}

double Judge::ratio_of(double score) const {
  if (rule_.below_baseline_by) return (1.0 - *rule_.below_baseline_by) * std::exp(-score);
  if (rule_.above_baseline_by) return (1.0 + *rule_.above_baseline_by) * std::exp(score);
  const double value = rule_.below ? expected_ - score : expected_ + score;
  return expected_ != 0.0 ? value / expected_ : value;
}

void Judge::add(const Observation& observation) {
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
    case Outcome::kRefused:
      ++samples.refused;
      break;
    case Outcome::kNotRun:
    case Outcome::kTooShort:
      break;
  }
}

void Judge::learn_noise() {
  double squares = 0.0;
  double freedom = 0.0;
  for (const auto& [configuration, samples] : samples_) {
    if (samples.scores.size() < 2) continue;
    squares += squares_of(samples.scores, mean_of(samples.scores));
    freedom += static_cast<double>(samples.scores.size()) - 1.0;
  }
  noise_freedom_ = freedom;
  noise_variance_ = freedom > 0.0 ? squares / freedom : 0.0;
}

Verdict Judge::verdict(const Configuration& configuration, double alpha) const {
  Verdict verdict;
  const auto found = samples_.find(configuration);
  if (found == samples_.end()) return verdict;
  const Samples& samples = found->second;
  const auto count = static_cast<double>(samples.scores.size());
  verdict.tests = static_cast<int>(samples.scores.size()) + samples.failed;
  verdict.testable = verdict.tests > 0;
  if (!verdict.testable) return verdict;
  if (samples.failed > 0) {
    // A device that fails did not just get slower. Each failure is taken as a fair coin under the
    // hypothesis that it is chance, each success likewise.
    verdict.wall = 2 * samples.failed > verdict.tests;
    verdict.outcome = verdict.wall ? samples.reason : std::string();
    const int net = std::abs(2 * samples.failed - verdict.tests);
    (verdict.wall ? verdict.p_wall : verdict.p_clear) = std::pow(0.5, net);
    verdict.decided = net >= 2 && std::pow(0.5, net) <= std::max(alpha, 0.25);
    verdict.ratio = {0.0, 0.0, 0.0};
    return verdict;
  }
  const double mean = mean_of(samples.scores);
  const double shared = std::min(noise_freedom_, kMostSharedFreedom);
  const double freedom = shared + count - 1.0;
  verdict.wall = mean > 0.0;
  verdict.ratio = {ratio_of(mean), ratio_of(mean), ratio_of(mean)};
  if (freedom <= 0.0) return verdict;  // one sample and no idea of the noise
  const double variance = (shared * noise_variance_ + squares_of(samples.scores, mean)) / freedom;
  const double error = std::sqrt(variance / count + baseline_error_ * baseline_error_);
  // Rounding is the least noise there is: an exact repeat proves no more than the arithmetic can.
  const double t = mean / std::max(error, 1e-12);
  verdict.p_wall = upper_tail(t, freedom);
  verdict.p_clear = upper_tail(-t, freedom);
  verdict.decided = std::min(verdict.p_wall, verdict.p_clear) <= alpha;
  const double half = t_quantile((1.0 - confidence_) / 2.0, freedom) * error;
  const double a = ratio_of(mean - half);
  const double b = ratio_of(mean + half);
  verdict.ratio.low = std::min(a, b);
  verdict.ratio.high = std::max(a, b);
  return verdict;
}

std::vector<Configuration> Judge::configurations() const {
  std::vector<Configuration> all;
  for (const auto& [configuration, samples] : samples_) all.push_back(configuration);
  return all;
}

}  // namespace greynic::causal
