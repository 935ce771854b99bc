#include "value_model.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "greynic/core/units.h"

namespace greynic::causal {
namespace {

constexpr double kLargestScore = 7.0;   // a value of zero scores this: e^-7 is below 0.1 %
constexpr double kDeepest = 2.0;        // walls beyond the bound, in scores, before one was seen
constexpr double kStallRange = 4.0;     // a stall scores anywhere up to this
constexpr double kStallsBefore = 0.01;  // believed before any was seen,
constexpr double kStallWeight = 60.0;   // as strongly as so many tests would
constexpr double kFloor = 1e-6;         // density of what nothing else explains
constexpr double kDriftWindow = 24.0;   // tests over which a drift is followed
constexpr double kDriftWeight = 12.0;   // tests' worth of belief that there is none
constexpr double kMostSharp = 0.6;      // of walls: a further cause may be less deep than the first
constexpr double kKnownBaseline =
    0.1;  // error of its mean, as a share of what is left to the bound
constexpr int kRounds = 2;
constexpr double kUsualSigma = 0.05;  // before any test: its logarithm,
constexpr double kSigmaSpread = 1.2;  // and the spread of that
constexpr double kSigmaStep = 1.2;
constexpr double kMostLearnt = 30.0;  // degrees of freedom of what repeats said before
constexpr std::size_t kFewReadings = 40;
constexpr std::size_t kManyReadings = 80;

/// Student's density at its centre.
double student_peak(double freedom) {
  return std::exp(std::lgamma((freedom + 1.0) / 2.0) - std::lgamma(freedom / 2.0)) /
         std::sqrt(freedom * std::numbers::pi);
}

double below(double z) { return 0.5 * std::erfc(-z / std::numbers::sqrt2); }

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
  // Where nothing is positive, differences are the scores, in units of the bound.
  logarithms_ = reference > 0.0 && absolute > 0.0;
  if (!logarithms_) reference_ = std::max(std::abs(absolute), 1e-9);
}

double Scale::score(double value) const {
  if (!logarithms_) return sign_ * value / reference_;
  const double ratio = std::max(value / reference_, std::exp(-kLargestScore));
  return sign_ * std::log(ratio);
}

double Scale::value(double score) const {
  return logarithms_ ? reference_ * std::exp(sign_ * score) : sign_ * score * reference_;
}

double Scale::bound(double baseline) const {
  if (rule_.below_baseline_by) return baseline - std::log1p(-*rule_.below_baseline_by);
  if (rule_.above_baseline_by) return baseline + std::log1p(*rule_.above_baseline_by);
  return score(rule_.below ? *rule_.below : rule_.above.value_or(0.0));
}

void ValueModel::set_prior_spread(double variance, double freedom) {
  learnt_variance_ = variance;
  learnt_freedom_ = std::min(freedom, kMostLearnt);
  if (learnt_freedom_ > 0.0) sigma_ = std::max(std::sqrt(variance), 1e-6);
}

double ValueModel::peak(double distance) const {
  const double t = distance / sigma_;
  return height_ / sigma_ * std::exp(-(freedom_ + 1.0) / 2.0 * std::log1p(t * t / freedom_));
}

/// A uniform density between two scores, blurred by the noise.
double ValueModel::broad(double score, double low, double high) const {
  const double width = std::max(high - low, 1e-6);
  return (below((score - low) / sigma_) - below((score - high) / sigma_)) / width;
}

ValueModel::Shares ValueModel::densities(double score) const {
  const double room = std::max(bound_ - clear_, 1e-3);
  const double deepest = std::max(depth_ + 0.5, bound_ + kDeepest);
  const bool seen = depth_ > bound_;
  const double sharp_wall = seen ? sharp_wall_ : 0.0;
  const double regular = 1.0 - stalls_;
  Shares density;
  density.clear_sharp = regular * sharp_clear_ * peak(score - clear_);
  density.clear_broad = regular * (1.0 - sharp_clear_) * broad(score, clear_ - room, bound_);
  density.wall_sharp = seen ? regular * sharp_wall * peak(score - depth_) : 0.0;
  density.wall_broad = regular * (1.0 - sharp_wall) * broad(score, bound_, deepest);
  density.stall = stalls_ * broad(score, clear_, clear_ + kStallRange);
  return density;
}

double ValueModel::offset(std::size_t place) const {
  if (offsets_.empty()) return 0.0;
  return offsets_[std::min(place, offsets_.size() - 1)];
}

double ValueModel::log_chance(const std::vector<double>& scores, double mean) const {
  double sum = 0.0;
  for (const double score : scores) {
    const double above = score - mean;
    const bool stalled = above > 0.0 && above < kStallRange;
    sum +=
        std::log((1.0 - stalls_) * peak(above) + (stalled ? stalls_ / kStallRange : 0.0) + kFloor);
  }
  return sum;
}

/// The mean lies anywhere between two scores: the chance is the integral over it, by what the
/// scores' own centre leaves between the two. The centre is their mean or, as some may be stalls,
/// their median or the least of them.
double ValueModel::log_chance_between(const std::vector<double>& scores, double low,
                                      double high) const {
  std::vector<double> sorted = scores;
  std::sort(sorted.begin(), sorted.end());
  double sum = 0.0;
  for (const double score : scores) sum += score;
  const double count = static_cast<double>(scores.size());
  const double error = sigma_ / std::sqrt(count);
  double best = -1e300;
  for (const double centre : {sum / count, sorted[(sorted.size() - 1) / 2], sorted.front()}) {
    const double inside = below((high - centre) / error) - below((low - centre) / error);
    const double root = std::sqrt(2.0 * std::numbers::pi);
    const double share = error * root * std::max(inside, 1e-300) / std::max(high - low, 1e-6);
    best = std::max(best, log_chance(scores, centre) + std::log(share));
    if (scores.size() == 1) break;
  }
  return best;
}

ValueModel::Chances ValueModel::chances(const std::vector<double>& scores) const {
  const auto joined = [](double sharp, double one, double other) {
    const double a = one + std::log(std::max(sharp, 1e-300));
    const double b = other + std::log(1.0 - sharp);
    return std::max(a, b) + std::log1p(std::exp(-std::abs(a - b)));
  };
  const bool seen = depth_ > bound_;
  const double deepest = std::max(depth_ + 0.5, bound_ + kDeepest);
  const double room = std::max(bound_ - clear_, 1e-3);
  Chances chances;
  chances.wall = log_chance_between(scores, bound_, deepest);
  if (seen) chances.wall = joined(sharp_wall_, log_chance(scores, depth_), chances.wall);
  chances.clear = joined(sharp_clear_, log_chance(scores, clear_),
                         log_chance_between(scores, clear_ - room, bound_));
  return chances;
}

double ValueModel::evidence(const std::vector<Reading>& readings,
                            std::span<const std::size_t> places) const {
  double evidence = 0.0;
  std::vector<double> scores;
  for (const std::size_t place : places) {
    const Reading& reading = readings[place];
    if (reading.ignored) continue;
    if (reading.failed) {
      evidence += std::log(failures_wall_ / failures_clear_);
    } else {
      scores.push_back(reading.score - offset(place));
    }
  }
  if (scores.empty()) return evidence;
  const Chances chance = chances(scores);
  return evidence + chance.wall - chance.clear;
}

ValueModel::Shares ValueModel::shares_of(const Reading& reading, std::size_t place) const {
  Shares share = densities(reading.score - offset(place));
  const double wall = reading.belief;
  share.clear_sharp *= 1.0 - wall;
  share.clear_broad *= 1.0 - wall;
  share.wall_sharp *= wall;
  share.wall_broad *= wall;
  const double sum = share.clear_sharp + share.clear_broad + share.wall_sharp + share.wall_broad +
                     share.stall + kFloor;
  for (double* part : {&share.clear_sharp, &share.clear_broad, &share.wall_sharp, &share.wall_broad,
                       &share.stall}) {
    *part /= sum;
  }
  return share;
}

/// A drift moves clear and wall alike, so what remains of both tells of it.
void ValueModel::learn_drift(const std::vector<Reading>& readings,
                             const std::vector<Shares>& shares) {
  const std::size_t count = readings.size();
  std::vector<double> raw(count, 0.0);
  for (std::size_t i = 0; i < count; ++i) {
    double sum = 0.0;
    double weight = kDriftWeight;
    const std::size_t reach = static_cast<std::size_t>(2.5 * kDriftWindow);
    for (std::size_t j = i > reach ? i - reach : 0; j < std::min(count, i + reach); ++j) {
      if (readings[j].failed || readings[j].ignored) continue;
      const double apart = (static_cast<double>(i) - static_cast<double>(j)) / kDriftWindow;
      const double near = std::exp(-0.5 * apart * apart);
      sum += near * (shares[j].clear_sharp * (readings[j].score - clear_) +
                     shares[j].wall_sharp * (readings[j].score - depth_));
      weight += near * (shares[j].clear_sharp + shares[j].wall_sharp);
    }
    raw[i] = sum / weight;
  }
  offsets_ = std::move(raw);
}

/// What the bound is a share of. Where the noise is small, clear configurations differ from each
/// other by more than that, and the baseline's own tests decide.
double ValueModel::reference(const std::vector<Reading>& readings) const {
  double sum = 0.0;
  double count = 0.0;
  for (std::size_t i = 0; i < readings.size(); ++i) {
    const Reading& one = readings[i];
    if (!one.of_baseline || one.failed || one.ignored) continue;
    sum += one.score - offset(i);
    count += 1.0;
  }
  const double room = scale_.bound(clear_) - clear_;
  const bool known = count >= 3.0 && sigma_ / std::sqrt(count) < kKnownBaseline * room;
  return known ? sum / count : clear_;
}

/// The centres of clear and wall, and how often values stall, stray or fail to come.
void ValueModel::learn_rates(const std::vector<Reading>& readings) {
  double clear = 0.0, clear_all = 0.0, clear_sum = 0.0;
  double wall = 0.0, wall_all = 0.0, wall_sum = 0.0;
  double stalls = 0.0, values = 0.0, failed = 0.0, failed_wall = 0.0;
  for (std::size_t i = 0; i < readings.size(); ++i) {
    const Reading& one = readings[i];
    if (one.ignored) continue;
    if (one.failed) {
      failed += 1.0 - one.belief;
      failed_wall += one.belief;
      continue;
    }
    const Shares share = shares_of(one, i);
    const double score = one.score - offset(i);
    clear += share.clear_sharp;
    clear_sum += share.clear_sharp * score;
    clear_all += share.clear_sharp + share.clear_broad;
    // The first depth is read off whatever lies beyond the bound.
    const double deep = share.wall_sharp + (depth_ <= bound_ ? share.wall_broad : 0.0);
    wall += deep;
    wall_sum += deep * score;
    wall_all += share.wall_sharp + share.wall_broad;
    stalls += share.stall;
    values += 1.0;
  }
  if (clear > 0.0) clear_ = clear_sum / clear;
  bound_ = scale_.bound(reference(readings));
  if (wall > 0.3) depth_ = std::max(wall_sum / wall, bound_ + 1e-6);
  sharp_clear_ = std::min((clear + 4.5) / (clear_all + 5.0), 0.98);
  if (depth_ > bound_) sharp_wall_ = std::min((wall + 3.0) / (wall_all + 5.0), kMostSharp);
  stalls_ = (stalls + kStallsBefore * kStallWeight) / (values + kStallWeight);
  failures_clear_ = (failed + 0.05) / (clear_all + failed + 2.0);
  failures_wall_ = (failed_wall + 2.0 * failures_clear_) / (wall_all + failed_wall + 2.0);
}

double ValueModel::log_chance_of_all(const std::vector<Reading>& readings,
                                     const std::vector<Group>& groups, double sigma) {
  sigma_ = sigma;
  const double usual = std::log(sigma / kUsualSigma) / kSigmaSpread;
  double sum = -0.5 * usual * usual;
  sum -= learnt_freedom_ * (std::log(sigma) + 0.5 * learnt_variance_ / (sigma * sigma));
  std::vector<double> scores;
  for (const Group& group : groups) {
    scores.clear();
    for (const std::size_t place : *group.places) {
      const Reading& one = readings[place];
      if (!one.failed && !one.ignored) scores.push_back(one.score - offset(place));
    }
    if (scores.empty()) continue;
    const Chances chance = chances(scores);
    const double wall = std::log(group.wall) + chance.wall;
    const double clear = std::log(1.0 - group.wall) + chance.clear;
    sum += std::max(wall, clear) + std::log1p(std::exp(-std::abs(wall - clear)));
  }
  return sum;
}

/// The likeliest noise, whichever configurations are walls. A search from the last answer alone
/// could stay where a large noise explains away every wall that is less deep than the first.
void ValueModel::learn_sigma(const std::vector<Reading>& readings,
                             const std::vector<Group>& groups) {
  std::vector<double> candidates = {sigma_ / kSigmaStep, sigma_, sigma_ * kSigmaStep};
  if (readings.size() < kFewReadings || readings.size() % 24 == 0) {
    for (double sigma = 0.002; sigma < 0.8; sigma *= 1.5) candidates.push_back(sigma);
  }
  double best = -1e300;
  double likeliest = sigma_;
  for (const double sigma : candidates) {
    const double chance = log_chance_of_all(readings, groups, std::max(sigma, 1e-6));
    if (chance <= best) continue;
    best = chance;
    likeliest = std::max(sigma, 1e-6);
  }
  sigma_ = likeliest;
}

void ValueModel::fit(const std::vector<Reading>& readings, const std::vector<Group>& groups) {
  offsets_.resize(readings.size(), offsets_.empty() ? 0.0 : offsets_.back());
  bound_ = scale_.bound(clear_);
  freedom_ = std::max(3.0, static_cast<double>(readings.size()) + learnt_freedom_ - 2.0);
  height_ = student_peak(freedom_);
  for (int round = 0; round < kRounds; ++round) {
    learn_rates(readings);
    if (readings.size() < kManyReadings || readings.size() % 6 == 0) learn_sigma(readings, groups);
  }
  std::vector<Shares> shares(readings.size());
  for (std::size_t i = 0; i < readings.size(); ++i) {
    if (!readings[i].failed && !readings[i].ignored) shares[i] = shares_of(readings[i], i);
  }
  learn_drift(readings, shares);
}

double ValueModel::drift() const {
  if (offsets_.empty()) return 0.0;
  const auto [low, high] = std::minmax_element(offsets_.begin(), offsets_.end());
  return *high - *low;
}

}  // namespace greynic::causal
