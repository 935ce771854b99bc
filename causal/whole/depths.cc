#include "depths.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

namespace greynic::causal {
namespace {

constexpr double kStallShare = 0.015;
constexpr double kStallBelief = 40.0;
constexpr double kRest = 1e-4;            // density of what nothing explains
constexpr double kNearlyNormal = 1000.0;  // degrees of freedom
constexpr double kOwnClear = 0.03;        // share of clear configurations with a mean of their own
constexpr double kNewDepth = 0.12;        // share of walls with a depth not seen before
constexpr int kGrid = 16;
constexpr double kMeanStep = 0.4;  // standard errors
constexpr double kUsualNoise = 0.05;
constexpr double kNoiseBelief = 1.0;
constexpr double kLeastNoise = 0.002;
constexpr std::size_t kMostDepths = 6;
constexpr int kRounds = 3;
constexpr int kBaselines = 4;  // of views, on each side of what the baseline's own tests say,
constexpr double kBaselineStep = 0.7;  // standard errors apart
constexpr double kDepthStep = 0.35;    // noises
constexpr int kMostDepthsOfView = 8;
constexpr double kLeastBeyond = 1e-3;  // from a baseline to its bound
constexpr double kPartsOfWalls[] = {1.0 / 6.0, 0.5, 5.0 / 6.0};

double log_sum(double a, double b) {
  return std::max(a, b) + std::log1p(std::exp(-std::abs(a - b)));
}

}  // namespace

Depths::Depths(double baseline, double depth, double sigma, std::function<double(double)> bound)
    : bound_(std::move(bound)),
      baseline_(baseline),
      depths_({{depth, 1.0}}),
      sigma_(sigma),
      spread_(sigma) {
  make_table();
}

double Depths::shallowest() const {
  double least = depths_.front().mean;
  for (const Depth& one : depths_) least = std::min(least, one.mean);
  return std::max(least, bound_(baseline_));
}

void Depths::make_table() {
  table_ =
      NoiseTable({.sigma = spread_, .freedom = kNearlyNormal, .stalls = stalls_, .floor = kRest});
}

/// The chance that a test did not stall, if its configuration has this mean.
double Depths::own_share(double score, double mean) const {
  const double z = (score - mean) / spread_;
  const double own = (1.0 - stalls_) * 0.398942 / spread_ * std::exp(-0.5 * z * z);
  return std::min(1.0, own / std::exp(table_.log_chance({&score, 1}, mean)));
}

/// Any mean between two scores.
double Depths::between(const std::vector<double>& scores, double low, double high) const {
  const int count = std::clamp(static_cast<int>(2.0 * (high - low) / spread_), kGrid, 8 * kGrid);
  std::array<double, 8 * kGrid> at{};
  for (int i = 0; i < count; ++i) {
    at[static_cast<std::size_t>(i)] =
        table_.log_chance(scores, low + (high - low) * (i + 0.5) / count);
  }
  const double best = *std::max_element(at.begin(), at.begin() + count);
  double sum = 0.0;
  for (int i = 0; i < count; ++i) sum += std::exp(at[static_cast<std::size_t>(i)] - best);
  return best + std::log(sum / count);
}

Depths::Chances Depths::chances(const Tested& one) const {
  Chances chances;
  const double bound = bound_(baseline_);
  const double home = table_.log_chance(one.scores, baseline_) + std::log(1.0 - kOwnClear);
  const double own =
      between(one.scores, baseline_, std::max(bound, baseline_ + 1e-3)) + std::log(kOwnClear);
  chances.clear = log_sum(home, own);
  chances.at_baseline = std::exp(home - chances.clear);
  // The wall itself has all causes, so no other is much deeper than what was seen.
  // But one that something else in it held back may be.
  double deepest = std::max(2.0 * bound - baseline_, repeated_ + 2.0 * spread_);
  for (const Depth& depth : depths_) deepest = std::max(deepest, depth.mean + 2.0 * spread_);
  const double fresh = between(one.scores, bound, deepest) + std::log(kNewDepth);
  chances.wall = fresh;
  for (const Depth& depth : depths_) {
    chances.at_depth.push_back(table_.log_chance(one.scores, depth.mean) +
                               std::log((1.0 - kNewDepth) * depth.share));
    chances.wall = log_sum(chances.wall, chances.at_depth.back());
  }
  for (double& share : chances.at_depth) share = std::exp(share - chances.wall);
  chances.fresh = std::exp(fresh - chances.wall);
  return chances;
}

/// A stall is no depth, and hardly ever shows twice.
void Depths::look_how_deep(const std::vector<Tested>& all) {
  repeated_ = baseline_;
  for (const Tested& one : all) {
    if (one.scores.size() < 2) continue;
    std::vector<double> sorted = one.scores;
    std::sort(sorted.begin(), sorted.end());
    repeated_ = std::max(repeated_, sorted[(sorted.size() - 1) / 2]);
  }
}

void Depths::learn(const std::vector<Tested>& all) {
  const std::size_t count = depths_.size() + 1;  // the last is the baseline
  std::vector<double> weights(count, 0.0), sums(count, 0.0), configurations(count, 0.0);
  double values = 0.0, stalled = 0.0;
  double failed[2] = {0.0, 0.0}, told[2] = {0.0, 0.0};
  std::vector<Chances> chances_of;
  const auto each = [&](const auto& visit) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      const Chances& chances = chances_of[i];
      for (std::size_t k = 0; k < count; ++k) {
        const bool clear = k + 1 == count;
        const double share =
            clear ? (1.0 - all[i].wall) * chances.at_baseline : all[i].wall * chances.at_depth[k];
        const double mean = clear ? baseline_ : depths_[k].mean;
        if (share > 1e-6) visit(all[i], k, share, mean);
      }
    }
  };
  for (const Tested& one : all) {
    chances_of.push_back(chances(one));
    failed[0] += (1.0 - one.wall) * one.failures;
    failed[1] += one.wall * one.failures;
    told[0] += (1.0 - one.wall) * static_cast<double>(one.scores.size());
    told[1] += one.wall * static_cast<double>(one.scores.size());
  }
  each([&](const Tested& one, std::size_t k, double share, double mean) {
    configurations[k] += share;
    for (const double score : one.scores) {
      const double own = share * own_share(score, mean);
      weights[k] += own;
      sums[k] += own * score;
      values += share;
      stalled += share - own;
    }
  });
  double squares = kNoiseBelief * kUsualNoise * kUsualNoise;
  double freedom = kNoiseBelief;
  const double bound = bound_(baseline_);
  double walls = 1e-9;
  for (std::size_t k = 0; k < depths_.size(); ++k) walls += configurations[k] + 0.5;
  for (std::size_t k = 0; k < depths_.size(); ++k) {
    if (weights[k] > 0.5) depths_[k].mean = std::max(sums[k] / weights[k], bound);
    depths_[k].share = (configurations[k] + 0.5) / walls;
  }
  if (weights.back() > 0.5) baseline_ = sums.back() / weights.back();
  each([&](const Tested& one, std::size_t k, double share, double) {
    const double now = k + 1 == count ? baseline_ : depths_[k].mean;
    for (const double score : one.scores) {
      const double own = share * own_share(score, now);
      squares += own * (score - now) * (score - now);
      freedom += own;
    }
  });
  for (const double weight : weights) freedom -= std::min(1.0, weight);
  freedom = std::max(freedom, 1.0);
  sigma_ = std::max(std::sqrt(squares / freedom), kLeastNoise);
  spread_ = sigma_ * std::sqrt((freedom + 3.0) / (freedom + 1.0));
  baseline_error_ = spread_ / std::sqrt(std::max(0.5, weights.back()));
  depth_error_ =
      spread_ / std::sqrt(std::max(0.5, *std::max_element(weights.begin(), weights.end() - 1)));
  stalls_ = (stalled + kStallShare * kStallBelief) / (values + kStallBelief);
  make_table();
  fails_clear_ = (failed[0] + 0.05) / (told[0] + failed[0] + 2.0);
  fails_wall_ = (failed[1] + 2.0 * fails_clear_) / (told[1] + failed[1] + 2.0);
}

