/// Planted walls with exact truth (tests/bench/causal/planted.h): what the engine must name
/// whatever the seed. The benchmark runs the same families on many more cases.

#include "planted.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "sized.h"

namespace greynic::causal {
namespace {

using bench::Family;
using bench::PlantedCase;

Laboratory laboratory_of(PlantedCase& planted) {
  Laboratory laboratory = planted.laboratory();
  laboratory.allows = [&planted](const Configuration& whole) { return planted.allowed(whole); };
  return laboratory;
}

bool by_night() { return std::getenv("GREYNIC_NIGHTLY") != nullptr; }

struct Outcomes {
  int right = 0;
  int falsely_complete = 0;  ///< wrong, and the list is called complete
  int tests = 0;
  std::size_t rounds = 0;
  double bound = 0.0;
  std::string wrong;
};

/// Cases of consecutive seeds, each explained from its witness.
Outcomes explain_cases(const Family& family, std::uint64_t seed, int cases, int batch = 1) {
  Outcomes outcomes;
  for (int i = 0; i < cases; ++i) {
    PlantedCase planted(family, seed + static_cast<std::uint64_t>(i));
    const Laboratory laboratory = laboratory_of(planted);
    ExplainOptions options;
    options.witness = planted.witness;
    options.batch = batch;
    const auto explanation = explain(planted.campaign, planted.log, options, &laboratory);
    if (!explanation) {
      outcomes.wrong += explanation.error().message;
      continue;
    }
    const bool right = family.false_alarm ? explanation->finding == Finding::kFalseAlarm
                                          : planted.exact(*explanation);
    outcomes.right += right ? 1 : 0;
    outcomes.tests += planted.tests;
    outcomes.rounds += explanation->rounds;
    if (!family.false_alarm) outcomes.bound += planted.bound().all();
    if (right) continue;
    outcomes.falsely_complete += explanation->complete ? 1 : 0;
    outcomes.wrong +=
        "seed " + std::to_string(seed + static_cast<std::uint64_t>(i)) + ":\n" + planted.truth();
    for (const Cause& cause : explanation->causes)
      outcomes.wrong += "  told: " + cause.text() + "\n";
  }
  return outcomes;
}

// Claim:  one clean conjunction of one to four terms among up to 192 factors is named exactly, in
//         less than twice the tests that information theory allows.
TEST(Planted, OneCleanCauseIsNamed) {
  const Outcomes outcomes = explain_cases({.name = "clean"}, 9100, sized(20, 10));
  EXPECT_EQ(outcomes.right, sized(20, 10)) << outcomes.wrong;
  EXPECT_LT(outcomes.tests, 2.0 * outcomes.bound);
}

// Claim:  a laboratory that takes eight tests at a time has four terms among 192 factors named exactly
//         in hardly more than five rounds in the mean; one after the other it takes over twenty.
TEST(Planted, BatchesFindSeveralTermsAtATime) {
  const Family four_of_192 = {.name = "four_of_192",
                              .least_factors = 192,
                              .most_factors = 192,
                              .least_order = 4,
                              .most_order = 4};
  const Outcomes outcomes = explain_cases(four_of_192, 9150, 20, 8);
  EXPECT_EQ(outcomes.right, 20) << outcomes.wrong;
  EXPECT_LE(outcomes.rounds, 102U);
}

// Claim:  batches do not hide a wall after which the device stays slow for a while.
TEST(Planted, StickyWallsAreSeenInBatches) {
  const Outcomes outcomes = explain_cases(
      {.name = "sticky", .most_factors = 48, .most_order = 2, .sticky = 3}, 9170, 10, 8);
  EXPECT_GE(outcomes.right, 8) << outcomes.wrong;
  EXPECT_EQ(outcomes.falsely_complete, 0) << outcomes.wrong;
}

// Claim:  two or three causes that mask one another in one wall are all named, with thresholds.
TEST(Planted, CausesThatMaskOneAnotherAreNamed) {
  const Outcomes outcomes = explain_cases({.name = "masked",
                                           .most_factors = 64,
                                           .most_order = 3,
                                           .least_causes = 2,
                                           .most_causes = 3,
                                           .numbers = true,
                                           .overlap = true,
                                           .least_drop = 0.25},
                                          9200, sized(20, 4));
  EXPECT_GE(outcomes.right, sized(19, 3)) << outcomes.wrong;
}

// Claim:  a cause that is a quarter as deep as another one is not taken for clear, and no list that
//         lacks it is called complete.
TEST(Planted, AWeakCauseBesideAStrongOneIsNotLost) {
  const Outcomes outcomes = explain_cases({.name = "masked",
                                           .most_factors = 96,
                                           .most_order = 3,
                                           .least_causes = 2,
                                           .most_causes = 3,
                                           .overlap = true},
                                          9250, sized(20, 6));
  EXPECT_GE(outcomes.right, sized(19, 5)) << outcomes.wrong;
  EXPECT_LE(outcomes.falsely_complete, 1) << outcomes.wrong;
}

const Family kMaskedLevels{.name = "masked",
                           .most_factors = 96,
                           .most_order = 3,
                           .least_causes = 2,
                           .most_causes = 3,
                           .numbers = true,
                           .intervals = 0.35,
                           .overlap = true};

// Claim:  where the first test of the baseline was far off, the baseline is tested again before a
//         weak wall is called clear.
// Method: cases in which it was: 100 scored 92.7, and a wall of 13 to 16 % lay beside deeper ones.
TEST(Planted, ABadFirstBaselineHidesNoCause) {
  for (const std::uint64_t seed : {952002897ULL, 952003033ULL, 952003138ULL, 952003152ULL}) {
    const Outcomes outcomes = explain_cases(kMaskedLevels, seed, 1);
    EXPECT_EQ(outcomes.right, 1) << outcomes.wrong;
  }
}

// Claim:  where many configurations are left open, each by a test or two, the baseline that all of them
//         lean on is tested again.
// Method: a case whose first two tests of the baseline, of three in a hundred noise, scored 95 and 97 for 99, beside
//         walls at 84: 150 tests of these, and none of the baseline, led to no cause.
TEST(Planted, ABadBaselineLeavesNotAllOpen) {
  const Outcomes outcomes = explain_cases(kMaskedLevels, 88001264042ULL, 1);
  EXPECT_EQ(outcomes.right, 1) << outcomes.wrong;
}

// Claim:  intervals with two ends, thresholds and sets are named at the campaign's levels.
TEST(Planted, IntervalsAndSetsAreNamed) {
  const Outcomes outcomes = explain_cases(
      {.name = "levels", .most_factors = 40, .most_order = 3, .numbers = true, .intervals = 0.6},
      9300, 20);
  EXPECT_GE(outcomes.right, 19) << outcomes.wrong;
}

// Claim:  a cause that healing another one wakes is named, with the term that wakes it.
TEST(Planted, EmergentCausesAreNamed) {
  const Outcomes outcomes = explain_cases({.name = "emergent",
                                           .most_factors = 40,
                                           .least_order = 2,
                                           .most_order = 3,
                                           .least_drop = 0.25,
                                           .emergent = true},
                                          9400, 20);
  EXPECT_GE(outcomes.right, 18) << outcomes.wrong;
}

// Claim:  a factor that a constraint moves along with a term is not taken for the cause.
TEST(Planted, ForcedFactorsAreNoCauses) {
  const Outcomes outcomes = explain_cases({.name = "constraints",
                                           .most_factors = 40,
                                           .most_order = 3,
                                           .numbers = true,
                                           .most_forbidden = 40},
                                          9500, 20);
  EXPECT_GE(outcomes.right, 19) << outcomes.wrong;
}

// Claim:  innocent factors that go with the wall in a log of stored runs are not taken for causes,
//         nor where something outside the campaign had made runs slow and they were set then too.
TEST(Planted, InnocentFactorsOfALogAreNoCauses) {
  Family family{.name = "decoys",
                .most_factors = 40,
                .most_order = 3,
                .numbers = true,
                .least_drop = 0.25,
                .most_forbidden = 20,
                .most_decoys = 5};
  Outcomes outcomes = explain_cases(family, 9550, 10);
  EXPECT_GE(outcomes.right, 9) << outcomes.wrong;
  EXPECT_EQ(outcomes.falsely_complete, 0) << outcomes.wrong;
  family.troubled = 0.3;
  outcomes = explain_cases(family, 9570, 10);
  EXPECT_GE(outcomes.right, 9) << outcomes.wrong;
  EXPECT_EQ(outcomes.falsely_complete, 0) << outcomes.wrong;
}

// Claim:  a walk through a log holds what it says: decoys go with the wall and are no terms.
TEST(Planted, ALogIsConfounded) {
  const Family family{.name = "decoys", .most_factors = 40, .most_order = 3, .most_decoys = 3};
  for (std::uint64_t seed = 9590; seed < 9600; ++seed) {
    const PlantedCase planted(family, seed);
    ASSERT_GE(planted.log.size(), 30U);
    EXPECT_EQ(planted.tests, 0);
    double most = 0.0;  // agreement of an innocent factor with the wall
    for (const Factor& factor : planted.campaign.factors) {
      const bool term =
          std::any_of(planted.causes.front().terms.begin(), planted.causes.front().terms.end(),
                      [&](const auto& one) {
                        return planted.campaign.factors[one.factor].name == factor.name;
                      });
      double agree = 0.0;
      for (const Observation& run : planted.log) {
        const bool as_wall = *run.asked.find(factor.name) == *planted.witness.find(factor.name);
        agree += as_wall == planted.is_wall(run.asked) ? 1.0 : 0.0;
      }
      if (!term) most = std::max(most, agree / static_cast<double>(planted.log.size()));
    }
    EXPECT_GE(most, 0.8) << seed;
  }
}

// Claim:  noise of 15 % with stalls and time-outs costs tests and not the answer.
// Method: 6 cases; 20 when GREYNIC_NIGHTLY is set.
TEST(Planted, NoiseStallsAndTimeOutsAreOutvoted) {
  const int cases = by_night() ? 20 : 6;
  const Outcomes outcomes = explain_cases({.name = "noise",
                                           .most_factors = 40,
                                           .most_order = 3,
                                           .noise = {0.15},
                                           .least_drop = 0.3,
                                           .most_stalls = 0.05,
                                           .most_timeouts = 0.05},
                                          9600, cases);
  EXPECT_GE(outcomes.right, cases - 1) << outcomes.wrong;
}

// Claim:  a witness that is no worse than the baseline is refused within a few tests.
TEST(Planted, FalseAlarmsAreRefused) {
  const Outcomes outcomes =
      explain_cases({.name = "false_alarm", .most_factors = 40, .false_alarm = true}, 9700, 40);
  EXPECT_GE(outcomes.right, 39) << outcomes.wrong;
  EXPECT_LE(outcomes.tests, 40 * 5);
}

// Claim:  what is learned of noise and depth does not speak for the favourite answer alone, and noise
//         does not look as if the device stayed slow after a wall.
// Method: weak walls, at a noise of 15 %, where the first, and the second, made a list with a term too
//         many that was called complete.
TEST(Planted, WeakWallsGetNoTermTooMany) {
  const Family weak{.name = "weak",
                    .most_factors = 96,
                    .most_order = 3,
                    .noise = {0.15},
                    .least_drop = 0.12,
                    .most_drop = 0.2};
  for (const std::uint64_t seed : {7401022204ULL, 7401022212ULL}) {
    const Outcomes outcomes = explain_cases(weak, seed, 1);
    EXPECT_EQ(outcomes.falsely_complete, 0) << outcomes.wrong;
    EXPECT_LT(outcomes.tests, 1000) << seed;
  }
}

// Claim:  where noise turns out to be large in the midst of a search step by step, or the baseline was
//         slow in its first tests, no row of tests goes on without end.
// Method: a case in which a row did, for 3,700 tests: 37 was the first value of a baseline of 96.
TEST(Planted, NoRowOfTestsRunsAway) {
  const Family noise{.name = "noise",
                     .most_factors = 96,
                     .most_order = 3,
                     .numbers = true,
                     .intervals = 0.35,
                     .noise = {0.15, 0.30},
                     .least_drop = 0.25,
                     .most_stalls = 0.05,
                     .most_timeouts = 0.05};
  const Outcomes outcomes = explain_cases(noise, 7401022215ULL, 1);
  EXPECT_LT(outcomes.tests, 400);
  EXPECT_EQ(outcomes.falsely_complete, 0) << outcomes.wrong;
  // Three rows by turns, none of them long, took 74 of 89 tests before noise was looked at.
  const Outcomes rows = explain_cases(noise, 9601028804ULL, 1);
  EXPECT_LT(rows.tests, 60);
  EXPECT_EQ(rows.falsely_complete, 0) << rows.wrong;
}

// Claim:  three causes are not named as pairs of them: a wall by one alone is less deep than a wall by
//         two, and may not pass for clear.
// Method: a case in which two of three causes came out as one of six terms, called complete.
TEST(Planted, CausesAreNotNamedTwoAtATime) {
  const Family three{.name = "three",
                     .least_factors = 96,
                     .most_factors = 96,
                     .least_order = 3,
                     .most_order = 3,
                     .least_causes = 3,
                     .most_causes = 3,
                     .noise = {0.30},
                     .least_drop = 0.3};
  const Outcomes outcomes = explain_cases(three, 9501028508ULL, 1);
  EXPECT_EQ(outcomes.falsely_complete, 0) << outcomes.wrong;
}

// Claim:  a sum of two numbers is named as a sum, and not as two thresholds.
TEST(Planted, SumsAreNamed) {
  const Outcomes outcomes = explain_cases(
      {.name = "sums", .most_factors = 40, .most_order = 2, .numbers = true, .sum = true}, 9800,
      20);
  EXPECT_GE(outcomes.right, 18) << outcomes.wrong;
}

// Claim:  a device that stays slow for some tests after a wall is waited for, and said to be so.
TEST(Planted, StickyWallsAreWaitedFor) {
  const Outcomes outcomes = explain_cases(
      {.name = "sticky", .most_factors = 40, .most_order = 3, .least_drop = 0.3, .sticky = 3}, 9900,
      12);
  EXPECT_GE(outcomes.right, 11) << outcomes.wrong;
  EXPECT_LT(outcomes.tests, 7.0 * outcomes.bound);
}

// Claim:  a device that never recovers by itself is reset after each wall, and the wall's cause is
//         named as on any other device.
TEST(Planted, ADeviceThatStaysSlowIsReset) {
  const Family family{
      .name = "stuck", .most_factors = 40, .most_order = 3, .least_drop = 0.4, .sticky = 1'000'000};
  for (std::uint64_t seed = 9990; seed < 9996; ++seed) {
    PlantedCase planted(family, seed);
    Laboratory laboratory = laboratory_of(planted);
    int resets = 0;
    laboratory.reset = [&]() -> Result<void> {
      planted.reset();
      ++resets;
      return {};
    };
    ExplainOptions options;
    options.witness = planted.witness;
    options.critical_path = true;
    const auto explanation = explain(planted.campaign, {}, options, &laboratory);
    ASSERT_TRUE(explanation) << explanation.error().message;
    EXPECT_TRUE(planted.exact(*explanation)) << seed << "\n" << planted.truth();
    ASSERT_TRUE(explanation->path);
    EXPECT_EQ(explanation->path->symptom, "S9");
    EXPECT_GT(resets, 0);
  }
}

// Claim:  the baseline may drift by a tenth while the tests go on.
TEST(Planted, ADriftOfTheBaselineIsFollowed) {
  const Outcomes outcomes = explain_cases(
      {.name = "drift", .most_factors = 40, .most_order = 3, .least_drop = 0.25, .drift = 0.1},
      9950, 20);
  EXPECT_GE(outcomes.right, 19) << outcomes.wrong;
}

// Claim:  what is said at 95 % and more is right in at least 93 of 100 cases, thresholds included.
// Method: 40 cases by night (GREYNIC_NIGHTLY); by day 6, of which one may be wrong.
TEST(Planted, ConfidenceIsEarned) {
  const Family family{.name = "noise",
                      .most_factors = 30,
                      .most_order = 2,
                      .numbers = true,
                      .intervals = 0.3,
                      .noise = {0.15},
                      .least_drop = 0.25,
                      .most_stalls = 0.03};
  int sure = 0;
  int right = 0;
  const std::uint64_t cases = by_night() ? 40 : 6;
  for (std::uint64_t seed = 11'000; seed < 11'000 + cases; ++seed) {
    PlantedCase planted(family, seed);
    const Laboratory laboratory = laboratory_of(planted);
    ExplainOptions options;
    options.witness = planted.witness;
    options.confidence = 0.95;
    const auto explanation = explain(planted.campaign, {}, options, &laboratory);
    ASSERT_TRUE(explanation) << explanation.error().message;
    for (const Cause& cause : explanation->causes) {
      if (cause.confidence < 0.95) continue;
      ++sure;
      right += planted.right(cause) ? 1 : 0;
    }
  }
  EXPECT_GE(2 * sure, static_cast<int>(cases));
  EXPECT_GE(right, by_night() ? 0.93 * sure : sure - 1);
}

}  // namespace
}  // namespace greynic::causal
