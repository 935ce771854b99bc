#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "greynic/statistics/holm.h"
#include "greynic/statistics/mean.h"
#include "greynic/statistics/shrunk_variance.h"

namespace greynic::statistics {
namespace {

// Claim:  means and standard deviations are exact where naive sums lose digits.
// Oracle: NIST Statistical Reference Datasets, certified values of NumAcc1 (mean 10000002,
//         deviation 1) and NumAcc3 (1000000.2 and 0.1).
TEST(Mean, MeetsTheCertifiedValues) {
  const Mean first = mean_of(std::vector{10000001.0, 10000003.0, 10000002.0});
  EXPECT_EQ(first.value, 10000002.0);
  EXPECT_DOUBLE_EQ(first.standard_error, 1.0 / std::sqrt(3.0));
  EXPECT_NEAR(first.half_width, 4.303 / std::sqrt(3.0), 5e-4);  // t table, 2 degrees of freedom
  std::vector<double> third = {1000000.2};
  for (int i = 0; i < 500; ++i) third.insert(third.end(), {1000000.1, 1000000.3});
  const Mean mean = mean_of(third);
  EXPECT_NEAR(mean.value, 1000000.2, 1e-8);
  EXPECT_NEAR(mean.standard_error * std::sqrt(1001.0), 0.1, 1e-9);
}

TEST(Mean, SaysNothingOfASpreadThatItHasNotSeen) {
  EXPECT_EQ(mean_of({}).count, 0U);
  const Mean one = mean_of(std::vector{5.0});
  EXPECT_EQ(one.value, 5.0);
  EXPECT_EQ(one.standard_error, 0.0);
  EXPECT_EQ(one.half_width, 0.0);
}

// Claim:  adjusted values are those of the literature, in the order of the given ones.
// Oracle: worked example with p = 0.01, 0.04, 0.03, 0.005: at a level of 0.05 the two smallest are
//         rejected, and 0.03 is not, because 2 * 0.03 > 0.05, nor is anything after it.
TEST(Holm, StepsDownAsPublished) {
  const auto adjusted = holm_adjusted(std::vector{0.01, 0.04, 0.03, 0.005});
  ASSERT_EQ(adjusted.size(), 4U);
  EXPECT_DOUBLE_EQ(adjusted[0], 0.03);
  EXPECT_DOUBLE_EQ(adjusted[1], 0.06);
  EXPECT_DOUBLE_EQ(adjusted[2], 0.06);
  EXPECT_DOUBLE_EQ(adjusted[3], 0.02);
  EXPECT_EQ(holm_adjusted(std::vector{0.9, 0.8}), (std::vector{1.0, 1.0}));
  EXPECT_TRUE(holm_adjusted({}).empty());
}

// Claim:  the chance of any wrong rejection among tests of true hypotheses is at most alpha.
// Method: 2000 rounds of 10 uniform p values; limit of 4 standard deviations.
TEST(Holm, BoundsWrongRejections) {
  constexpr unsigned kSeed = 3;
  RecordProperty("seed", static_cast<int>(kSeed));
  std::mt19937 random(kSeed);
  std::uniform_real_distribution<double> uniform;
  constexpr int kRounds = 2000;
  int wrong = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<double> p(10);
    for (double& one : p) one = uniform(random);
    const auto adjusted = holm_adjusted(p);
    wrong += *std::min_element(adjusted.begin(), adjusted.end()) <= 0.05 ? 1 : 0;
  }
  EXPECT_LE(wrong, kRounds * 0.05 + 4 * std::sqrt(kRounds * 0.05 * 0.95));
}

/// Variances of samples with `freedom` degrees each, drawn around the variances that a prior gives.
std::vector<Spread> drawn(const SpreadPrior& prior, double freedom, int count,
                          std::mt19937& random) {
  std::chi_squared_distribution<double> own(freedom);
  std::vector<Spread> spreads;
  for (int i = 0; i < count; ++i) {
    double truth = prior.variance;
    if (std::isfinite(prior.freedom)) {
      truth *= prior.freedom / std::chi_squared_distribution<double>(prior.freedom)(random);
    }
    spreads.push_back({.variance = truth * own(random) / freedom, .freedom = freedom});
  }
  return spreads;
}

// Claim:  the fitted prior is the one that the variances were drawn from.
// Oracle: planted priors; 5000 samples with two degrees of freedom each.
TEST(ShrunkVariance, FindsThePlantedPrior) {
  constexpr unsigned kSeed = 5;
  RecordProperty("seed", static_cast<int>(kSeed));
  std::mt19937 random(kSeed);
  for (const double freedom : {4.0, 10.0}) {
    const auto prior = fitted_prior(drawn({.variance = 3.0, .freedom = freedom}, 2, 5000, random));
    EXPECT_NEAR(prior.variance, 3.0, 0.2) << freedom;
    EXPECT_NEAR(prior.freedom, freedom, 0.3 * freedom);
  }
  const double infinite = std::numeric_limits<double>::infinity();
  const auto same = fitted_prior(drawn({.variance = 3.0, .freedom = infinite}, 2, 5000, random));
  EXPECT_GT(same.freedom, 100.0);
}

// Oracle: worked by hand: pooled (2 * 4 + 4 * 1) / 6 = 2, counted as 3 of its 6 degrees.
TEST(ShrunkVariance, WeighsByDegreesOfFreedom) {
  const std::vector<Spread> spreads = {{.variance = 4.0, .freedom = 2.0},
                                       {.variance = 1.0, .freedom = 4.0},
                                       {.variance = 0.0, .freedom = 0.0}};
  const SpreadPrior prior = pooled_prior(spreads, 3.0);
  EXPECT_DOUBLE_EQ(prior.variance, 2.0);
  EXPECT_DOUBLE_EQ(prior.freedom, 3.0);
  const Spread one = shrunk(spreads[0], prior);
  EXPECT_DOUBLE_EQ(one.variance, (3 * 2.0 + 2 * 4.0) / 5);
  EXPECT_DOUBLE_EQ(one.freedom, 5.0);
  EXPECT_EQ(shrunk(spreads[2], {}).freedom, 0.0);
  EXPECT_EQ(pooled_prior({}, 8.0).freedom, 0.0);
  EXPECT_EQ(fitted_prior({}).freedom, 0.0);
}

}  // namespace
}  // namespace greynic::statistics
