#include "wall_check.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace greynic::causal {
namespace {

constexpr double kWallBefore = 0.65;   // who asks mostly has a wall,
constexpr double kEqualBefore = 0.28;  // or nothing at all; the rest is worse, but not by so much
constexpr double kDeepestWall = 2.5;   // of a wall, beyond the bound
constexpr int kDepths = 40;
constexpr int kMostLooks = 8;
constexpr double kNoiseAtWorst = 0.15;  // until the baseline was tested often
constexpr double kSurelySlow = 5.0;     // standard errors
constexpr double kApart = 4.0;          // noises; the halves of one heap are 2.7 apart
constexpr int kMostChecks = 160;
constexpr double kStalls = 0.01;
constexpr double kStallsUpTo = 4.0;
constexpr double kFailsClear = 0.02;
constexpr double kFailsWall = 0.3;
constexpr double kNoiseBefore = 0.06;
constexpr double kNoiseSpread = 1.1;  // of its logarithm

struct Values {
  std::vector<double> baseline;
  std::vector<double> asked;
};

double density(double value, double mean, double sigma) {
  const double z = (value - mean) / sigma;
  const double stalled = value > mean && value < mean + kStallsUpTo ? kStalls / kStallsUpTo : 1e-5;
  return (1.0 - kStalls) * 0.398942 / sigma * std::exp(-0.5 * z * z) + stalled;
}

double log_density(const std::vector<double>& values, double mean, double sigma) {
  double sum = 0.0;
  for (const double value : values) sum += std::log(density(value, mean, sigma));
  return sum;
}

double log_add(double a, double b) {
  return std::max(a, b) + std::log1p(std::exp(-std::abs(a - b)));
}

/// log odds of a wall against no wall, from the values alone, by summing over noise, mean and
/// depth.
double odds_of_wall(const Values& values, const ValueModel& model) {
  std::vector<double> sorted = values.baseline;
  std::sort(sorted.begin(), sorted.end());
  const double middle = sorted.empty() ? model.baseline() : sorted[(sorted.size() - 1) / 2];
  const double count = std::max<double>(1.0, static_cast<double>(sorted.size()));
  double wall = -1e300;
  double clear = -1e300;
  for (int s = 0; s < 14; ++s) {
    const double sigma = 0.004 * std::pow(1.5, s);
    const double usual = std::log(sigma / kNoiseBefore) / kNoiseSpread;
    double of_sigma = -0.5 * usual * usual;
    if (model.prior_freedom() > 0.0) {  // what the run's repeats say
      of_sigma = -model.prior_freedom() *
                 (std::log(sigma) + 0.5 * model.prior_variance() / (sigma * sigma));
    }
    for (int m = -6; m <= 6; ++m) {
      const double mean = middle + 0.5 * m * sigma / std::sqrt(count);
      const double bound = model.scale().bound(mean);
      const double base = of_sigma + log_density(values.baseline, mean, sigma) + std::log(sigma);
      if (mean < bound) {
        clear =
            log_add(clear, base + std::log(kEqualBefore) + log_density(values.asked, mean, sigma));
      }
      for (int d = 0; d < kDepths; ++d) {
        const double depth = bound + kDeepestWall * std::pow((d + 0.5) / kDepths, 2.0);
        const double width = 2.0 * (d + 0.5) / (kDepths * kDepths);  // denser near the bound
        wall = log_add(
            wall, base + std::log(kWallBefore * width) + log_density(values.asked, depth, sigma));
      }
      for (int d = 0; d < 5 && mean < bound; ++d) {
        const double less = mean + (bound - mean) * (d + 0.5) / 5.0;
        const double before = (1.0 - kWallBefore - kEqualBefore) / 5.0;
        clear = log_add(clear, base + std::log(before) + log_density(values.asked, less, sigma));
      }
    }
  }
  return wall - clear;
}

double odds_of(Session& session, Id id) {
  const Values values{session.scores_of(session.baseline()), session.scores_of(id)};
  const double failures = static_cast<double>(session.failures_of(id));
  const double odds = failures * std::log(kFailsWall / kFailsClear);
  if (values.asked.empty())
    return failures > 0.0 ? odds + std::log(kWallBefore / kEqualBefore) : 0.0;
  return odds + odds_of_wall(values, session.model());
}

/// Tests of the baseline right after a wall that were slow. When they are so much slower than the
/// others that noise does not explain it, the device needs time after a wall.
class Stickiness {
 public:
  Stickiness(Session& session, WallCheck& check) : session_(session), check_(check) {}