/// A wall whose mean no depth explains brings its own.
void Depths::new_depth(const std::vector<Tested>& all) {
  if (depths_.size() >= kMostDepths) return;
  double most = 0.6;
  const Tested* best = nullptr;
  for (const Tested& one : all) {
    if (one.wall < 0.8 || one.scores.empty()) continue;
    const double fresh = one.wall * chances(one).fresh;
    if (fresh <= most) continue;
    most = fresh;
    best = &one;
  }
  if (best == nullptr) return;
  std::vector<double> sorted = best->scores;
  std::sort(sorted.begin(), sorted.end());
  depths_.push_back({std::max(sorted[(sorted.size() - 1) / 2], bound_(baseline_)), 0.1});
}

/// Depths that noise does not tell apart are one.
void Depths::join_depths() {
  for (std::size_t a = 0; a < depths_.size(); ++a) {
    for (std::size_t b = depths_.size(); b-- > a + 1;) {
      if (std::abs(depths_[a].mean - depths_[b].mean) > sigma_) continue;
      const double share = depths_[a].share + depths_[b].share;
      depths_[a].mean =
          (depths_[a].share * depths_[a].mean + depths_[b].share * depths_[b].mean) / share;
      depths_[a].share = share;
      depths_.erase(depths_.begin() + static_cast<std::ptrdiff_t>(b));
    }
  }
}

