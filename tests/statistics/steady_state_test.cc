#include "greynic/statistics/steady_state.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "greynic/statistics/random.h"

namespace greynic::statistics {
namespace {

constexpr std::uint64_t kSeed = 4711;

/// Normal by the sum of twelve uniforms.
double normal(Random& random) {
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += random.uniform();
  return sum;
}

/// 100 with noise of 1, and a start that decays from 150 with a time constant of 50 samples.
std::vector<double> warming_up(Random& random, std::size_t n) {
  std::vector<double> samples(n);
  for (std::size_t i = 0; i < n; ++i) {
    samples[i] = 100 + 50 * std::exp(-static_cast<double>(i) / 50) + normal(random);
  }
  return samples;
}

// Claim:  the warm-up is cut, so that the mean is that of the steady part, as sure as stated.
// Oracle: the planted mean of 100; the whole series' mean is 1.25 too high.
// Method: 200 series; the stated interval of two standard errors should hold 100 in about 95 %.
TEST(SteadyState, CutsTheWarmUpAndStatesAnHonestError) {
  Random random(kSeed);
  int held = 0;
  for (int i = 0; i < 200; ++i) {
    const SteadyEstimate seen = estimate_steady(warming_up(random, 2000));
    ASSERT_TRUE(seen.settled);
    EXPECT_GT(seen.cut, 100U);  // 14 % of the start is left there
    EXPECT_LT(seen.cut, 1000U);
    held += std::abs(seen.mean - 100) <= 2 * seen.standard_error ? 1 : 0;
  }
  EXPECT_GE(held, 176) << "of 200, seed " << kSeed;
}

// Claim:  neighbours that go together do not make the mean look surer than it is.
// Oracle: the planted mean of an AR(1) series with coefficient 0.9; independent samples would give
//         a standard error 4.4 times too small and hold the mean in about a third of the series.
TEST(SteadyState, AllowsForCorrelation) {
  Random random(kSeed);
  int held = 0;
  for (int i = 0; i < 200; ++i) {
    std::vector<double> samples(4000);
    double state = 0;
    for (double& x : samples) {
      state = 0.9 * state + normal(random);
      x = 100 + state;
    }
    const SteadyEstimate seen = estimate_steady(samples);
    held += std::abs(seen.mean - 100) <= 2 * seen.standard_error ? 1 : 0;
  }
  EXPECT_GE(held, 170) << "of 200, seed " << kSeed;
}

// Claim:  a series that drifts to its end did not settle, and neither did one of 39 samples.
TEST(SteadyState, SaysWhenARunDidNotSettle) {
  Random random(kSeed);
  std::vector<double> drift(1000);
  for (std::size_t i = 0; i < drift.size(); ++i) {
    drift[i] = 100 + 0.1 * static_cast<double>(i) + normal(random);
  }
  EXPECT_FALSE(estimate_steady(drift).settled);
  EXPECT_FALSE(estimate_steady(std::vector<double>(39, 1.0)).settled);
  EXPECT_TRUE(estimate_steady(std::vector<double>(40, 1.0)).settled);
}

// Claim:  samples that differ by rounding only have settled from the start.
// Oracle: they are all alike by construction.
// Method: a mean of 4342.857 with noise in the twelfth digit, 200 series.
TEST(SteadyState, TakesRoundingForWhatItIs) {
  Random random(kSeed);
  for (int i = 0; i < 200; ++i) {
    std::vector<double> samples(1200);
    for (double& x : samples) x = 4342.857 * (1 + 1e-12 * normal(random));
    const SteadyEstimate seen = estimate_steady(samples);
    ASSERT_TRUE(seen.settled) << "series " << i << ", seed " << kSeed;
    ASSERT_EQ(seen.cut, 0U);
  }
}

/// 100, one sample of every `period` higher by `spike`, and noise.
std::vector<double> repeating(Random& random, std::size_t n, std::size_t period, double spike,
                              double noise, double drift) {
  std::vector<double> samples(n);
  for (std::size_t i = 0; i < n; ++i) {
    const double x = static_cast<double>(i) / static_cast<double>(n);
    samples[i] =
        100 + drift * x + (i % period == period / 3 ? spike : 0.0) + noise * normal(random);
  }
  return samples;
}

// Claim:  a series that repeats itself has settled, its mean is that of whole periods, and none of
//         it is taken for warm-up beyond the first half.
// Oracle: the planted mean, 100 + spike / period.
// Method: spikes of 20 seldom enough that most of the series lies between two, periods from 100 to
//         1030 samples, lengths that are no whole number of periods.
TEST(SteadyState, TakesWhatRepeatsItselfForSteady) {
  Random random(kSeed);
  for (const std::size_t period : {100U, 330U, 515U, 1030U}) {
    for (const std::size_t n : {7001U, 7300U, 7900U}) {
      const SteadyEstimate seen = estimate_steady(repeating(random, n, period, 20, 1e-4, 0));
      EXPECT_TRUE(seen.settled) << "period " << period << " of " << n << ", cut " << seen.cut;
      // One spike more or less in what is kept, at most half of the series.
      EXPECT_NEAR(seen.mean, 100 + 20.0 / static_cast<double>(period), 20.0 / (n / 2.0));
    }
  }
}

// Claim:  a drift is not forgiven because something repeats itself on top of it.
// Oracle: it drifts by construction, by half of its level.
TEST(SteadyState, SeesADriftBelowWhatRepeatsItself) {
  Random random(kSeed);
  for (const std::size_t period : {100U, 515U, 1030U}) {
    EXPECT_FALSE(estimate_steady(repeating(random, 7300, period, 20, 0.1, 50)).settled) << period;
  }
}

}  // namespace
}  // namespace greynic::statistics
