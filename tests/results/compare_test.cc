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
//         its size is inside the interval; a gain is called a gain.
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
        found += row.change == Change::kRegressed ? 1 : 0;
        inside += row.effect_low <= -0.1 && -0.1 <= row.effect_high ? 1 : 0;
      }
      if (row.metric == "bandwidth_gbps" && qps == 9) EXPECT_EQ(row.change, Change::kImproved);
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
  EXPECT_EQ(faster->comparisons.front().change, Change::kImproved);
}

/// The bandwidths of a run under another name.
std::vector<Observation> renamed(std::vector<Observation> run, const std::string& name) {
  for (Observation& observation : run) {
    observation.measures = {{name, observation.measures.at("bandwidth_gbps")}};
  }
  return run;
}

// Claim:  a cost that grows by half is a regression, under every name of the table whose smaller
//         value is better, and is compared without being named.
TEST(Compare, CallsAGrowingCostWorse) {
  std::mt19937 random(17);
  const auto base = noisy_run(4, 3, 0.01, random, unchanged);
  const auto fresh = noisy_run(4, 3, 0.01, random, [](int) { return 1.5; });
  for (const MeasureInfo& measure : known_measures()) {
    const std::string name(measure.name);
    const auto report = compare(renamed(base, name), renamed(fresh, name));
    if (measure.better == Better::kNeither) {
      EXPECT_FALSE(report) << name << " describes the run and is neither good nor bad";
      continue;
    }
    ASSERT_TRUE(report) << name << ": " << report.error().message;
    EXPECT_EQ(report->regressions, measure.better == Better::kLess ? 4U : 0U) << name;
    EXPECT_EQ(report->comparisons.front().change,
              measure.better == Better::kLess ? Change::kRegressed : Change::kImproved)
        << name;
  }
}

