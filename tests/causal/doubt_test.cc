/// Where explain() has to ask again, or may name no cause.

#include <gtest/gtest.h>

#include "device_of_ten.h"

namespace greynic::causal {
namespace {

// Claim:  a measurement that was too short is no wall. From stored observations alone such a
//         configuration is undecided, and the text says what to do; a laboratory, which measures
//         longer, is asked again.
// Oracle: a device without any wall, on which nothing completes in the run's time where n0 is 80.
TEST(Explain, AsksAgainWhereNothingCompleted) {
  const Campaign campaign = campaign_of_ten();
  PlantedDevice device;
  device.random.seed(8);
  std::set<Configuration> brief;
  const auto in_short_time = [&](const Configuration& configuration) {
    Observation observation = device.measure(configuration);
    if (configuration.number("n0") < 80) return observation;
    brief.insert(configuration);
    observation.outcome = Outcome::kTooShort;
    observation.measures.clear();
    return observation;
  };
  const auto run = run_of(campaign, in_short_time, device.random);
  const std::size_t too_short = brief.size();
  ASSERT_GT(too_short, 3U);

  const auto stored = explain(campaign, run);
  ASSERT_TRUE(stored) << stored.error().message;
  EXPECT_EQ(stored->walls.size(), 0U) << to_text(*stored);
  EXPECT_EQ(stored->undecided, too_short);
  EXPECT_EQ(stored->refused, 0U);
  EXPECT_NE(to_text(*stored).find("measure longer"), std::string::npos);

  const Laboratory patient = laboratory_of(measuring(device));
  const auto asked = explain(campaign, run, {}, &patient);
  ASSERT_TRUE(asked) << asked.error().message;
  EXPECT_EQ(asked->walls.size(), 0U) << to_text(*asked);
  EXPECT_EQ(asked->undecided, 0U);

  const Laboratory hopeless = laboratory_of(in_short_time);
  const auto open = explain(campaign, run, {}, &hopeless);
  ASSERT_TRUE(open) << open.error().message;
  EXPECT_EQ(open->walls.size(), 0U) << to_text(*open);
  EXPECT_EQ(open->undecided, too_short);
}

/// Levels 0 10 20 40 80, and a baseline far beyond them, from which every configuration of the plan
/// falls.
Campaign campaign_below_its_baseline() {
  Campaign campaign = campaign_of_ten();
  campaign.baseline.set("n0", 1000.0);
  return campaign;
}

/// Slow wherever n0 is below 500, whatever else is set.
Observation slow_below_500(const Configuration& configuration) {
  Observation observation;
  observation.asked = configuration;
  observation.outcome = Outcome::kMeasured;
  observation.measures["bandwidth_gbps"] = {configuration.number("n0") < 500 ? 60.0 : 100.0, {}};
  return observation;
}

// Claim:  a baseline outside the levels of a factor stays what it is in ordered tests.
TEST(Explain, KeepsABaselineOutsideTheLevels) {
  const Campaign campaign = campaign_below_its_baseline();
  std::mt19937_64 random(9);
  const auto run = run_of(campaign, slow_below_500, random);
  const Laboratory laboratory = laboratory_of(slow_below_500);
  const auto explanation = explain(campaign, run, {}, &laboratory);
  ASSERT_TRUE(explanation) << explanation.error().message;
  ASSERT_EQ(explanation->causes.size(), 1U) << to_text(*explanation);
  const Cause& cause = explanation->causes.front();
  EXPECT_EQ(cause.all_of.size(), 1U) << cause.text();
  EXPECT_EQ(cause.all_of.front().factor, "n0");
  EXPECT_TRUE(cause.all_of.front().confirmed);
  EXPECT_EQ(cause.all_of.front().text(), "n0 <= 80 (clear at 1000)");
  EXPECT_GT(cause.confidence, 0.99);
  for (const Evidence& one : cause.evidence) {
    if (one.role == "without n0") {
      EXPECT_EQ(one.configuration.number("n0"), 1000.0);
      EXPECT_FALSE(one.wall);
    }
  }
}

// Claim:  what further tests do not confirm is not called a cause; a note says so.
// Method: a device that cannot set the baseline's own level puts the first one in its place, so
//         that every test that it makes is a wall.
TEST(Explain, NamesNoCauseThatTestsDoNotConfirm) {
  const Campaign campaign = campaign_below_its_baseline();
  std::mt19937_64 random(10);
  const auto run = run_of(campaign, slow_below_500, random);
  const Laboratory laboratory = laboratory_of([&](const Configuration& configuration) {
    Configuration granted = configuration;
    granted.set("n0", campaign.factors.front().levels.front());
    Observation observation = slow_below_500(granted);
    observation.asked = configuration;
    return observation;
  });
  const auto explanation = explain(campaign, run, {}, &laboratory);
  ASSERT_TRUE(explanation) << explanation.error().message;
  EXPECT_TRUE(explanation->causes.empty()) << to_text(*explanation);
  EXPECT_FALSE(explanation->complete);
  EXPECT_NE(to_text(*explanation).find("do not confirm"), std::string::npos);
}

TEST(Explain, SaysWhatIsMissing) {
  const Campaign campaign = campaign_of_ten();
  Observation observation;
  observation.asked = campaign.baseline;
  observation.outcome = Outcome::kMeasured;
  EXPECT_EQ(explain(campaign, {&observation, 1}).error().code, ErrorCode::kNotMeasured);
  observation.measures["bandwidth_gbps"] = {1.0, {}};
  observation.asked.set("n0", 10.0);
  const auto refused = explain(campaign, {&observation, 1});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("baseline"), std::string::npos);
}

}  // namespace
}  // namespace greynic::causal
