/// Where tests are saved: one answer serves twice, and no answer is made surer than it must be.

#include <gtest/gtest.h>

#include "device_of_ten.h"
#include "planted.h"

namespace greynic::causal {
namespace {

using bench::Family;
using bench::PlantedCase;

Configuration all_set(const Campaign& campaign) {
  Configuration wall = campaign.baseline;
  for (const Factor& factor : campaign.factors) wall.set(factor.name, factor.levels.back());
  return wall;
}

std::size_t count_of(const Explanation& explanation, const std::string& why) {
  return static_cast<std::size_t>(
      std::count_if(explanation.trail.begin(), explanation.trail.end(),
                    [&](const TrailTest& test) { return test.why.substr(0, why.size()) == why; }));
}

// Claim:  a deep wall is searched right after its first test: the first half of its settings, where it is
//         clear, tells as well as the baseline that the device does not stay slow.
// Oracle: a wall of 40 % at noise 0.02, brought by the last two of ten settings.
TEST(FewTests, TheSearchBeginsRightAfterTheWall) {
  const Campaign campaign = campaign_of_ten();
  PlantedDevice device{.all_of = {{"c8", std::string("b")}, {"c9", std::string("b")}}};
  device.random.seed(1);
  const Laboratory laboratory = laboratory_of(measuring(device));
  ExplainOptions options;
  options.witness = all_set(campaign);
  const auto explanation = explain(campaign, {}, options, &laboratory);
  ASSERT_TRUE(explanation) << explanation.error().message;
  ASSERT_EQ(explanation->causes.size(), 1U) << to_text(*explanation);
  EXPECT_EQ(explanation->causes.front().all_of.size(), 2U);
  EXPECT_TRUE(explanation->complete);
  EXPECT_EQ(count_of(*explanation, "the baseline"), 1U);
  EXPECT_EQ(count_of(*explanation, "is it a wall?"), 1U);
}

// Claim:  where walls fail outright and all else gives values, a failed test soon says as much as a slow one.
// Oracle: three pairs of ten settings, planted in all of four places, fail together; the limit lies below what it took
//         when failures were weighed by the belief of the moment.
TEST(FewTests, WallsThatFailAreTestedSeldom) {
  const Campaign campaign = campaign_of_ten();
  std::size_t tests = 0;
  for (int shift = 0; shift < 4; ++shift) {
    PlantedDevice device;
    device.random.seed(static_cast<std::uint64_t>(shift));
    const Laboratory laboratory = laboratory_of([&](const Configuration& configuration) {
      Observation observation = device.measure(configuration);
      for (int pair = 0; pair < 3; ++pair) {
        const auto hit = [&](int place) {
          const std::string name =
              campaign.factors[static_cast<std::size_t>(place % kFactors)].name;
          return *configuration.find(name) != *campaign.baseline.find(name);
        };
        if (!hit(shift + 2 * pair) || !hit(shift + 2 * pair + 1)) continue;
        observation.outcome = Outcome::kFailed;
        observation.reason = "IBV_WC_RETRY_EXC_ERR";
      }
      return observation;
    });
    ExplainOptions options;
    options.witness = all_set(campaign);
    const auto explanation = explain(campaign, {}, options, &laboratory);
    ASSERT_TRUE(explanation) << explanation.error().message;
    EXPECT_EQ(explanation->causes.size(), 3U) << to_text(*explanation);
    EXPECT_TRUE(explanation->complete) << to_text(*explanation);
    tests += explanation->tests;
  }
  EXPECT_LT(tests, 335U);  // 362 so
}

// Claim:  a healed wall that told which of two settings is a term is not asked for again by the certificate.
// Oracle: every pair of categories, planted in turn; each healed wall is tested once, at noise 0.02.
TEST(FewTests, AHealedWallServesTwice) {
  const Campaign campaign = campaign_of_ten();
  std::size_t served = 0;
  for (int a = 5; a < kFactors; ++a) {
    for (int b = a + 1; b < kFactors; ++b) {
      const std::string names[] = {"c" + std::to_string(a), "c" + std::to_string(b)};
      PlantedDevice device{.all_of = {{names[0], std::string("b")}, {names[1], std::string("b")}}};
      device.random.seed(static_cast<std::uint64_t>(10 * a + b));
      const Laboratory laboratory = laboratory_of(measuring(device));
      ExplainOptions options;
      options.witness = all_set(campaign);
      const auto explanation = explain(campaign, {}, options, &laboratory);
      ASSERT_TRUE(explanation) << explanation.error().message;
      EXPECT_TRUE(explanation->complete) << to_text(*explanation);
      for (const std::string& name : names) {
        Configuration healed = all_set(campaign);
        healed.set(name, std::string("a"));
        const auto tests =
            std::count_if(explanation->trail.begin(), explanation->trail.end(),
                          [&](const TrailTest& test) { return test.configuration == healed; });
        EXPECT_EQ(tests, 1) << name << "\n" << to_text(*explanation);
      }
      served += 2 - count_of(*explanation, "healing all known causes");
    }
  }
  EXPECT_GE(served, 7U);  // of twenty
}

// Claim:  one cause takes at most 1.34 times the tests that information theory allows in all, with its
//         thresholds 1.31, and causes that mask one another 1.36.
// Method: sums over forty consecutive cases. Each was over it before healed walls told of terms: 1.38, 1.35
//         and 1.39.
TEST(FewTests, NearWhatInformationAllows) {
  const std::pair<Family, double> most[] = {
      {{.name = "clean"}, 1.34},
      {{.name = "levels", .most_factors = 96, .most_order = 3, .numbers = true, .intervals = 0.35},
       1.31},
      {{.name = "masked",
        .most_factors = 96,
        .most_order = 3,
        .least_causes = 2,
        .most_causes = 3,
        .numbers = true,
        .intervals = 0.35,
        .overlap = true},
       1.36}};
  for (const auto& [family, limit] : most) {
    double tests = 0.0;
    double bound = 0.0;
    for (std::uint64_t seed = 88'001; seed < 88'041; ++seed) {
      PlantedCase planted(family, seed);
      const Laboratory laboratory = planted.laboratory();
      ExplainOptions options;
      options.witness = planted.witness;
      const auto explanation = explain(planted.campaign, planted.log, options, &laboratory);
      ASSERT_TRUE(explanation) << explanation.error().message;
      EXPECT_TRUE(planted.exact(*explanation)) << family.name << " " << seed;
      tests += planted.tests;
      bound += planted.bound().all();
    }
    EXPECT_LT(tests, limit * bound) << family.name << ": " << tests / bound;
  }
}

}  // namespace
}  // namespace greynic::causal