// Claim:  the direction of a measure that greynic does not know is asked for, never guessed; saying
//         it does not turn a known one round.
TEST(Compare, AsksForADirectionThatItDoesNotKnow) {
  std::mt19937 random(18);
  const auto base = noisy_run(4, 3, 0.01, random, unchanged);
  const auto fresh = noisy_run(4, 3, 0.01, random, [](int) { return 1.5; });
  const auto own_base = renamed(base, "furlongs");
  const auto own_fresh = renamed(fresh, "furlongs");
  const auto refused = compare(own_base, own_fresh, {.metrics = {"furlongs"}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(exit_code(refused.error().code), 2);
  EXPECT_NE(refused.error().message.find("--better"), std::string::npos);
  const auto unnamed = compare(own_base, own_fresh);
  ASSERT_FALSE(unnamed);
  EXPECT_NE(unnamed.error().message.find("--metric"), std::string::npos);
  const auto regressions = [&](const auto& from, const auto& to, const char* metric,
                               Better better) {
    return compare(from, to, {.metrics = {metric}, .better = better})->regressions;
  };
  EXPECT_EQ(regressions(own_base, own_fresh, "furlongs", Better::kLess), 4U);
  EXPECT_EQ(regressions(own_base, own_fresh, "furlongs", Better::kMore), 0U);
  EXPECT_EQ(regressions(own_fresh, own_base, "furlongs", Better::kMore), 4U);
  EXPECT_EQ(regressions(base, fresh, "bandwidth_gbps", Better::kLess), 0U);
}

// Claim:  a new run that lacks configurations, or took no value, is too little to be called as
//         good, unless that is allowed; with nothing judged it never is enough.
TEST(Compare, SaysWhenTooLittleCanBeJudged) {
  std::mt19937 random(19);
  const auto base = noisy_run(24, 3, 0.01, random, unchanged);
  const std::vector<Observation> three(base.begin(), base.begin() + 9);
  const auto partial = compare(base, three);
  ASSERT_TRUE(partial);
  EXPECT_EQ(partial->only_base.size(), 21U);
  EXPECT_NE(partial->too_little(false).find("21 of 24 configurations"), std::string::npos);
  EXPECT_EQ(partial->too_little(true), "");
  EXPECT_EQ(compare(base, base)->too_little(false), "");
  EXPECT_EQ(compare(three, base)->too_little(false), "") << "the new run may have more";

  const auto single = noisy_run(6, 1, 0.01, random, unchanged);
  EXPECT_NE(compare(single, single)->too_little(true).find("second repeat"), std::string::npos);

  auto brief = base;
  for (Observation& observation : brief) {
    if (observation.asked.number("qp_count") != 5) continue;
    observation.outcome = Outcome::kTooShort;
    observation.measures.clear();
  }
  const auto short_run = compare(base, brief);
  ASSERT_TRUE(short_run);
  EXPECT_EQ(short_run->regressions, 0U) << "nothing is known of what was measured too briefly";
  EXPECT_EQ(short_run->not_judged, 2U);
  EXPECT_NE(short_run->too_little(false).find("too_short"), std::string::npos);
}

// Claim:  what does not run any more is a regression, what runs again is mended, and configurations
//         of one run alone are counted and not judged.
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
  EXPECT_EQ(report->comparisons.front().change, Change::kBroke);
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
  EXPECT_EQ(unknown->comparisons.front().change, Change::kNotJudged);
  EXPECT_EQ(unknown->regressions, 0U);
}

// Claim:  runs with nothing in common are refused.
TEST(Compare, RefusesRunsWithNothingInCommon) {
  std::mt19937 random(16);
  const auto base = noisy_run(2, 2, 0.01, random, unchanged);
  auto other = base;
  for (Observation& observation : other) observation.asked.set("thread_count", 3.0);
  EXPECT_EQ(compare(base, other).error().code, ErrorCode::kBadInput);
  EXPECT_EQ(compare(base, base, {.metrics = {"loss_share"}}).error().code, ErrorCode::kBadInput);
  EXPECT_EQ(compare({}, {}).error().code, ErrorCode::kBadInput);
}

// Claim:  JUnit XML counts its failures and escapes what XML reserves.
TEST(Compare, WritesJunitXml) {
  CompareReport report;
  Comparison broken;
  broken.configuration = {{"a<b>&\"c\"", std::string("x")}};
  broken.metric = "bandwidth_gbps";
  broken.change = Change::kRegressed;
  report.comparisons = {broken, Comparison{}};
  report.comparisons.back().reason = "no spread";
  report.regressions = 1;
  report.not_judged = 1;
  report.only_base = {{{"qp_count", 8.0}}, {{"qp_count", 16.0}}};
  const std::string text = junit_text(report, "base & new");
  EXPECT_NE(text.find("tests=\"4\" failures=\"1\" skipped=\"3\" errors=\"0\""), std::string::npos)
      << text;
  const auto count = [&](const std::string& what) {
    std::size_t found = 0;
    for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
    return found;
  };
  EXPECT_EQ(count("<testcase "), 4U);
  EXPECT_EQ(count("<skipped "), 3U);
  EXPECT_EQ(count("<failure "), 1U);
  EXPECT_NE(text.find("name=\"qp_count=16\""), std::string::npos) << text;
  EXPECT_NE(text.find("a&lt;b&gt;&amp;&quot;c&quot;=x"), std::string::npos) << text;
  EXPECT_EQ(text.find("a<b"), std::string::npos);
  EXPECT_NE(text.find("base &amp; new"), std::string::npos);
}

// Claim:  characters that XML cannot hold, not even escaped, leave a file that XML readers take.
TEST(Compare, WritesJunitXmlWhateverNamesHold) {
  CompareReport report;
  Comparison broken;
  broken.configuration = {{"a\xef\xbf\xbe\xef\xbf\xbf\x01\x1b\x7f\xff", std::string("x")}};
  broken.metric = "bandwidth_gbps";
  broken.change = Change::kRegressed;
  report.comparisons = {broken};
  report.regressions = 1;
  const std::string text = junit_text(report, "base");
  EXPECT_NE(text.find("a" + std::string(6, '?') + "=x"), std::string::npos) << text;
  for (const char* forbidden : {"\xef\xbf\xbe", "\xef\xbf\xbf", "\x01", "\x1b", "\x7f", "\xff"}) {
    EXPECT_EQ(text.find(forbidden), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace greynic::results
