#include "greynic/results/compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

namespace greynic::results {
namespace {

/// `count` configurations with `repeats` noisy bandwidths and latencies each; configuration i's
/// bandwidth is scaled by `scale(i)`.
std::vector<Observation> noisy_run(int count, int repeats, double noise, std::mt19937& random,
                                   const std::function<double(int)>& scale) {
  std::normal_distribution<double> normal;
  std::vector<Observation> run;
  for (int i = 0; i < count; ++i) {
    for (int repeat = 0; repeat < repeats; ++repeat) {
      Observation observation;
      observation.asked = {{"qp_count", static_cast<double>(i)}};
      observation.repeat = repeat;
      observation.outcome = Outcome::kMeasured;
      const double level = 20.0 + 3.0 * i;
      observation.measures["bandwidth_gbps"] = {level * scale(i) * std::exp(noise * normal(random)),
                                                std::nullopt};
      observation.measures["latency_us_p50"] = {3.0 * std::exp(noise * normal(random)),
                                                std::nullopt};
      run.push_back(observation);
    }
  }
  return run;
}

double unchanged(int) { return 1.0; }

// Claim:  among all verdicts on two equal runs, any regression shows in at most alpha of the cases,
//         even where every configuration is worse by just the tolerance.
// Oracle: the share of simulated comparisons; binomial limits of 4 standard deviations.
TEST(Compare, BoundsFalseRegressionsOverAllVerdicts) {
  constexpr unsigned kSeed = 11;
  RecordProperty("seed", static_cast<int>(kSeed));
  std::mt19937 random(kSeed);
  constexpr int kRounds = 1000;
  for (const double worse : {1.0, 0.98}) {
    int alarms = 0;
    for (int round = 0; round < kRounds; ++round) {
      const auto base = noisy_run(20, 3, 0.02, random, unchanged);
      const auto fresh = noisy_run(20, 3, 0.02, random, [&](int) { return worse; });
      const auto report = compare(base, fresh, {.metrics = {"bandwidth_gbps"}});
      ASSERT_TRUE(report);
      alarms += report->regressions > 0 ? 1 : 0;
    }
    EXPECT_LE(alarms, kRounds * 0.05 + 4 * std::sqrt(kRounds * 0.05 * 0.95)) << worse;
    if (worse < 1.0) {
      EXPECT_GE(alarms, kRounds * 0.01) << "the test is far more timid than it claims to be";
    }
  }
}

// Claim:  a planted loss of a tenth is found with three repeats, where it is and nowhere else, and
// its
//         size is inside the interval; a gain is called a gain.
TEST(Compare, FindsPlantedChanges) {
  std::mt19937 random(12);
  int found = 0;
  int inside = 0;
  constexpr int kRounds = 100;
  for (int round = 0; round < kRounds; ++round) {
    const auto base = noisy_run(20, 3, 0.01, random, unchanged);
    const auto fresh = noisy_run(20, 3, 0.01, random, [](int i) {
      return i == 7 ? 0.9 : i == 9 ? 1.2 : 1.0;
    });
    const auto report = compare(base, fresh);
    ASSERT_TRUE(report);
    for (const Comparison& row : report->comparisons) {
      const double qps = row.configuration.number("qp_count");
      if (row.metric == "bandwidth_gbps" && qps == 7) {
        found += row.verdict == Verdict::kRegressed ? 1 : 0;
        inside += row.effect_low <= -0.1 && -0.1 <= row.effect_high ? 1 : 0;
      }
      if (row.metric == "bandwidth_gbps" && qps == 9) EXPECT_EQ(row.verdict, Verdict::kImproved);
    }
  }
  EXPECT_GE(found, 95);
  EXPECT_GE(inside, 88);
}

// Claim:  more latency is worse, less is better.
TEST(Compare, KnowsWhichWayIsWorse) {
  std::mt19937 random(13);
  const auto base = noisy_run(5, 4, 0.01, random, unchanged);
  auto fresh = noisy_run(5, 4, 0.01, random, unchanged);
  for (Observation& observation : fresh) observation.measures["latency_us_p50"].value *= 1.5;
  const auto slower = compare(base, fresh);
  ASSERT_TRUE(slower);
  EXPECT_EQ(slower->regressions, 5U);
  EXPECT_EQ(slower->comparisons.front().metric, "latency_us_p50");
  const auto faster = compare(fresh, base);
  ASSERT_TRUE(faster);
  EXPECT_EQ(faster->regressions, 0U);
  EXPECT_EQ(faster->comparisons.front().verdict, Verdict::kImproved);
}

// Claim:  what does not run any more is a regression, what runs again is mended, and configurations
// of
//         one run alone are counted and not judged.
TEST(Compare, JudgesOutcomesToo) {
  std::mt19937 random(14);
  auto base = noisy_run(4, 3, 0.01, random, unchanged);
  auto fresh = noisy_run(5, 3, 0.01, random, unchanged);
  for (Observation& observation : fresh) {
    if (observation.asked.number("qp_count") != 2) continue;
    observation.outcome = Outcome::kFailed;
    observation.reason = "IBV_WC_RETRY_EXC_ERR";
    observation.measures.clear();
  }
  const auto report = compare(base, fresh);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->only_new, 1U);
  EXPECT_EQ(report->comparisons.front().verdict, Verdict::kBroke);
  EXPECT_NE(report->comparisons.front().reason.find("IBV_WC_RETRY_EXC_ERR"), std::string::npos);
  EXPECT_EQ(report->regressions, 2U);
  EXPECT_EQ(compare(fresh, base)->regressions, 0U);
}

// Claim:  a device that repeats itself exactly is compared exactly; one repeat alone is not judged.
TEST(Compare, HandlesNoSpreadAndNoRepeats) {
  std::mt19937 random(15);
  const auto base = noisy_run(6, 2, 0.0, random, unchanged);
  const auto same = compare(base, base);
  ASSERT_TRUE(same);
  EXPECT_EQ(same->regressions, 0U);
  const auto worse =
      compare(base, noisy_run(6, 2, 0.0, random, [](int i) { return i == 3 ? 0.9 : 1.0; }));
  ASSERT_TRUE(worse);
  EXPECT_EQ(worse->regressions, 1U);
  const auto single = noisy_run(6, 1, 0.01, random, unchanged);
  const auto unknown = compare(single, single);
  ASSERT_TRUE(unknown);
  EXPECT_EQ(unknown->comparisons.front().verdict, Verdict::kNotJudged);
  EXPECT_EQ(unknown->regressions, 0U);
}

// Claim:  runs with nothing in common are refused.
TEST(Compare, RefusesRunsWithNothingInCommon) {
  std::mt19937 random(16);
  const auto base = noisy_run(2, 2, 0.01, random, unchanged);
  auto other = base;
  for (Observation& observation : other) observation.asked.set("thread_count", 3.0);
  EXPECT_EQ(compare(base, other).error().code, ErrorCode::kBadInput);
  EXPECT_EQ(compare(base, base, {.metrics = {"no_such"}}).error().code, ErrorCode::kBadInput);
  EXPECT_EQ(compare({}, {}).error().code, ErrorCode::kBadInput);
}

// Claim:  JUnit XML counts its failures and escapes what XML reserves.
TEST(Compare, WritesJunitXml) {
  CompareReport report;
  Comparison broken;
  broken.configuration = {{"a<b>&\"c\"", std::string("x")}};
  broken.metric = "bandwidth_gbps";
  broken.verdict = Verdict::kRegressed;
  report.comparisons = {broken, Comparison{}};
  report.regressions = 1;
  const std::string text = junit_text(report, "base & new");
  EXPECT_NE(text.find("tests=\"2\" failures=\"1\" skipped=\"1\""), std::string::npos) << text;
  EXPECT_NE(text.find("a&lt;b&gt;&amp;&quot;c&quot;=x"), std::string::npos) << text;
  EXPECT_EQ(text.find("a<b"), std::string::npos);
  EXPECT_NE(text.find("base &amp; new"), std::string::npos);
}

}  // namespace
}  // namespace greynic::results
