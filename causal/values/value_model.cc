#include "value_model.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "greynic/core/units.h"
#include "greynic/statistics/mean.h"

namespace greynic::causal {
namespace {

constexpr double kLargestScore = 7.0;   // a value of zero scores this: e^-7 is below 0.1 %
constexpr double kStallsBefore = 0.01;  // believed before any was seen,
constexpr double kStallWeight = 60.0;   // as strongly as so many tests would
constexpr double kStallsFrom = 4.0;     // noises beyond the mean
constexpr double kDriftWindow = 24.0;   // tests over which a drift is followed
constexpr double kDriftWeight = 12.0;   // tests' worth of belief that there is none
constexpr double kUsualSigma = 0.05;    // before any test: its logarithm,
constexpr double kSigmaSpread = 1.2;    // and the spread of that
constexpr double kSigmaStep = 1.2;
constexpr double kNoiseInDrift = 3.0;  // times of what noise makes, before a drift is believed
constexpr double kLeastSigma = 0.002;
constexpr double kMostSigma = 1.0;
constexpr double kLeastRepeats = 2.0;
constexpr double kRepeatsByChance = 0.001;  // chance that they agree so well
constexpr double kMostLearnt = 30.0;        // degrees of freedom of what repeats said before
constexpr double kLeastBelief = 0.02;
constexpr std::size_t kFewReadings = 40;
constexpr std::size_t kManyReadings = 80;
constexpr std::size_t kNone = static_cast<std::size_t>(-1);

}  // namespace

bool is_relative(const WallRule& rule) { return rule.below_baseline_by || rule.above_baseline_by; }

std::string bound_text(const WallRule& rule) {
  if (!is_relative(rule)) {
    return fmt::format("{} {} {}", rule.metric, rule.below ? "below" : "above",
                       number_to_string(rule.below ? *rule.below : rule.above.value_or(0.0)));
  }
  const bool less = rule.below_baseline_by.has_value();
  return fmt::format("{} {} the baseline by more than {:.0f} %", rule.metric,
                     less ? "below" : "above",
                     (less ? *rule.below_baseline_by : *rule.above_baseline_by) * 100.0);
}

Scale::Scale(const WallRule& rule, double reference) : rule_(rule), reference_(reference) {
  sign_ = rule.below_baseline_by || rule.below ? -1.0 : 1.0;
  const double absolute = rule.below ? *rule.below : rule.above.value_or(1.0);
  // Where nothing is positive, values count in units of the bound, and as logarithms beyond it.
  logarithms_ = reference > 0.0 && absolute > 0.0;
  if (!logarithms_) reference_ = std::max(std::abs(absolute), 1e-9);
}

double Scale::score(double value) const {
  if (!logarithms_) {
    const double bounds = std::abs(value) / reference_;
    return sign_ * std::copysign(bounds > 1.0 ? 1.0 + std::log(bounds) : bounds, value);
  }
  const double ratio = std::max(value / reference_, std::exp(-kLargestScore));
  return sign_ * std::log(ratio);
}

double Scale::value(double score) const {
  if (logarithms_) return reference_ * std::exp(sign_ * score);
  const double size = std::abs(score);
  return reference_ * sign_ * std::copysign(size > 1.0 ? std::exp(size - 1.0) : size, score);
}

double Scale::bound(double baseline) const {
  if (rule_.below_baseline_by) return baseline - std::log1p(-*rule_.below_baseline_by);
  if (rule_.above_baseline_by) return baseline + std::log1p(*rule_.above_baseline_by);
  return score(rule_.below ? *rule_.below : rule_.above.value_or(0.0));
}

void ValueModel::set_prior_spread(double variance, double freedom) {
  learnt_variance_ = variance;
  learnt_freedom_ = std::min(freedom, kMostLearnt);
  if (learnt_freedom_ > 0.0) sigma_ = std::max(std::sqrt(variance), kLeastSigma);
}

double ValueModel::offset(std::size_t place) const {
  if (offsets_.empty()) return 0.0;
  return offsets_[std::min(place, offsets_.size() - 1)];
}

double ValueModel::evidence(const Reading& reading, std::size_t place) const {
  if (reading.failed) return failures_.evidence_of_next();
  return mixture_.evidence({reading.score - offset(place)});
}

double ValueModel::log_chance_of_all(double sigma) {
  const double usual = std::log(sigma / kUsualSigma) / kSigmaSpread;
  double sum = -0.5 * usual * usual;
  sum -= learnt_freedom_ * (std::log(sigma) + 0.5 * learnt_variance_ / (sigma * sigma));
  const Noise noise{.sigma = sigma, .freedom = freedom_, .stalls = stalls_};
  return sum + mixture_.fit(samples_, noise, [&](double mean) { return scale_.bound(mean); });
}

/// The likeliest noise, whichever configurations are walls. A search from the last answer alone
/// could stay where a large noise explains away every wall that is less deep than the first.
void ValueModel::learn_sigma(double most) {
  std::vector<double> candidates = {sigma_ / kSigmaStep, sigma_ * kSigmaStep, sigma_};
  if (sample_of_.size() < kFewReadings || sample_of_.size() % 24 == 0) {
    for (double sigma = 0.003; sigma < 0.8; sigma *= 1.5) candidates.push_back(sigma);
  }
  double best = -1e300;
  double likeliest = sigma_;
  for (const double candidate : candidates) {
    const double sigma = std::clamp(candidate, kLeastSigma, most);
    const double chance = log_chance_of_all(sigma);
    if (chance <= best) continue;
    best = chance;
    likeliest = sigma;
  }
  sigma_ = likeliest;
}

/// What repeats of the same configurations allow: where these agree, what differs between others is no noise.
double ValueModel::most_sigma_by_repeats() const {
  double squares = 0.0;
  double freedom = 0.0;
  for (const Sample& sample : samples_) {
    if (sample.scores.size() < 2) continue;
    squares += statistics::squares_of(sample.scores);
    freedom += static_cast<double>(sample.scores.size()) - 1.0;
  }
  if (freedom < kLeastRepeats) return kMostSigma;
  // The lower tail of chi squared.
  const double half = freedom / 2.0;
  const double least =
      2.0 * std::exp((std::log(kRepeatsByChance) + std::lgamma(half + 1.0)) / half);
  return std::clamp(std::sqrt(squares / least), kLeastSigma, kMostSigma);
}

/// How often values stall.
void ValueModel::learn_stalls(const std::vector<Reading>& readings) {
  double stalls = 0.0, values = 0.0;
  for (std::size_t i = 0; i < readings.size(); ++i) {
    const Reading& one = readings[i];
    if (sample_of_[i] == kNone) continue;
    const MeanMixture::Mean mean = mixture_.mean_of(sample_of_[i]);
    values += 1.0;
    if (mean.known < 0.5 || samples_[sample_of_[i]].scores.size() < 2) continue;
    stalls += one.score - offset(i) - mean.value > kStallsFrom * sigma_ ? 1.0 : 0.0;
  }
  stalls_ = (stalls + kStallsBefore * kStallWeight) / (values + kStallWeight);
}

/// How often tests give no value, whatever is set and at walls.
void ValueModel::learn_failures(const std::vector<Reading>& readings,
                                const std::vector<Group>& groups,
                                const std::vector<std::size_t>& sample_of_group) {
  std::vector<Outcomes> all(groups.size());
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (const std::size_t place : *groups[g].places) {
      if (readings[place].ignored) continue;
      ++(readings[place].failed ? all[g].failed : all[g].valued);
    }
    const std::size_t sample = sample_of_group[g];
    if (sample == kNone) continue;
    const double by_values = 1.0 / (1.0 + std::exp(-mixture_.evidence_of(sample)));
    all[g].wall = readings[groups[g].places->front()].of_baseline ? 0.0 : by_values;
  }
  failures_.fit(all);
}