double Depths::log_chance(const std::vector<Tested>& all) const {
  const double z = std::log(sigma_ / kUsualNoise);
  double sum = -0.5 * kNoiseBelief * z * z;
  for (const Tested& one : all) {
    const Chances chance = chances(one);
    const bool wall = one.wall > 0.5;
    sum += wall ? chance.wall : chance.clear;
    sum += one.failures * std::log(wall ? fails_wall_ : fails_clear_);
  }
  return sum;
}

/// From the scores alone: clear ones have one mean, walls lie about three parts of theirs.
void Depths::begin_anew(const std::vector<Tested>& all) {
  std::vector<double> clear, walls;
  for (const Tested& one : all) {
    std::vector<double>& into = one.wall > 0.5 ? walls : clear;
    into.insert(into.end(), one.scores.begin(), one.scores.end());
  }
  if (clear.empty() || walls.empty()) return;
  std::sort(clear.begin(), clear.end());
  std::sort(walls.begin(), walls.end());
  baseline_ = clear[(clear.size() - 1) / 2];
  depths_.clear();
  for (const double part : kPartsOfWalls) {
    const auto place = static_cast<std::size_t>(part * static_cast<double>(walls.size() - 1));
    depths_.push_back({std::max(walls[place], bound_(baseline_)), 1.0 / std::size(kPartsOfWalls)});
  }
}