  /// The baseline was just tested after the wall. While it is slow, test it again.
  Result<void> look() {
    if (session_.waits()) return {};
    const Id baseline = session_.baseline();
    bool slow = is_slow();
    for (int tries = 0; slow && tries < kMostLooks; ++tries) {
      slow_.push_back(session_.last());
      if (auto done = session_.measure({&baseline, 1}, "is it slow since the wall?"); !done) {
        return done;
      }
      slow = is_slow();
    }
    if (!is_sticky()) return {};
    session_.ignore(slow_);
    session_.refit();
    session_.wait_for_recovery();
    check_.notes.push_back(
        "the device stays slow for a while after a wall; each further test waits until the "
        "baseline is back");
    if (slow) {
      check_.notes.push_back(
          "its performance did not come back by itself (symptom S9); reset it before each test");
    }
    return {};
  }

 private:
  [[nodiscard]] bool is_slow() const {
    const Reading& last = session_.reading(session_.last());
    return !last.failed && last.score > session_.model().scale().bound(first());
  }
  [[nodiscard]] double first() const {
    for (const std::size_t place : session_.places_of(session_.baseline())) {
      if (!session_.reading(place).failed) return session_.reading(place).score;
    }
    return 0.0;
  }
  /// Two heaps far apart, by what each scatters: the upper part of one heap is not slow.
  [[nodiscard]] bool is_sticky() const {
    if (slow_.size() < 2) return false;
    double sum[2] = {0.0, 0.0}, squares[2] = {0.0, 0.0}, count[2] = {0.0, 0.0};
    for (const std::size_t place : session_.places_of(session_.baseline())) {
      const Reading& reading = session_.reading(place);
      if (reading.failed) continue;
      const bool slow = std::find(slow_.begin(), slow_.end(), place) != slow_.end();
      sum[slow] += reading.score;
      squares[slow] += reading.score * reading.score;
      count[slow] += 1.0;
    }
    double scatter = 2.0 * kNoiseAtWorst * kNoiseAtWorst;
    double mean[2] = {0.0, 0.0};
    for (const int heap : {0, 1}) {
      mean[heap] = sum[heap] / std::max(count[heap], 1.0);
      scatter += std::max(0.0, squares[heap] - count[heap] * mean[heap] * mean[heap]);
    }
    const double noise = std::sqrt(scatter / (count[0] + count[1]));
    const double error = noise * std::sqrt(1.0 / std::max(count[0], 1.0) + 1.0 / count[1]);
    return mean[1] - mean[0] > std::max(kSurelySlow * error, kApart * noise);
  }

  Session& session_;
  WallCheck& check_;
  std::vector<std::size_t> slow_;
};

}  // namespace

Result<WallCheck> check_wall(Session& session, Id id) {
  WallCheck check;
  Stickiness stickiness(session, check);
  const double sure = std::log(session.options().confidence / (1.0 - session.options().confidence));
  const Id baseline = session.baseline();
  for (int tests = 0; tests < kMostChecks; ++tests) {
    const double odds = odds_of(session, id);
    check.chance = chance_of(odds);
    const std::size_t of_wall = session.tests_of(id);
    const std::size_t of_baseline = session.tests_of(baseline);
    const bool started = of_wall >= 1 && of_baseline >= 2;
    if (started && std::abs(odds) >= sure) {
      check.verdict = odds > 0.0 ? Verdict::kWall : Verdict::kClear;
      session.believe(id, check.chance);
      session.refit();
      return check;
    }
    if (session.refused(id)) {
      check.verdict = Verdict::kUntestable;
      return check;
    }
    const bool wall_next = of_wall < of_baseline;
    const Id next = wall_next ? id : baseline;
    session.believe(id, check.chance);
    if (auto done = session.measure({&next, 1}, wall_next ? "is it a wall?" : "the baseline");
        !done) {
      return pass_on(done);
    }
    if (!wall_next && of_wall > 0) {
      if (auto done = stickiness.look(); !done) return pass_on(done);
    }
  }
  return check;
}

}  // namespace greynic::causal
