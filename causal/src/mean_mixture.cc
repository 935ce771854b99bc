#include "mean_mixture.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>

namespace greynic::causal {
namespace {

constexpr double kDeepest = 2.0;     // walls beyond the bound, in scores, before one was seen
constexpr double kStallRange = 4.0;  // a stall scores anywhere up to this
constexpr double kFloor = 1e-6;      // density of what nothing else explains
constexpr double kStep = 1.0 / 3.0;  // between two places, in noises
constexpr double kReach = 3.0;       // standard errors around each sample
constexpr std::size_t kMostCandidates = 9;
constexpr double kClearBefore = 5.0;       // samples' worth of belief in where clear ones lie:
constexpr double kAtBaseline = 0.9;        // this share at the baseline
constexpr double kWallBefore = 2.0;        // and of belief in a new depth
constexpr double kLeastNewDepth = 0.4;     // a further cause may be less deep than the first
constexpr double kFarBelow = 0.02;         // odds below which a baseline's mean is left out
constexpr double kLeastRoom = 1e-3;

/// Student's density at its centre.
double student_peak(double freedom) {
  return std::exp(std::lgamma((freedom + 1.0) / 2.0) - std::lgamma(freedom / 2.0)) /
         std::sqrt(freedom * std::numbers::pi);
}

double below(double z) { return 0.5 * std::erfc(-z / std::numbers::sqrt2); }

}  // namespace

double log_chance(const std::vector<double>& scores, double mean, const Noise& noise) {
  const double height = (1.0 - noise.stalls) * student_peak(noise.freedom) / noise.sigma;
  double sum = 0.0;
  for (const double score : scores) {
    const double above = score - mean;
    const double t = above / noise.sigma;
    const double stall =
        above > 0.0 && above < kStallRange ? noise.stalls / kStallRange : 0.0;
    sum += std::log(height * std::exp(-(noise.freedom + 1.0) / 2.0 *
                                      std::log1p(t * t / noise.freedom)) +
                    stall + kFloor);
  }
  return sum;
}

/// Places around every sample, as near to each other as the noise lets one tell them apart.
void MeanMixture::lay_places() {
  const double step = kStep * noise_.sigma;
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
    one.log_centres.push_back(log_chance(scores, centre, noise_));
    one.scale = std::max(one.scale, one.log_centres.back());
  }
  for (const double place : places_) {
    one.at.push_back(std::exp(log_chance(scores, place, noise_) - one.scale));
  }
  return one;
}

/// The mean lies anywhere between two scores: the integral over it, by what the sample's own centre
/// leaves between the two.
double MeanMixture::between(const Likelihood& one, std::size_t count, double low,
                            double high) const {
  const double error = noise_.sigma / std::sqrt(static_cast<double>(count));
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
                                          std::size_t count,
                                          const std::vector<double>& own) const {
  const double room = std::max(candidate.bound - candidate.mean, kLeastRoom);
  double clear = 0.0, clear_held = candidate.clear;
  double wall = 0.0, wall_held = candidate.wall;
  for (std::size_t j = 0; j < places_.size(); ++j) {
    const double mine = own.empty() ? 0.0 : own[j];
    const double others = std::max(0.0, candidate.held[j] - mine);
    (j < candidate.first_wall ? clear : wall) += others * one.at[j];
    (j < candidate.first_wall ? clear_held : wall_held) -= mine;
  }
  clear_held = std::max(clear_held, 0.0);
  wall_held = std::max(wall_held, 0.0);
  Chances chance;
  const double at_baseline = one.at[candidate.place];
  const double up_to_bound =
      between(one, count, candidate.bound - 2.0 * room, candidate.bound);
  const double clear_all = kClearBefore + clear_held;
  chance.clear_new = kClearBefore * (1.0 - kAtBaseline) * up_to_bound / clear_all;
  chance.clear = (clear + kClearBefore * kAtBaseline * at_baseline) / clear_all + chance.clear_new;
  const double fresh = std::max(kLeastNewDepth, kWallBefore / (kWallBefore + wall_held));
  const double deepest = std::max(deepest_, candidate.bound + kDeepest);
  chance.wall_new = fresh * between(one, count, candidate.bound, deepest);
  chance.wall = chance.wall_new + (wall_held > 1e-9 ? (1.0 - fresh) * wall / wall_held : 0.0);
  return chance;
}