/// The causes that hold set the depth: one mean for each set of causes, and few configurations with a
/// mean of their own. Which depth a wall has is then no matter of chance, so an answer pays for each
/// mean once, and not at each wall.
double Depths::log_chance_by_causes(const std::vector<Tested>& all) {
  struct SameCauses {
    std::vector<double> scores;
    double mean = 0.0;
  };
  std::map<std::uint32_t, SameCauses> groups;
  for (const Tested& one : all) {
    std::vector<double>& into = groups[one.causes].scores;
    into.insert(into.end(), one.scores.begin(), one.scores.end());
  }
  double deepest = bound_(baseline_);
  for (auto& [causes, group] : groups) {
    if (group.scores.empty()) continue;
    std::sort(group.scores.begin(), group.scores.end());
    group.mean = group.scores[(group.scores.size() - 1) / 2];
    deepest = std::max(deepest, group.mean + 2.0 * spread_);
  }
  for (int round = 0; round < kRounds; ++round) {
    double squares = kNoiseBelief * kUsualNoise * kUsualNoise;
    double freedom = kNoiseBelief;
    for (auto& [causes, group] : groups) {
      double weight = 1e-9, sum = 0.0;
      for (const double score : group.scores) {
        const double own = own_share(score, group.mean);
        weight += own;
        sum += own * score;
      }
      if (weight > 0.5) group.mean = sum / weight;
      if (causes == 0) baseline_ = group.mean;
      for (const double score : group.scores) {
        squares += own_share(score, group.mean) * (score - group.mean) * (score - group.mean);
      }
      freedom += weight - std::min(1.0, weight);
    }
    for (auto& [causes, group] : groups) {
      if (causes != 0) group.mean = std::max(group.mean, bound_(baseline_));
    }
    sigma_ = std::max(std::sqrt(squares / std::max(1.0, freedom)), kLeastNoise);
    spread_ = sigma_;
    make_table();
  }
  const double bound = std::max(bound_(baseline_), baseline_ + 1e-3);
  const double z = std::log(sigma_ / kUsualNoise);
  double sum = -0.5 * kNoiseBelief * z * z;
  for (const auto& [causes, group] : groups) {  // what its mean costs
    if (causes == 0 || group.scores.empty()) continue;
    const double places = (deepest - bound) / spread_ * std::sqrt(group.scores.size());
    sum -= std::log(std::max(2.0, places));
  }
  for (const Tested& one : all) {
    const bool wall = one.causes != 0;
    const double home = table_.log_chance(one.scores, groups[one.causes].mean);
    const double own = wall ? between(one.scores, bound, std::max(deepest, bound + spread_))
                            : between(one.scores, baseline_, bound);
    sum += log_sum(home + std::log(1.0 - kOwnClear), own + std::log(kOwnClear));
    sum += one.failures * std::log(wall ? fails_wall_ : fails_clear_);
  }
  return sum;
}

/// From what was learned last, and from nothing: what passed for clear may be walls less deep than all
/// that were seen, and no small step leads there.
double Depths::by_own(const std::vector<Tested>& all) const {
  double best = log_chance(all);
  for (const bool anew : {false, true}) {
    Depths own = *this;
    if (anew) own.begin_anew(all);
    for (int round = 0; round < kRounds; ++round) {
      own.learn(all);
      best = std::max(best, own.log_chance(all));
    }
    best = std::max(best, own.log_chance_by_causes(all));
  }
  return best;
}

double Depths::odds_beside(const std::vector<double>& of_baseline,
                           const std::vector<double>& scores) const {
  if (of_baseline.empty() || scores.empty()) return 0.0;
  std::vector<double> sorted = of_baseline;
  std::sort(sorted.begin(), sorted.end());
  const double middle = sorted[(sorted.size() - 1) / 2];
  const double step = kMeanStep * spread_ / std::sqrt(static_cast<double>(sorted.size()));
  double clear = -1e300;
  double wall = -1e300;
  for (int m = -kGrid / 2; m <= kGrid / 2; ++m) {
    const double mean = middle + m * step;
    const double here = table_.log_chance(of_baseline, mean);
    const double bound = bound_(mean);
    const double deepest = std::max(shallowest(), bound + 0.1 * spread_);
    clear = log_sum(clear, here + table_.log_chance(scores, mean));
    wall = log_sum(wall, here + between(scores, bound, deepest));
  }
  return wall - clear;
}

