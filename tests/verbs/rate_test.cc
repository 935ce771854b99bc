#include "rate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace greynic::verbs {
namespace {

constexpr std::int64_t kBegin = 1'000'000'007;
constexpr std::int64_t kEnd = kBegin + 450'000'000;
constexpr double kSpan = 450e6;

/// Every `period` ns each of `qps` QPs completes `messages`, one after another within the first
/// `width` of the period.
double rate_of_bursts(double period, double width, int qps, std::uint64_t messages, double phase) {
  Slices slices(kBegin, kEnd);
  const auto begin = static_cast<double>(kBegin);
  for (double burst = begin + (phase - 1.0) * period; burst < static_cast<double>(kEnd);
       burst += period) {
    for (int qp = 0; qp < qps; ++qp) {
      slices.add(std::llround(burst + width * period * qp / qps), messages);
    }
  }
  return slices.rate().per_second;
}

// Claim:  the rate of completions in bursts is right within 0.3 %, wherever the edges of the
// measured
//         time cut the bursts, from four bursts in it to thousands.
// Oracle: the rate they were generated with.
// Method: 1, 16 and 128 QPs in step; bursts of 1 to 30 % of their period; 16 phases.
TEST(Rate, OfBurstsDoesNotDependOnWhereTheyAreCut) {
  for (const int qps : {1, 16, 128}) {
    for (const double width : {0.01, 0.1, 0.3}) {
      for (double bursts = 4.3; bursts < 3000; bursts *= 1.37) {
        for (int phase = 0; phase < 16; ++phase) {
          const double period = kSpan / bursts;
          const double truth = qps * 100.0 * 1e9 / period;
          const double error = rate_of_bursts(period, width, qps, 100, phase / 16.0) / truth - 1.0;
          ASSERT_LT(std::abs(error), 0.003) << qps << " QPs, " << bursts << " bursts of width "
                                            << width << ", phase " << phase << "/16";
        }
      }
    }
  }
}

// Claim:  completions at random times give the rate without bias.
// Oracle: the rate of the Poisson process they are drawn from; the mean of 2,000 runs may be off by
//         four of its standard errors.
TEST(Rate, OfRandomCompletionsIsUnbiased) {
  constexpr unsigned kSeed = 20261;
  for (const double expected : {300.0, 3000.0}) {
    std::mt19937_64 random(kSeed);
    std::exponential_distribution<double> gap(expected / kSpan);
    double sum = 0.0;
    double squares = 0.0;
    constexpr int kRuns = 2000;
    for (int run = 0; run < kRuns; ++run) {
      Slices slices(kBegin, kEnd);
      for (double at = gap(random); at < kSpan; at += gap(random)) {
        slices.add(kBegin + static_cast<std::int64_t>(at), 4);
      }
      const double ratio = slices.rate().per_second / (4.0 * expected * 1e9 / kSpan);
      sum += ratio;
      squares += ratio * ratio;
    }
    const double mean = sum / kRuns;
    const double error = std::sqrt((squares / kRuns - mean * mean) / kRuns);
    EXPECT_NEAR(mean, 1.0, 4.0 * error) << expected << " completions, seed " << kSeed;
    EXPECT_LT(error, 0.01);
  }
}

// Claim:  pauses of all lengths do not make bursts: the rate keeps to the whole time.
// Oracle: the rate that pauses and work were drawn with, exponential and half the time each; the
// mean of
//         500 runs may be off by four of its standard errors, and a run by no more than its draws
//         explain.
TEST(Rate, OfWorkAndPausesIsUnbiased) {
  constexpr unsigned kSeed = 4711;
  std::mt19937_64 random(kSeed);
  std::exponential_distribution<double> length(1.0 / 4e6);
  double sum = 0.0;
  double squares = 0.0;
  constexpr int kRuns = 500;
  for (int run = 0; run < kRuns; ++run) {
    Slices slices(kBegin, kEnd);
    bool working = run % 2 == 0;
    for (double at = 0.0; at < kSpan; working = !working) {
      const double end = at + length(random);
      for (double done = at; working && done < end; done += 20e3) {
        slices.add(kBegin + static_cast<std::int64_t>(done), 1);
      }
      at = end;
    }
    const double ratio = slices.rate().per_second / (0.5 * 1e9 / 20e3);
    sum += ratio;
    squares += ratio * ratio;
  }
  const double mean = sum / kRuns;
  const double spread = std::sqrt(squares / kRuns - mean * mean);
  EXPECT_NEAR(mean, 1.0, 4.0 * spread / std::sqrt(kRuns)) << "seed " << kSeed;
  EXPECT_LT(spread, 0.2);
}

// Claim:  two threads' completions give the sum of their rates.
// Oracle: the rates they were generated with.
TEST(Rate, OfThreadsAddsUp) {
  Slices one(kBegin, kEnd);
  Slices two(kBegin, kEnd);
  for (std::int64_t at = kBegin - 5000; at < kEnd + 5000; at += 10'000) one.add(at, 1);
  for (std::int64_t at = kBegin - 5000; at < kEnd + 5000; at += 25'000) two.add(at, 3);
  one.merge(two);
  EXPECT_NEAR(one.rate().per_second, 1e5 + 1.2e5, 0.001 * 2.2e5);
}

// Claim:  a slow start is left out, and said.
// Oracle: the rate after it.
TEST(Rate, LeavesASlowStartOut) {
  Slices slices(kBegin, kEnd);
  const std::int64_t steady = kBegin + 100'000'000;
  for (std::int64_t at = kBegin; at < steady; at += 400'000) slices.add(at, 1);
  for (std::int64_t at = steady; at < kEnd; at += 100'000) slices.add(at, 1);
  const Slices::Rate rate = slices.rate();
  EXPECT_NEAR(rate.per_second, 1e4, 1e2);
  EXPECT_GE(rate.steady.warmup_share, 0.2);
  EXPECT_TRUE(rate.steady.settled);
}

}  // namespace
}  // namespace greynic::verbs
