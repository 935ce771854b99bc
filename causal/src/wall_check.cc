#include "wall_check.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "stickiness.h"

namespace greynic::causal {
namespace {

constexpr double kWallBefore = 0.65;   // who asks mostly has a wall,
constexpr double kEqualBefore = 0.28;  // or nothing at all; the rest is worse, but not by so much
constexpr double kDeepestWall = 2.5;   // of a wall, beyond the bound, unless a deeper one is seen
// Some walls are not much worse than the share that was stated: by so many of it, beyond the bound.
constexpr double kNearUpTo = 2.0;
constexpr double kNearBefore = 0.2;
// What the first tests do not decide is a wall more often than what they do, for most are deep: log
// odds that a wall has less at first.
constexpr std::size_t kFirstTests = 4;  // of baseline and wall together
constexpr double kLessAtFirst = 0.9;
constexpr int kDepths = 20;
constexpr double kBeginNoisy = 0.2;  // chance that noise is large, for such a test;
constexpr double kMayBegin = 1.5;  // log odds of what seems a wall, for a first test of the search
constexpr double kMayBeWall =
    0.0;  // log odds to be one, beside groups that were healed in the same batch,
constexpr double kClearGroup = -2.0;  // of which this one was clear
constexpr double kHardlyNoisy =
    0.1;  // chance that noise is large, where the baseline was tested once
constexpr std::size_t kMostBegun =
    2;  // tests of the search, until the baseline is asked after the wall
constexpr std::size_t kMostTestsOfWall = 120;
constexpr double kStalls = 0.01;
constexpr double kStallsUpTo = 4.0;
constexpr double kFailsClear = 0.02;
constexpr double kFailsWall = 0.3;
constexpr double kNoiseBefore = 0.06;
constexpr double kNoiseOfRoom = 0.57;  // of what lies between baseline and bound
constexpr double kMostRoom = 0.5;
constexpr double kNoiseSpread = 1.1;  // of its logarithm
constexpr double kMayBeNoisy = 0.5;
// Log odds of what is surely worse than the baseline to be worse by the whole share: the search tests
// it further, and to be surer of a wall near the bound takes as many tests as all its causes.
constexpr double kBeyondBound = 2.0;
constexpr double kNextToBound = 1.0;    // the same, of what is still undecided
constexpr std::size_t kManyTests = 40;  // after so many
// What is still undecided after more tests is a wall near the bound more often than most: log odds
// beyond the asked ones before it is refused.
constexpr std::size_t kManyForClear = 8;
constexpr double kNearMargin = 1.6;
// Log odds of a likely wall: where noise is small, the search that begins there tells the rest.
constexpr double kLikelyWall = 2.9;
constexpr std::size_t kLeastOfSearch = 4;  // tests that say more of the noise than is usual
constexpr double kMostOfSearch = 30.0;

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

struct Odds {
  double wall = 0.0;   ///< logarithm, against no wall
  double worse = 0.0;  ///< the same, against the baseline's own mean
  double noisy = 0.0;  ///< chance that noise is large beside the depth, if it is a wall
};

/// What else is known of the noise, as a variance and the degrees of freedom it rests on.
struct NoiseBefore {
  double variance = 0.0;
  double freedom = 0.0;
  double usual = kNoiseBefore;  ///< where there is nothing to rest on
};

/// Who states that a wall loses much has more noise than who looks for small losses. A wall is refused
/// only if it is none by that noise, too.
NoiseBefore at_worst(NoiseBefore noise, const ValueModel& model) {
  const double room = std::clamp(model.bound() - model.baseline(), 0.0, kMostRoom);
  noise.usual = std::max(kNoiseBefore, kNoiseOfRoom * room);
  return noise;
}

/// What a run's repeats say.
NoiseBefore noise_of_run(const ValueModel& model) {
  return {model.prior_variance(), model.prior_freedom()};
}

/// What a search learned from its own tests, each counted as half a repeat.
NoiseBefore noise_of_search(const Session& session, Id id) {
  const ValueModel& model = session.model();
  const std::size_t known = session.tests_of(id) + session.tests_of(session.baseline());
  const std::size_t all = session.last() + 1;
  if (all < known + kLeastOfSearch) return noise_of_run(model);
  const double half = 0.5 * static_cast<double>(all - known);
  return {model.sigma() * model.sigma(), std::min(half, kMostOfSearch)};
}

/// From the values alone, by summing over noise, mean and depth.
Odds odds_of_wall(const Values& values, const ValueModel& model, const NoiseBefore& noise) {
  std::vector<double> sorted = values.baseline;
  std::sort(sorted.begin(), sorted.end());
  const double middle = sorted.empty() ? model.baseline() : sorted[(sorted.size() - 1) / 2];
  const double count = std::max<double>(1.0, static_cast<double>(sorted.size()));
  double deepest = kDeepestWall;
  for (const double value : values.asked) deepest = std::max(deepest, value - middle);
  double near = -1e300;
  double deep = -1e300;
  double noisy = -1e300;
  double equal = -1e300;
  double less = -1e300;
  for (int s = 0; s < 14; ++s) {
    const double sigma = 0.004 * std::pow(1.5, s);
    const double usual = std::log(sigma / noise.usual) / kNoiseSpread;
    double of_sigma = -0.5 * usual * usual;
    if (noise.freedom > 0.0) {
      of_sigma = -noise.freedom * (std::log(sigma) + 0.5 * noise.variance / (sigma * sigma));
    }
    for (int m = -6; m <= 6; ++m) {
      const double mean = middle + 0.5 * m * sigma / std::sqrt(count);
      const double bound = model.scale().bound(mean);
      const double base = of_sigma + log_density(values.baseline, mean, sigma) + std::log(sigma);
      if (mean < bound) {
        equal =
            log_add(equal, base + std::log(kEqualBefore) + log_density(values.asked, mean, sigma));
      }
      const auto add_wall = [&](double& walls, double depth, double share, double among) {
        const double chance =
            base + std::log(kWallBefore * share) + log_density(values.asked, depth, sigma);
        walls = log_add(walls, chance);
        if (sigma > kLargeNoise * (depth - mean)) noisy = log_add(noisy, chance + std::log(among));
      };
      for (int d = 0; d < kDepths; ++d) {
        const double part = (d + 0.5) / kDepths;
        add_wall(near, bound + kNearUpTo * part * std::abs(bound - mean), 1.0 / kDepths,
                 kNearBefore);
        // Any depth is as likely as any other, but the grid is denser near the bound.
        add_wall(deep, bound + deepest * part * part, 2.0 * part / kDepths, 1.0 - kNearBefore);
      }
      for (int d = 0; d < 5 && mean < bound; ++d) {
        const double between = mean + (bound - mean) * (d + 0.5) / 5.0;
        const double before = (1.0 - kWallBefore - kEqualBefore) / 5.0;
        less = log_add(less, base + std::log(before) + log_density(values.asked, between, sigma));
      }
    }
  }
  const double wall = log_add(near + std::log(kNearBefore), deep + std::log(1.0 - kNearBefore));
  const double clear = log_add(equal, less);
  return {wall - clear, wall - equal, std::exp(noisy - wall)};
}

/// `clear`: tested beside the baseline, and as fast.
Values values_of(Session& session, Id id, std::optional<Id> clear = {}) {
  Values values{session.scores_of(session.baseline()), session.scores_of(id)};
  for (const double score : clear ? session.scores_of(*clear) : std::vector<double>()) {
    values.baseline.push_back(score);
  }
  return values;
}

Odds odds_of(Session& session, Id id, const NoiseBefore& noise, std::optional<Id> clear = {}) {
  const Values values = values_of(session, id, clear);
  const double failures = static_cast<double>(session.failures_of(id));
  const double failed = failures * std::log(kFailsWall / kFailsClear);
  Odds odds;
  if (!values.asked.empty()) {
    odds = odds_of_wall(values, session.model(), noise);
  } else if (failures > 0.0) {
    odds.wall = odds.worse = std::log(kWallBefore / kEqualBefore);
  }
  odds.wall += failed;
  odds.worse += failed;
  return odds;
}

/// Baseline and wall. Where the baseline comes last, it shows whether the wall slowed the device.
Result<void> ask_in_turn(Session& session, Id id, bool wall_next, Stickiness& stickiness) {
  const Id baseline = session.baseline();
  std::vector<Id> next = {wall_next ? id : baseline};
  while (std::ssize(next) < std::min(session.options().batch, kMostTogether)) {
    next.push_back(next.back() == id ? baseline : id);
  }
  if (auto done = session.measure(next, wall_next ? "is it a wall?" : "the baseline"); !done)
    return done;
  if (next.back() != baseline || session.tests_of(id) == 0) return {};
  return stickiness.look();
}

}  // namespace

bool may_be_noisy(Session& session, Id wall) {
  const Values values = values_of(session, wall);
  const ValueModel& model = session.model();
  const NoiseBefore noise =
      session.options().batch > 1 ? noise_of_search(session, wall) : noise_of_run(model);
  return !values.asked.empty() && odds_of_wall(values, model, noise).noisy > kMayBeNoisy;
}

Result<WallCheck> check_wall(Session& session, Id id, Check how,
                             const std::function<std::optional<Id>()>& begin_search) {
  WallCheck check;
  Stickiness stickiness(session, id, check.notes);
  const double sure = std::log(session.options().confidence / (1.0 - session.options().confidence));
  const Id baseline = session.baseline();
  const bool searched = how == Check::kAfterSearch;
  const bool in_batches = session.options().batch > 1;
  if (!searched && session.tests_of(id) > 0 &&
      (in_batches || session.reading(session.last()).of_baseline)) {
    if (auto done = stickiness.look(); !done) return pass_on(done);
  }
  std::size_t began = 0;  // tests of the search
  // Groups of settings that were healed in the first batch tell what noise is, and the search goes on from there.
  const auto beside = in_batches && how == Check::kBeforeSearch
                          ? session.clear_beside(id, kClearGroup)
                          : std::nullopt;
  std::optional<Id> back = beside;  // was clear right after a wall, or in one batch with it
  for (std::size_t looks = 0; looks < 2 * kMostTestsOfWall; ++looks) {
    const NoiseBefore noise =
        how == Check::kAlone ? noise_of_run(session.model()) : noise_of_search(session, id);
    const Odds odds = odds_of(session, id, noise, back);
    check.chance = chance_of(odds.wall);
    const std::size_t of_wall = session.tests_of(id);
    const std::size_t of_baseline = session.tests_of(baseline);
    const bool beside_groups = beside && of_wall == 1;
    const bool started = of_wall >= 1 && (of_baseline >= 2 || beside_groups || searched ||
                                          (back && odds.noisy <= kHardlyNoisy));
    const double beyond = beside_groups                        ? kMayBeWall
                          : of_wall + of_baseline < kManyTests ? kBeyondBound
                                                               : kNextToBound;
    // Under large noise a search needs to know baseline and wall well before it begins.
    const bool likely = how == Check::kBeforeSearch && odds.noisy <= kMayBeNoisy;
    const double least = likely ? std::min(beside_groups ? kMayBegin : kLikelyWall, sure) : sure;
    // A single slow test may have stalled; the search may have seen other walls.
    const bool seen = of_wall > 1 || (searched && session.has_wall_but(id));
    const bool wall = odds.worse >= least && odds.wall >= beyond && (seen || !searched);
    check.sure = !wall || (odds.worse >= sure && seen);
    // A test that failed says nothing of the noise that makes the others differ.
    const std::size_t values_of_wall = session.scores_of(id).size();
    const std::size_t values_of_baseline =
        session.scores_of(baseline).size() + (beside_groups ? 1 : 0);
    const bool told = values_of_wall >= 1 && values_of_baseline >= 2;
    const bool few = values_of_wall + values_of_baseline <= kFirstTests;
    const double surely = sure + (of_wall + of_baseline > kManyForClear ? kNearMargin : 0.0);
    const auto refuses = [&](const Odds& by) {
      return by.wall - (few ? kLessAtFirst : 0.0) <= -surely;
    };
    const bool clear =
        told && refuses(odds) && refuses(odds_of(session, id, at_worst(noise, session.model())));
    if (started && (wall || clear)) {
      // What slows the device for a while is not clear; in a batch its tests hide each other.
      const bool hidden = !wall && session.waits() && session.options().batch > 1;
      check.verdict = wall ? Verdict::kWall : hidden ? Verdict::kUndecided : Verdict::kClear;
      if (hidden) {
        check.notes.push_back(
            "whether it is a wall was not decided: ask again without --batch, one test at a time");
      }
      session.believe(id, check.chance);
      session.refit();
      return check;
    }
    if (of_wall >= kMostTestsOfWall) break;
    if (session.refused(id)) {
      check.verdict = Verdict::kUntestable;
      return check;
    }
    const bool begins = begin_search && !started && of_wall == 1 && began < kMostBegun &&
                        odds.noisy <= kBeginNoisy && odds.worse >= kMayBegin && !back;
    if (const auto first = begins ? begin_search() : std::nullopt) {
      stickiness.search_began();
      ++began;
      session.believe(id, check.chance);
      if (auto done = session.measure({&*first, 1}, "growing the baseline towards the wall"); !done)
        return pass_on(done);
      if (!session.scores_of(*first).empty() && !session.last_is_slow()) back = first;
      continue;
    }
    session.believe(id, check.chance);
    const bool wall_next = of_wall < of_baseline + (in_batches ? 1 : 0);
    if (auto done = ask_in_turn(session, id, wall_next, stickiness); !done) return pass_on(done);
  }
  return check;
}

}  // namespace greynic::causal