/// A drift moves clear and wall alike, so what remains of both tells of it.
void ValueModel::learn_drift(const std::vector<Reading>& readings) {
  const std::size_t count = readings.size();
  std::vector<double> rest(count, 0.0);
  std::vector<double> known(count, 0.0);
  for (std::size_t i = 0; i < count; ++i) {
    if (sample_of_[i] == kNone) continue;
    const MeanMixture::Mean mean = mixture_.mean_of(sample_of_[i]);
    rest[i] = readings[i].score - mean.value;
    known[i] = std::abs(rest[i] - offset(i)) < kStallsFrom * sigma_ ? mean.known : 0.0;
  }
  std::vector<double> offsets(count, 0.0);
  double spread = 0.0;  // of the offsets, and what noise alone makes of it
  double by_noise = 0.0;
  const std::size_t reach = static_cast<std::size_t>(2.5 * kDriftWindow);
  for (std::size_t i = 0; i < count; ++i) {
    double sum = 0.0;
    double weight = kDriftWeight;
    double squares = 0.0;
    for (std::size_t j = i > reach ? i - reach : 0; j < std::min(count, i + reach); ++j) {
      const double apart = (static_cast<double>(i) - static_cast<double>(j)) / kDriftWindow;
      const double near = known[j] * std::exp(-0.5 * apart * apart);
      sum += near * rest[j];
      weight += near;
      squares += near * near;
    }
    offsets[i] = sum / weight;
    spread += offsets[i] * offsets[i];
    by_noise += sigma_ * sigma_ * squares / (weight * weight);
  }
  const double real = spread > 0.0 ? std::max(0.0, 1.0 - kNoiseInDrift * by_noise / spread) : 0.0;
  for (double& offset : offsets) offset *= real;
  offsets_ = std::move(offsets);
}

