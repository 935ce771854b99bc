#include "traffic/completion_rate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <vector>

#include "sized.h"

namespace greynic::verbs {
namespace {

constexpr std::int64_t kSpanBegin = 1'000'000'007;
constexpr std::int64_t kSpanEnd = kSpanBegin + 450'000'000;
constexpr double kSpan = 450e6;

/// Every `period` ns each of `qps` QPs completes `messages`, one after another within the first
/// `width` of the period.
double rate_of_bursts(double period, double width, int qps, std::uint64_t messages, double phase) {
  CompletionBins bins(kSpanBegin, kSpanEnd);
  const auto begin = static_cast<double>(kSpanBegin);
  for (double burst = begin + (phase - 1.0) * period; burst < static_cast<double>(kSpanEnd);
       burst += period) {
    for (int qp = 0; qp < qps; ++qp) {
      bins.add(std::llround(burst + width * period * qp / qps), messages);
    }
  }
  return bins.rate().per_second;
}

// Claim:  the rate of completions in bursts is right within 0.3 %, wherever the edges of the
//         measured time cut the bursts, from four bursts in it to thousands.
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

constexpr double kWork = 512.0;

/// A server that works at an even pace, kWork messages in a unit of time, and tells of what it has
/// done by bursts, a unit apart.
struct Bursts {
  const char* name;
  double wander =
      0.0;  ///< bursts come sooner or later by up to so much, and tell of all done by then
  double late = 0.0;   ///< a burst tells of what was done by its time, up to so much later
  double width = 0.0;  ///< the first message of a burst may come so long before its last
  int clumps = 1;  ///< in which the messages of a burst come, with pauses of all lengths between
  double steady = 0.0;  ///< share of the work that is told of at once, message by message
  double fill = 0.0;    ///< queues fill for so long, and keep three quarters of what they took in
  double limit = 0.01;  ///< of the error of three to seven bursts
};

constexpr Bursts kKinds[] = {
    {.name = "sharp"},
    {.name = "late", .late = 0.02},
    {.name = "irregular and unequal", .wander = 0.3},
    {.name = "ragged", .width = 0.3, .clumps = 7},
    {.name = "ragged, irregular and unequal", .wander = 0.3, .width = 0.3, .clumps = 7},
    {.name = "half of the QPs in step", .width = 0.05, .clumps = 7, .steady = 0.5, .limit = 0.015},
    {.name = "queues that fill", .late = 0.02, .fill = 4.0},
};

/// Fills `bins` with such a series over `units` of time and returns the true rate; `bursts` is
/// how many of them are in it.
double generate(CompletionBins& bins, const Bursts& kind, double units, std::mt19937_64& random,
                int& bursts) {
  std::uniform_real_distribution<double> unit(0.0, 1.0);
  const double scale = kSpan / units;
  const auto tell = [&](double at, double messages) {
    if (at >= 0 && at < units && messages > 0) {
      bins.add(kSpanBegin + std::llround(at * scale), static_cast<std::uint64_t>(messages));
    }
  };
  const auto done = [&](double at) {
    return std::floor((at - 0.75 * kind.fill) * kWork * (1.0 - kind.steady));
  };
  const double phase = unit(random);
  double told = kind.fill > 0 ? 0.0 : done(phase - 2.0);
  bursts = 0;
  for (double grid = kind.fill > 0 ? kind.fill * 0.9 : phase - 1.0; grid < units + 2; grid += 1.0) {
    const double by = grid + kind.wander * (unit(random) - 0.5);
    const double end = by + kind.late * unit(random);
    double left = done(by) - told;
    told = done(by);
    if (end >= 0 && end < units) ++bursts;
    std::vector<double> moments(static_cast<std::size_t>(kind.clumps) - 1);
    for (double& moment : moments) moment = end - kind.width * unit(random);
    for (const double moment : moments) {
      const double part = std::floor(left / 2);
      tell(moment, part);
      left -= part;
    }
    tell(end, left);
  }
  if (kind.steady > 0) {
    for (double at = phase - 1.0; at < units; at += 1.0 / (kWork * kind.steady)) tell(at, 1);
  }
  return kWork * 1e9 / scale;
}

// Claim:  whatever bursts a server tells of its work by, the rate is within 1 % of its pace from
//         three bursts on (1.5 % where only half of it comes in bursts), and within 0.3 % from
//         eight.
// Oracle: the pace that the generator works at.
// Method: series of all kinds, cut at random, 3 to 60 bursts in each.
TEST(Rate, OfBurstsOfAllKindsIsThePaceOfTheWork) {
  constexpr unsigned kSeed = 90210;
  std::mt19937_64 random(kSeed);
  std::uniform_real_distribution<double> unit(0.0, 1.0);
  for (const Bursts& kind : kKinds) {
    for (int run = 0; run < sized(3000, 300); ++run) {
      const double units = kind.fill + 3.0 * std::pow(20.0, unit(random));
      CompletionBins bins(kSpanBegin, kSpanEnd);
      int bursts = 0;
      const double truth = generate(bins, kind, units, random, bursts);
      if (bursts < 3) continue;
      ASSERT_NEAR(bins.rate().per_second / truth, 1.0, bursts < 8 ? kind.limit : 0.003)
          << kind.name << ", " << bursts << " bursts, run " << run << ", seed " << kSeed;
    }
  }
}

/// A series whose rate in one run differs from that in the long run by chance.
struct Chances {
  const char* name;
  double from;  ///< units in a run from which on the error is told well
  /// Adds what comes next after `at`, in units of time, and says when that was.
  std::function<double(double at, std::mt19937_64&, const std::function<void(double, double)>&)>
      next;
};

// Claim:  two standard errors hold the true rate in at least 92 of 100 runs, and are at most five
//         times the error that runs have.
// Oracle: the rate that the series are drawn with, and the spread of 1,000 runs.
// Method: completions at random, work and pauses, bursts whose distances or sizes or both are
//         drawn; 4 to 1,000 in a run.
TEST(Rate, SaysHowFarOffItIs) {
  constexpr unsigned kSeed = 5;
  constexpr int kRuns = sized(1000, 100);
  std::mt19937_64 random(kSeed);
  std::exponential_distribution<double> gap(1.0);
  std::uniform_real_distribution<double> about(0.7, 1.3);
  using Tell = std::function<void(double, double)>;
  const Chances kinds[] = {
      {"completions at random", 40,
       [&](double at, std::mt19937_64& source, const Tell& tell) {
         at += gap(source);
         tell(at, 100);
         return at;
       }},
      {"work and pauses", 40,
       [&](double at, std::mt19937_64& source, const Tell& tell) {
         const double end = at + gap(source) / 2;
         for (; at < end; at += 0.005) tell(at, 1);
         return at + gap(source) / 2;
       }},
      {"bursts at random distances", 4,
       [&](double at, std::mt19937_64& source, const Tell& tell) {
         at += about(source);
         tell(at, 100);
         return at;
       }},
      {"bursts of random size", 4,
       [&](double at, std::mt19937_64& source, const Tell& tell) {
         tell(at + 1.0, std::round(100 * about(source)));
         return at + 1.0;
       }},
      {"bursts of random size at random distances", 4,
       [&](double at, std::mt19937_64& source, const Tell& tell) {
         at += about(source);
         tell(at, std::round(100 * about(source)));
         return at;
       }},
  };
  for (const Chances& kind : kinds) {
    for (const double units : {4.5, 6.5, 9.5, 15.5, 40.5, 100.5, 1000.5}) {
      if (units < kind.from) continue;
      const double truth = 100.0 * units * 1e9 / kSpan;
      int known = 0;
      int held = 0;
      double squares = 0.0;
      double told = 0.0;
      for (int run = 0; run < kRuns; ++run) {
        CompletionBins bins(kSpanBegin, kSpanEnd);
        const auto tell = [&](double at, double messages) {
          if (at < 0 || at >= units) return;
          bins.add(kSpanBegin + std::llround(at * kSpan / units),
                   static_cast<std::uint64_t>(messages));
        };
        for (double at = -20.0 - gap(random); at < units;) at = kind.next(at, random, tell);
        const CompletionBins::Rate rate = bins.rate();
        if (!rate.standard_error) continue;
        ++known;
        const double off = rate.per_second - truth;
        if (std::abs(off) <= 2.0 * *rate.standard_error) ++held;
        squares += off * off;
        told += *rate.standard_error;
      }
      EXPECT_GT(known, sized(0.9, 0.85) * kRuns) << kind.name << ", " << units;
      EXPECT_GT(held, sized(0.92, 0.85) * known)
          << kind.name << ", " << units << ", seed " << kSeed;
      EXPECT_LT(told / known, 5.0 * std::sqrt(squares / known)) << kind.name << ", " << units;
    }
  }
}

// Claim:  one burst tells no rate: what is said has no standard error and has not settled.
// Oracle: the definition.
TEST(Rate, OfOneBurstIsNotKnown) {
  CompletionBins bins(kSpanBegin, kSpanEnd);
  for (int i = 0; i < 100; ++i) bins.add(kSpanBegin + 200'000'000, 4);
  const CompletionBins::Rate rate = bins.rate();
  EXPECT_NEAR(rate.per_second, 400 * 1e9 / kSpan, 1.0);
  EXPECT_FALSE(rate.standard_error);
  EXPECT_FALSE(rate.steady.settled);
  EXPECT_EQ(CompletionBins(kSpanBegin, kSpanEnd).rate().per_second, 0.0);
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
    constexpr int kRuns = sized(2000, 200);
    for (int run = 0; run < kRuns; ++run) {
      CompletionBins bins(kSpanBegin, kSpanEnd);
      for (double at = gap(random); at < kSpan; at += gap(random)) {
        bins.add(kSpanBegin + static_cast<std::int64_t>(at), 4);
      }
      const double ratio = bins.rate().per_second / (4.0 * expected * 1e9 / kSpan);
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
//         mean of 500 runs may be off by four of its standard errors, and a run by no more than its
//         draws explain.
TEST(Rate, OfWorkAndPausesIsUnbiased) {
  constexpr unsigned kSeed = 4711;
  std::mt19937_64 random(kSeed);
  std::exponential_distribution<double> length(1.0 / 4e6);
  double sum = 0.0;
  double squares = 0.0;
  constexpr int kRuns = 500;
  for (int run = 0; run < kRuns; ++run) {
    CompletionBins bins(kSpanBegin, kSpanEnd);
    bool working = run % 2 == 0;
    for (double at = 0.0; at < kSpan; working = !working) {
      const double end = at + length(random);
      for (double done = at; working && done < end; done += 20e3) {
        bins.add(kSpanBegin + static_cast<std::int64_t>(done), 1);
      }
      at = end;
    }
    const double ratio = bins.rate().per_second / (0.5 * 1e9 / 20e3);
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
  CompletionBins one(kSpanBegin, kSpanEnd);
  CompletionBins two(kSpanBegin, kSpanEnd);
  for (std::int64_t at = kSpanBegin - 5000; at < kSpanEnd + 5000; at += 10'000) one.add(at, 1);
  for (std::int64_t at = kSpanBegin - 5000; at < kSpanEnd + 5000; at += 25'000) two.add(at, 3);
  one.merge(two);
  EXPECT_NEAR(one.rate().per_second, 1e5 + 1.2e5, 0.001 * 2.2e5);
}

// Claim:  a slow start is left out, and said.
// Oracle: the rate after it.
TEST(Rate, LeavesASlowStartOut) {
  CompletionBins bins(kSpanBegin, kSpanEnd);
  const std::int64_t steady = kSpanBegin + 100'000'000;
  for (std::int64_t at = kSpanBegin; at < steady; at += 400'000) bins.add(at, 1);
  for (std::int64_t at = steady; at < kSpanEnd; at += 100'000) bins.add(at, 1);
  const CompletionBins::Rate rate = bins.rate();
  EXPECT_NEAR(rate.per_second, 1e4, 1e2);
  EXPECT_GE(rate.steady.warmup_share, 0.2);
  EXPECT_TRUE(rate.steady.settled);
}

}  // namespace
}  // namespace greynic::verbs