/// About the mean of the baseline's own tests, as far as these leave it open: what is clear by some answer
/// says nothing of it here.
std::vector<double> Depths::baselines_of_views(const std::vector<Tested>& all) const {
  const auto own = std::find_if(all.begin(), all.end(), [](const Tested& one) {
    return one.of_baseline && !one.scores.empty();
  });
  if (own == all.end()) return {baseline_};
  std::vector<double> scores = own->scores;
  std::sort(scores.begin(), scores.end());
  double mean = scores[(scores.size() - 1) / 2];
  double weight = 0.0;
  for (int round = 0; round < kRounds; ++round) {
    double sum = 0.0;
    weight = 0.0;
    for (const double score : scores) {
      const double share = own_share(score, mean);
      weight += share;
      sum += share * score;
    }
    if (weight > 0.5) mean = sum / weight;
  }
  const double step = kBaselineStep * spread_ / std::sqrt(std::max(1.0, weight));
  std::vector<double> baselines;
  for (int i = -kBaselines; i <= kBaselines; ++i) baselines.push_back(mean + i * step);
  return baselines;
}

/// Of the depth that most walls have: as it was learned, and all along from the bound to the deepest.
std::vector<double> Depths::depths_of_views(double learned, double bound, double deepest) const {
  std::vector<double> depths = {std::max(learned, bound)};
  const double range = std::max(deepest - bound, 0.0);
  const int count =
      std::clamp(static_cast<int>(range / (kDepthStep * spread_)), 2, kMostDepthsOfView);
  for (int i = 0; i < count; ++i) depths.push_back(bound + range * (i + 0.5) / count);
  return depths;
}

/// The other depths move along with that one.
Views Depths::views(const std::vector<Tested>& all) const {
  const auto main =
      std::max_element(depths_.begin(), depths_.end(),
                       [](const Depth& a, const Depth& b) { return a.share < b.share; });
  double deepest = bound_(baseline_);
  for (const Depth& one : depths_) deepest = std::max(deepest, one.mean);
  deepest += 2.0 * std::min(spread_, depth_error_);
  const double z = std::log(sigma_ / kUsualNoise);
  double always = -0.5 * kNoiseBelief * z * z;
  for (const Tested& one : all) always += one.failures * std::log(fails_clear_);
  const double of_failure = std::log(fails_wall_ / fails_clear_);
  Views views;
  for (const double baseline : baselines_of_views(all)) {
    const double bound = std::max(bound_(baseline), baseline + kLeastBeyond);
    const double below = std::max({deepest, repeated_ + 2.0 * spread_, 2.0 * bound - baseline});
    std::vector<double> clear, fresh;
    double if_none = always;
    for (const Tested& one : all) {
      const double home = table_.log_chance(one.scores, baseline) + std::log(1.0 - kOwnClear);
      const double own = between(one.scores, baseline, bound) + std::log(kOwnClear);
      clear.push_back(one.of_baseline ? home : log_sum(home, own));
      fresh.push_back(between(one.scores, bound, below) + std::log(kNewDepth));
      if_none += clear.back();
    }
    const std::vector<double> depths = depths_of_views(main->mean, bound, deepest);
    for (const double depth : depths) {
      views.baselines.push_back(baseline);
      views.clear.push_back(if_none - std::log(static_cast<double>(depths.size())));
      std::vector<double>& evidence = views.evidence.emplace_back();
      for (std::size_t i = 0; i < all.size(); ++i) {
        double wall = fresh[i];
        for (const Depth& one : depths_) {
          const double mean = std::max(one.mean + depth - main->mean, bound);
          wall = log_sum(wall, table_.log_chance(all[i].scores, mean) +
                                   std::log((1.0 - kNewDepth) * one.share));
        }
        evidence.push_back(wall - clear[i] + all[i].failures * of_failure);
      }
    }
  }
  return views;
}

void Depths::judge(std::vector<Tested>& all) const {
  for (Tested& one : all) {
    const Chances chance = chances(one);
    one.evidence = chance.wall - chance.clear + one.failures * std::log(fails_wall_ / fails_clear_);
  }
}

void Depths::fit(std::vector<Tested>& all) {
  look_how_deep(all);
  for (int round = 0; round < kRounds; ++round) learn(all);
  join_depths();
  new_depth(all);
  judge(all);
}

}  // namespace greynic::causal
