/// Plans on devices that stay slow for a while after a wall, and rows that stalls make slow.

#include <gtest/gtest.h>

#include "greynic/statistics/random.h"
#include "plan_of_six.h"
#include "planted.h"
#include "src/stickiness.h"
#include "steps/level_search.h"

namespace greynic::causal {
namespace {

using bench::Family;
using bench::PlantedCase;

bool has(const Configuration& configuration, std::initializer_list<const char*> factors) {
  return std::all_of(factors.begin(), factors.end(),
                     [&](const char* factor) { return is_set(configuration, factor); });
}

/// Test by test: the answer from this plan, all rows as they are named.
Explanation explained_in_order(Campaign campaign, const std::vector<Configuration>& plan,
                               const std::function<double(const Configuration&, int test)>& rate) {
  int tests = 0;
  Laboratory laboratory = causal::laboratory_of([&](const Configuration& configuration) {
    return observed(configuration, rate(configuration, tests++));
  });
  campaign.seeds = plan;
  laboratory.plan = [&] { return Result<std::vector<Configuration>>(plan); };
  return explain(campaign, {}, {}, &laboratory).value();
}

// Claim:  from a plan, causes are named on a device that stays slow for some tests after a wall, and no wrong list is
//         called complete.
// Oracle: planted causes.
// Method: one to three causes, stalls, up to 6 slow tests after a wall; the walk meets the walls.
TEST(StickyPlan, CausesAreNamed) {
  const Family family{.name = "planned_sticky",
                      .least_factors = 8,
                      .most_factors = 10,
                      .most_order = 3,
                      .most_causes = 3,
                      .noise = {0.01, 0.05},
                      .least_drop = 0.25,
                      .most_stalls = 0.05,
                      .sticky = 1,
                      .most_sticky = 6,
                      .planned = true};
  int right = 0;
  for (std::uint64_t seed = 7100; seed < 7106; ++seed) {
    PlantedCase planted(family, seed);
    Laboratory laboratory = planted.laboratory();
    laboratory.plan = [&] {
      Result<std::vector<Configuration>> plan;
      statistics::Random random(seed);
      for (int row = 0; row < 24; ++row) {
        plan->push_back(planted.campaign.baseline);
        for (const Factor& factor : planted.campaign.factors) {
          const auto levels = static_cast<std::uint32_t>(factor.levels.size());
          plan->back().set(factor.name, factor.levels[random.below(levels)]);
        }
      }
      return plan;
    };
    const auto explanation = explain(planted.campaign, {}, {}, &laboratory);
    ASSERT_TRUE(explanation) << explanation.error().message;
    const bool exact = planted.exact(*explanation);
    right += exact ? 1 : 0;
    EXPECT_TRUE(exact || !explanation->complete) << "seed " << seed << "\n" << planted.truth();
  }
  EXPECT_GE(right, 5);
}

// Claim:  after no wall the device is back at once, so a test that stalled brings no cause.
// Method: walls leave the device slow for two tests. The first test of c4 beside c5 stalls.
TEST(StickyPlan, AStallLeavesTheDeviceFast) {
  Campaign campaign = campaign_of_six();
  campaign.design = {.kind = DesignKind::kCovering, .strength = 2};
  int slow_for = 0;
  bool stalled = false;
  const auto explanation = explained_in_order(
      campaign, {with(campaign, {0, 1, 2, 3}), with(campaign, {4, 5}), with(campaign, {2, 5})},
      [&](const Configuration& configuration, int) {
        const bool stalls = !stalled && has(configuration, {"c4", "c5"});
        const bool wall = has(configuration, {"c0", "c1"});
        const bool slow = slow_for > 0;
        slow_for = wall ? 2 : std::max(0, slow_for - 1);
        stalled = stalled || stalls;
        return wall || slow || stalls ? 60.0 : 100.0;
      });
  ASSERT_EQ(explanation.causes.size(), 1U) << to_text(explanation);
  EXPECT_EQ(count(explanation, "was it slow by chance?"), 1);
  EXPECT_TRUE(explanation.complete);
}

// Claim:  where the baseline's first test stalled, the walls of a plan show all the same.
// Method: a test of 45, then rows of 100 and a wall of 60.
TEST(StickyPlan, ABaselineThatStalledIsTestedAgain) {
  Campaign campaign = campaign_of_six();
  campaign.design = {.kind = DesignKind::kCovering, .strength = 2};
  const auto explanation = explained_in_order(
      campaign, {with(campaign, {2}), with(campaign, {3, 4}), with(campaign, {0, 1})},
      [](const Configuration& configuration, int test) {
        return test == 0 ? 45.0 : has(configuration, {"c0", "c1"}) ? 60.0 : 100.0 + test % 3;
      });
  ASSERT_EQ(explanation.causes.size(), 1U) << to_text(explanation);
  EXPECT_EQ(explanation.causes.front().all_of.size(), 2U);
}

// Claim:  a row that is slow once, and no part of which is, is tested again before it is a cause.
// Method: the first test of c2 to c5 stalls, to the rate that the known wall has.
TEST(StickyPlan, AWholeRowIsACauseAfterASecondTest) {
  Campaign campaign = campaign_of_six();
  campaign.design = {.kind = DesignKind::kCovering, .strength = 2};
  bool stalled = false;
  const auto explanation = explained_in_order(
      campaign, {with(campaign, {0, 1}), with(campaign, {2, 3, 4, 5})},
      [&](const Configuration& configuration, int test) {
        const bool stalls = !stalled && has(configuration, {"c2", "c3", "c4", "c5"});
        stalled = stalled || stalls;
        return stalls || has(configuration, {"c0", "c1"}) ? 60.0 + test % 2 : 100.0;
      });
  EXPECT_EQ(explanation.causes.size(), 1U) << to_text(explanation);
}

// Claim:  stalls do not hide that a baseline was fast and slow; the halves of one heap are not two.
TEST(StickyPlan, StallsDoNotJoinTwoHeaps) {
  const std::vector<double> fast = {0.0, 0.02, -0.03, 0.01, 1.3, 0.0, 0.02};
  const std::vector<double> slow = {0.8, 0.82, 2.1, 0.79, 0.81, 0.78, 0.8, 1.6};
  EXPECT_TRUE(are_two_heaps(fast, slow, true));
  EXPECT_TRUE(are_two_heaps(fast, slow, false));
  statistics::Random random(3);
  std::vector<double> halves[2];
  for (int i = 0; i < 60; ++i) {
    double score = -6.0;
    for (int k = 0; k < 12; ++k) score += random.uniform();
    halves[score > 0.0 ? 1 : 0].push_back(0.3 * score);
  }
  EXPECT_FALSE(are_two_heaps(halves[0], halves[1], true));
}

// Claim:  heaps that are hardly farther apart than the halves of one are believed only where they are parted once.
TEST(StickyPlan, NearHeapsAreTwoOnlyWhereTheyArePartedOnce) {
  const std::vector<double> fast = {0.0, 0.3, -0.3, 0.15, -0.15};
  const std::vector<double> slow = {0.8, 1.1, 0.5, 0.95, 0.65};
  EXPECT_TRUE(are_two_heaps(fast, slow, true));
  EXPECT_FALSE(are_two_heaps(fast, slow, false));
}

// Claim:  the first wall of a plan is tested until it is as sure as the number of rows asks, whatever was seen.
// Method: values scatter, so that each tells little; no row is a wall, and the first tests of one are slow.
TEST(StickyPlan, AFirstWallIsJudgedStrictly) {
  Campaign campaign = campaign_of_six();
  campaign.design = {.kind = DesignKind::kCovering, .strength = 2};
  int of_row = 0;
  const auto explanation = explained_in_order(
      campaign, {with(campaign, {2}), with(campaign, {3}), with(campaign, {0, 1})},
      [&](const Configuration& configuration, int test) {
        const double scatter[] = {1.05, 0.94, 1.0, 0.92, 1.07, 0.98, 1.03, 0.95};
        const bool row = has(configuration, {"c0", "c1"});
        const double rate = row && ++of_row <= 3 ? 74.0 : 100.0;
        return rate * scatter[test % 8];
      });
  EXPECT_TRUE(explanation.walls.empty()) << to_text(explanation);
}

// Claim:  a level that a known cause explains is no surer than that cause.
// Method: c0 has a third level, at which a cause holds that is known at a confidence of 0.5.
TEST(StickyPlan, ALevelIsAsSureAsTheCauseThatExplainsIt) {
  Campaign campaign = campaign_of_six();
  campaign.factors[0].levels.emplace_back(std::string("z"));
  const Laboratory laboratory = causal::laboratory_of([](const Configuration& configuration) {
    const bool wall = has(configuration, {"c0", "c1"}) || configuration.text("c0") == "z";
    return observed(configuration, wall ? 60.0 : 100.0);
  });
  const ExplainOptions options;
  Session session(campaign, campaign.baseline, options, laboratory);
  ASSERT_TRUE(session.begin());
  Settings settings = Settings::create(session, campaign.baseline, with(campaign, {0, 1})).value();
  Cause known;
  known.confidence = 0.5;
  known.all_of = {{.factor = "c0", .level = std::string("z")}};
  FoundCause found;
  found.terms = found.closed = settings.all();
  const auto told = LevelSearch(session, settings, std::span(&known, 1)).levels_of(found);
  ASSERT_TRUE(told);
  EXPECT_DOUBLE_EQ(told->confidence, 0.5);
}

}  // namespace
}  // namespace greynic::causal