/// The sample's share of every place, in place of what it held.
void MeanMixture::hold(Candidate& candidate, const Likelihood& one, const Chances& chance,
                       double wall, std::vector<double>& own) const {
  own.resize(places_.size(), 0.0);
  const double all = (1.0 - wall) * chance.clear + wall * chance.wall;
  const double is_wall = all > 0.0 ? wall * chance.wall / all : wall;
  double near_clear = 0.0, near_wall = 0.0;  // for what no place explains yet
  double held_clear = 0.0, held_wall = 0.0;
  std::vector<double> others(places_.size());
  for (std::size_t j = 0; j < places_.size(); ++j) {
    others[j] = std::max(0.0, candidate.held[j] - own[j]);
    if (j == candidate.place) others[j] += kClearBefore * kAtBaseline;
    (j < candidate.first_wall ? near_clear : near_wall) += one.at[j];
    (j < candidate.first_wall ? held_clear : held_wall) += others[j] * one.at[j];
  }
  const double clear_new = chance.clear > 0.0 ? chance.clear_new / chance.clear : 1.0;
  const double wall_new = chance.wall > 0.0 ? chance.wall_new / chance.wall : 1.0;
  for (std::size_t j = 0; j < places_.size(); ++j) {
    const bool beyond = j >= candidate.first_wall;
    const double share = beyond ? is_wall : 1.0 - is_wall;
    const double fresh = beyond ? wall_new : clear_new;
    const double near = beyond ? near_wall : near_clear;
    const double held = beyond ? held_wall : held_clear;
    double now = 0.0;
    if (near > 1e-300) now += fresh * one.at[j] / near;
    if (held > 1e-300) now += (1.0 - fresh) * others[j] * one.at[j] / held;
    now *= share;
    candidate.held[j] += now - own[j];
    (beyond ? candidate.wall : candidate.clear) += now - own[j];
    own[j] = now;
  }
}

/// One after the other, each by those before it: the product is how likely all of them are.
double MeanMixture::walk(Candidate& candidate) const {
  double sum = 0.0;
  candidate.own.assign(samples_.size(), {});
  for (std::size_t i = 0; i < samples_.size(); ++i) {
    const Likelihood& one = likelihoods_[i];
    if (samples_[i].baseline) {
      sum += std::log(one.at[candidate.place] + 1e-300) + one.scale;
      continue;
    }
    const Chances chance =
        chances(candidate, one, samples_[i].scores.size(), candidate.own[i]);
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
      all[i] = chances(candidate, likelihoods_[i], samples_[i].scores.size(), candidate.own[i]);
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
  double error = noise_.sigma;
  if (!samples_.empty() && samples_.front().baseline) {
    const std::vector<double>& scores = samples_.front().scores;
    std::vector<double> sorted = scores;
    std::sort(sorted.begin(), sorted.end());
    for (const double score : scores) centre += score / static_cast<double>(scores.size());
    // Stalls draw the mean away; the median then tells better.
    const double median = sorted[(sorted.size() - 1) / 2];
    if (log_chance(scores, median, noise_) > log_chance(scores, centre, noise_)) centre = median;
    error = noise_.sigma / std::sqrt(static_cast<double>(scores.size()));
  }
  std::vector<std::size_t> near;
  for (std::size_t j = 0; j < places_.size(); ++j) {
    if (std::abs(places_[j] - centre) <= kReach * error + kStep * noise_.sigma) near.push_back(j);
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
  noise_ = noise;
  samples_ = samples;
  places_.clear();
  lay_places();
  deepest_ = places_.empty() ? 0.0 : places_.back();
  likelihoods_.clear();
  for (const Sample& sample : samples) likelihoods_.push_back(likelihood_of(sample.scores));
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
      add_mean(one, i);
    }
  }
  for (Mean& mean : means_) {
    if (mean.known > 1e-9) mean.value /= mean.known;
  }
  baseline_error_ = std::sqrt(std::max(0.0, square - baseline_ * baseline_));
  evidence_.resize(samples_.size());
  for (std::size_t i = 0; i < samples_.size(); ++i) {
    evidence_[i] = std::log(wall[i]) - std::log(clear[i]);
  }
}

/// Of a place that others hold too.
void MeanMixture::add_mean(const Candidate& one, std::size_t i) {
  if (samples_[i].baseline) {
    means_[i].value += one.odds * one.mean;
    means_[i].known += one.odds;
    return;
  }
  for (std::size_t j = 0; j < places_.size(); ++j) {
    const double mine = one.own[i][j];
    const double others =
        one.held[j] - mine + (j == one.place ? kClearBefore * kAtBaseline : 0.0);
    if (others < mine) continue;
    means_[i].value += one.odds * mine * places_[j];
    means_[i].known += one.odds * mine;
  }
}

double MeanMixture::evidence(const std::vector<double>& scores) const {
  const Likelihood one = likelihood_of(scores);
  double clear = 1e-300, wall = 1e-300;
  for (const Candidate& candidate : candidates_) {
    const Chances chance = chances(candidate, one, scores.size(), {});
    clear += candidate.odds * chance.clear;
    wall += candidate.odds * chance.wall;
  }
  return std::log(wall) - std::log(clear);
}

}  // namespace greynic::causal