void ValueModel::fit(const std::vector<Reading>& readings, std::vector<Group>& groups) {
  offsets_.resize(readings.size(), offsets_.empty() ? 0.0 : offsets_.back());
  freedom_ = std::max(3.0, static_cast<double>(readings.size()) + learnt_freedom_ - 2.0);
  // The baseline first, then what was tested most.
  std::vector<std::size_t> order(groups.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto of_baseline = [&](const Group& group) {
    return readings[group.places->front()].of_baseline;
  };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (of_baseline(groups[a]) != of_baseline(groups[b])) return of_baseline(groups[a]);
    return groups[a].places->size() > groups[b].places->size();
  });
  samples_.clear();
  sample_of_.assign(readings.size(), kNone);
  std::vector<std::size_t> sample_of_group(groups.size(), kNone);
  for (const std::size_t g : order) {
    Sample sample{.scores = {}, .wall = 0.5, .baseline = of_baseline(groups[g])};
    for (const std::size_t place : *groups[g].places) {
      const Reading& one = readings[place];
      if (one.failed || one.ignored) continue;
      sample.scores.push_back(one.score - offset(place));
      sample.wall = std::clamp(one.belief, kLeastBelief, 1.0 - kLeastBelief);
      sample_of_[place] = samples_.size();
    }
    if (sample.scores.empty()) continue;
    sample_of_group[g] = samples_.size();
    samples_.push_back(std::move(sample));
  }
  const double most = most_sigma_by_repeats();
  if (readings.size() < kManyReadings || readings.size() % 6 == 0) learn_sigma(most);
  sigma_ = std::min(sigma_, most);
  (void)log_chance_of_all(sigma_);
  mixture_.settle();
  learn_stalls(readings);
  learn_failures(readings, groups, sample_of_group);
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const std::size_t sample = sample_of_group[g];
    const double failed = failures_.evidence_of(g);
    groups[g].evidence = failed + (sample == kNone ? 0.0 : mixture_.evidence_of(sample));
    groups[g].known = sample == kNone ? 0.0 : mixture_.mean_of(sample).known;
    groups[g].by_bound = failed + (sample == kNone ? 0.0 : mixture_.evidence_by_bound(sample));
  }
  learn_drift(readings);
}

double ValueModel::drift() const {
  if (offsets_.empty()) return 0.0;
  const auto [low, high] = std::minmax_element(offsets_.begin(), offsets_.end());
  return *high - *low;
}

}  // namespace greynic::causal
