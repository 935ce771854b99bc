#include "mean_mixture.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>

namespace greynic::causal {
namespace {

constexpr double kStep = 1.0 / 3.0;  // between two places, in noises
constexpr double kReach = 3.0;       // standard errors around each sample
constexpr double kWindow = 6.0;      // noises from a score beyond which only a stall explains it
constexpr std::size_t kEntries = 640;
constexpr double kPerNoise = 16.0;  // entries of the table for one noise
constexpr std::size_t kMostCandidates = 9;
constexpr double kClearBefore = 5.0;    // samples' worth of belief in where clear ones lie:
constexpr double kAtBaseline = 0.9;     // this share at the baseline
constexpr double kOwnMean = 0.1;        // odds of a mean near the bound, where many lie there
constexpr double kWallInMixture = 2.0;  // and of belief in a new depth
constexpr double kLeastNewDepth = 0.4;  // a further cause may be less deep than the first
constexpr double kFarBelow = 0.02;      // odds below which a baseline's mean is left out
constexpr double kLeastRoom = 1e-3;

/// Student's density at its centre.
double student_peak(double freedom) {
  return std::exp(std::lgamma((freedom + 1.0) / 2.0) - std::lgamma(freedom / 2.0)) /
         std::sqrt(freedom * std::numbers::pi);
}

double below(double z) { return 0.5 * std::erfc(-z / std::numbers::sqrt2); }

}  // namespace

NoiseTable::NoiseTable(const Noise& noise) : sigma_(noise.sigma) {
  const double height = (1.0 - noise.stalls) * student_peak(noise.freedom) / noise.sigma;
  for (std::size_t i = 0; i <= kEntries + 1; ++i) {
    const double t = static_cast<double>(i) / kPerNoise;
    const double peak =
        height * std::exp(-(noise.freedom + 1.0) / 2.0 * std::log1p(t * t / noise.freedom));
    plain_.push_back(std::log(peak + noise.floor));
    stalled_.push_back(std::log(peak + noise.floor + noise.stalls / kStallRange));
  }
}

double NoiseTable::log_chance(std::span<const double> scores, double mean) const {
  double sum = 0.0;
  for (const double score : scores) {
    const double above = score - mean;
    const auto& table = above > 0.0 && above < kStallRange ? stalled_ : plain_;
    const double place =
        std::min(std::abs(above) / sigma_ * kPerNoise, static_cast<double>(kEntries));
    const std::size_t whole = static_cast<std::size_t>(place);
    const double part = place - static_cast<double>(whole);
    sum += table[whole] + part * (table[whole + 1] - table[whole]);
  }
  return sum;
}

/// Places around every sample, as near to each other as the noise lets one tell them apart.
void MeanMixture::lay_places() {
  const double step = kStep * noise_.sigma();
  std::set<long> keys;
  for (const Sample& sample : samples_) {
    const double reach = kReach / std::sqrt(static_cast<double>(sample.scores.size())) / kStep;
    const long wide = std::lround(std::ceil(reach));
    for (const double centre : likelihood_of(sample.scores).centres) {
      const long key = std::lround(centre / step);
      for (long k = key - wide; k <= key + wide; ++k) keys.insert(k);
    }
  }
  places_.clear();
  for (const long key : keys) places_.push_back(static_cast<double>(key) * step);
}

/// The centre of a sample is its mean or, as some may be stalls, its median or the least of it.
MeanMixture::Likelihood MeanMixture::likelihood_of(const std::vector<double>& scores) const {
  std::vector<double> sorted = scores;
  std::sort(sorted.begin(), sorted.end());
  double sum = 0.0;
  for (const double score : scores) sum += score;
  Likelihood one;
  one.centres = {sum / static_cast<double>(scores.size())};
  if (scores.size() > 1) {
    one.centres.push_back(sorted[(sorted.size() - 1) / 2]);
    one.centres.push_back(sorted.front());
  }
  one.scale = -std::numeric_limits<double>::infinity();
  for (const double centre : one.centres) {
    one.log_centres.push_back(noise_.log_chance(scores, centre));
    one.scale = std::max(one.scale, one.log_centres.back());
  }
  return one;
}

void MeanMixture::add_places(Likelihood& one, const std::vector<double>& scores) const {
  const auto [low, high] = std::minmax_element(scores.begin(), scores.end());
  const double reach = kWindow * noise_.sigma();
  const auto first = std::lower_bound(places_.begin(), places_.end(), *low - reach);
  const auto last = std::upper_bound(places_.begin(), places_.end(), *high + reach);
  one.first = static_cast<std::size_t>(first - places_.begin());
  for (auto place = first; place != last; ++place) {
    one.at.push_back(std::exp(noise_.log_chance(scores, *place) - one.scale));
  }
  if (scores.size() > 1) return;
  one.elsewhere = std::exp(noise_.log_chance(scores, *low - 2.0 * reach) - one.scale);
}

/// The mean lies anywhere between two scores: the integral over it, by what the sample's own centre
/// leaves between the two.
double MeanMixture::between(const Likelihood& one, std::size_t count, double low,
                            double high) const {
  const double error = noise_.sigma() / std::sqrt(static_cast<double>(count));
  const double root = std::sqrt(2.0 * std::numbers::pi);
  double best = 1e-300;
  for (std::size_t i = 0; i < one.centres.size(); ++i) {
    const double inside =
        below((high - one.centres[i]) / error) - below((low - one.centres[i]) / error);
    best = std::max(best, std::exp(one.log_centres[i] - one.scale) * error * root *
                              std::max(inside, 0.0) / std::max(high - low, 1e-6));
  }
  return best;
}

/// `own`: what the sample itself holds, left out; empty where it holds nothing.
MeanMixture::Chances MeanMixture::chances(const Candidate& candidate, const Likelihood& one,
                                          const std::vector<double>& scores,
                                          const std::vector<double>& own) const {
  const double room = std::max(candidate.bound - candidate.mean, kLeastRoom);
  // Of the places near it, on either side of the bound: what others hold, and what that explains.
  double held[2] = {0.0, 0.0}, mine[2] = {0.0, 0.0}, explained[2] = {0.0, 0.0};
  const std::size_t last = one.first + one.at.size();
  const std::size_t part = std::clamp(candidate.first_wall, one.first, last);
  for (const bool beyond : {false, true}) {
    for (std::size_t j = beyond ? part : one.first; j < (beyond ? last : part); ++j) {
      const double self = own.empty() ? 0.0 : own[j - one.first];
      held[beyond] += candidate.held[j];
      mine[beyond] += self;
      explained[beyond] += (candidate.held[j] - self) * one.at[j - one.first];
    }
  }
  const double clear_held = std::max(candidate.clear - mine[0], 0.0);
  const double wall_held = std::max(candidate.wall - mine[1], 0.0);
  explained[0] += one.elsewhere * std::max(0.0, candidate.clear - held[0]);
  const bool near = candidate.place >= one.first && candidate.place < last;
  const double at_baseline = near ? one.at[candidate.place - one.first]
                                  : std::exp(noise_.log_chance(scores, candidate.mean) - one.scale);
  const std::size_t count = scores.size();
  Chances chance;
  const double clear_all = kClearBefore + clear_held;
  chance.clear_new = kClearBefore * (1.0 - kAtBaseline) / clear_all *
                     between(one, count, candidate.bound - 2.0 * room, candidate.bound);
  chance.clear =
      (std::max(0.0, explained[0]) + kClearBefore * kAtBaseline * at_baseline) / clear_all +
      chance.clear_new;
  const double fresh = std::max(kLeastNewDepth, kWallInMixture / (kWallInMixture + wall_held));
  // The wall itself has all causes, so no other is much deeper than what was seen.
  const double deepest = std::max(deepest_, candidate.bound + room);
  chance.wall_new = fresh * between(one, count, candidate.bound, deepest);
  chance.wall = chance.wall_new;
  if (wall_held > 1e-9) chance.wall += (1.0 - fresh) * std::max(0.0, explained[1]) / wall_held;
  return chance;
}

/// The sample's share of every place, in place of what it held.
void MeanMixture::hold(Candidate& candidate, const Likelihood& one, const Chances& chance,
                       double wall, std::vector<double>& own) const {
  own.resize(one.at.size(), 0.0);
  const double all = (1.0 - wall) * chance.clear + wall * chance.wall;
  const double is_wall = all > 0.0 ? wall * chance.wall / all : wall;
  const std::size_t last = one.first + one.at.size();
  const std::size_t part = std::clamp(candidate.first_wall, one.first, last);
  const auto others = [&](std::size_t j) {
    return std::max(0.0, candidate.held[j] - own[j - one.first]) +
           (j == candidate.place ? kClearBefore * kAtBaseline : 0.0);
  };
  for (const bool beyond : {false, true}) {
    const std::size_t begin = beyond ? part : one.first;
    const std::size_t end = beyond ? last : part;
    double near = 0.0;  // for what no place explains yet
    double known = 0.0;
    for (std::size_t j = begin; j < end; ++j) {
      near += one.at[j - one.first];
      known += others(j) * one.at[j - one.first];
    }
    const double side = beyond ? chance.wall : chance.clear;
    const double fresh = side > 0.0 ? (beyond ? chance.wall_new : chance.clear_new) / side : 1.0;
    const double share = beyond ? is_wall : 1.0 - is_wall;
    const double of_near = near > 1e-300 ? share * fresh / near : 0.0;
    const double of_known = known > 1e-300 ? share * (1.0 - fresh) / known : 0.0;
    double& sum = beyond ? candidate.wall : candidate.clear;
    for (std::size_t j = begin; j < end; ++j) {
      const double now = one.at[j - one.first] * (of_near + of_known * others(j));
      const double more = now - own[j - one.first];
      candidate.held[j] += more;
      sum += more;
      own[j - one.first] = now;
    }
  }
}

/// One after the other, each by those before it: the product is how likely all of them are.
double MeanMixture::walk(Candidate& candidate) const {
  double sum = 0.0;
  candidate.own.assign(samples_.size(), {});
  for (std::size_t i = 0; i < samples_.size(); ++i) {
    const Likelihood& one = likelihoods_[i];
    if (samples_[i].baseline) {
      sum += noise_.log_chance(samples_[i].scores, candidate.mean);
      continue;
    }
    const Chances chance = chances(candidate, one, samples_[i].scores, candidate.own[i]);
    sum += std::log(0.5 * (chance.clear + chance.wall) + 1e-300) + one.scale;
    hold(candidate, one, chance, samples_[i].wall, candidate.own[i]);
  }
  return sum;
}

/// Once more, each by all others.
std::vector<MeanMixture::Chances> MeanMixture::refine(Candidate& candidate) const {
  std::vector<Chances> all(samples_.size());
  for (int round = 0; round < 2; ++round) {
    for (std::size_t i = 0; i < samples_.size(); ++i) {
      all[i] = chances(candidate, likelihoods_[i], samples_[i].scores, candidate.own[i]);
      if (samples_[i].baseline || round > 0) continue;
      hold(candidate, likelihoods_[i], all[i], samples_[i].wall, candidate.own[i]);
    }
  }
  return all;
}

/// Means of the baseline that its own tests allow.
std::vector<MeanMixture::Candidate> MeanMixture::candidates(
    const std::function<double(double)>& bound) const {
  double centre = 0.0;
  double error = noise_.sigma();
  if (!samples_.empty() && samples_.front().baseline) {
    const std::vector<double>& scores = samples_.front().scores;
    std::vector<double> sorted = scores;
    std::sort(sorted.begin(), sorted.end());
    for (const double score : scores) centre += score / static_cast<double>(scores.size());
    // Stalls draw the mean away; the median then tells better.
    const double median = sorted[(sorted.size() - 1) / 2];
    if (noise_.log_chance(scores, median) > noise_.log_chance(scores, centre)) centre = median;
    error = noise_.sigma() / std::sqrt(static_cast<double>(scores.size()));
  }
  std::vector<std::size_t> near;
  for (std::size_t j = 0; j < places_.size(); ++j) {
    if (std::abs(places_[j] - centre) <= kReach * error + kStep * noise_.sigma()) near.push_back(j);
  }
  const std::size_t step = near.size() / kMostCandidates + 1;
  std::vector<Candidate> all;
  for (std::size_t k = (near.size() - 1) % step / 2; k < near.size(); k += step) {
    Candidate one;
    one.place = near[k];
    one.mean = places_[near[k]];
    one.bound = std::max(bound(one.mean), one.mean + kLeastRoom);
    one.first_wall = static_cast<std::size_t>(
        std::upper_bound(places_.begin(), places_.end(), one.bound) - places_.begin());
    one.held.assign(places_.size(), 0.0);
    all.push_back(std::move(one));
  }
  return all;
}

double MeanMixture::fit(const std::vector<Sample>& samples, const Noise& noise,
                        const std::function<double(double)>& bound) {
  noise_ = NoiseTable(noise);
  samples_ = samples;
  places_.clear();
  lay_places();
  deepest_ = places_.empty() ? 0.0 : places_.back();
  likelihoods_.clear();
  for (const Sample& sample : samples) {
    likelihoods_.push_back(likelihood_of(sample.scores));
    add_places(likelihoods_.back(), sample.scores);
  }
  candidates_ = candidates(bound);
  double best = -1e300;
  for (Candidate& one : candidates_) best = std::max(best, one.odds = walk(one));
  double all = 0.0;
  for (Candidate& one : candidates_) all += one.odds = std::exp(one.odds - best);
  for (Candidate& one : candidates_) one.odds /= all;
  const double least = kFarBelow / static_cast<double>(candidates_.size());
  const double total = best + std::log(all / static_cast<double>(candidates_.size()));
  std::erase_if(candidates_, [&](const Candidate& one) { return one.odds < least; });
  return total;
}

void MeanMixture::settle() {
  std::vector<double> clear(samples_.size(), 1e-300), wall(samples_.size(), 1e-300);
  std::vector<double> clear_near = clear, wall_near = wall;
  means_.assign(samples_.size(), {});
  baseline_ = 0.0;
  double square = 0.0;
  for (Candidate& one : candidates_) {
    baseline_ += one.odds * one.mean;
    square += one.odds * one.mean * one.mean;
    const std::vector<Chances> chance = refine(one);
    for (std::size_t i = 0; i < samples_.size(); ++i) {
      // What the sample itself says of the baseline's mean is taken out again.
      const double both = std::max(0.5 * (chance[i].clear + chance[i].wall), 1e-300);
      clear[i] += one.odds * chance[i].clear / both;
      wall[i] += one.odds * chance[i].wall / both;
      const std::size_t count = samples_[i].scores.size();
      const double room = std::max(one.bound - one.mean, kLeastRoom);
      const auto near_bound = [&](double usual, double low, double high) {
        const double own = between(likelihoods_[i], count, low, high);
        return one.odds * ((1.0 - kOwnMean) * usual + kOwnMean * own) / both;
      };
      clear_near[i] += near_bound(chance[i].clear, one.bound - room, one.bound);
      wall_near[i] += near_bound(chance[i].wall, one.bound, one.bound + room);
      add_mean(one, i);
    }
  }
  for (Mean& mean : means_) {
    if (mean.known > 1e-9) mean.value /= mean.known;
  }
  baseline_error_ = std::sqrt(std::max(0.0, square - baseline_ * baseline_));
  evidence_.resize(samples_.size());
  by_bound_.resize(samples_.size());
  for (std::size_t i = 0; i < samples_.size(); ++i) {
    evidence_[i] = std::log(wall[i]) - std::log(clear[i]);
    by_bound_[i] = std::log(wall_near[i]) - std::log(clear_near[i]);
  }
}

/// Of a place that others hold too.
void MeanMixture::add_mean(const Candidate& one, std::size_t i) {
  if (samples_[i].baseline) {
    means_[i].value += one.odds * one.mean;
    means_[i].known += one.odds;
    return;
  }
  const std::size_t first = likelihoods_[i].first;
  for (std::size_t j = first; j < first + likelihoods_[i].at.size(); ++j) {
    const double mine = one.own[i][j - first];
    const double others = one.held[j] - mine + (j == one.place ? kClearBefore * kAtBaseline : 0.0);
    if (others < mine) continue;
    means_[i].value += one.odds * mine * places_[j];
    means_[i].known += one.odds * mine;
  }
}

double MeanMixture::evidence(const std::vector<double>& scores) const {
  Likelihood one = likelihood_of(scores);
  add_places(one, scores);
  double clear = 1e-300, wall = 1e-300;
  for (const Candidate& candidate : candidates_) {
    const Chances chance = chances(candidate, one, scores, {});
    clear += candidate.odds * chance.clear;
    wall += candidate.odds * chance.wall;
  }
  return std::log(wall) - std::log(clear);
}

}  // namespace greynic::causal
