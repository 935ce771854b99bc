#include "greynic/causal/explain.h"

#include <gtest/gtest.h>

#include "device_of_ten.h"

namespace greynic::causal {
namespace {

// Claim:  with a laboratory, the planted conjunction is named, no term more or less, every term is
//         confirmed, and each threshold lies between two neighbouring levels of the campaign, in at
//         least 97 of 100 runs.
// Oracle: what was planted. Seeds are consecutive; none was chosen.
TEST(Explain, NamesThePlantedConjunctionByExperiment) {
  const Campaign campaign = campaign_of_ten();
  int right = 0;
  int with_walls = 0;
  for (std::uint64_t seed = 1000; seed < 1100; ++seed) {
    PlantedDevice device = planted(campaign, 1 + static_cast<int>(seed % 3), seed);
    const auto run = run_of(campaign, measuring(device), device.random);
    const Laboratory laboratory = laboratory_of(measuring(device));
    const auto explanation = explain(campaign, run, {}, &laboratory);
    ASSERT_TRUE(explanation) << explanation.error().message;
    if (explanation->walls.empty()) continue;  // the plan never hit it: nothing to explain
    ++with_walls;
    bool good = explanation->causes.size() == 1;
    for (const Cause& cause : explanation->causes) {
      std::set<std::string> terms;
      for (const Condition& condition : cause.all_of) {
        terms.insert(condition.factor);
        const auto truth = device.all_of.find(condition.factor);
        good &= condition.confirmed && truth != device.all_of.end();
        if (!good) break;
        if (const double* bound = std::get_if<double>(&truth->second)) {
          good &= *condition.clear_level < *bound && *bound <= std::get<double>(condition.level);
          const auto& levels = campaign.find(condition.factor)->levels;
          const auto here = std::find(levels.begin(), levels.end(), condition.level);
          good &= here != levels.end() && *std::prev(here) == FactorValue(*condition.clear_level);
        }
      }
      good &= terms.size() == device.all_of.size();
    }
    right += good ? 1 : 0;
    if (!good)
      std::printf("seed %llu:\n%s\n", static_cast<unsigned long long>(seed),
                  to_text(*explanation).c_str());
  }
  EXPECT_GT(with_walls, 80);
  EXPECT_GE(right, with_walls * 97 / 100) << "of " << with_walls;
}

// Claim: a device without a wall is not accused; at 99 % confidence at most 3 of 100 runs err.
TEST(Explain, FindsNoWallWhereThereIsNone) {
  const Campaign campaign = campaign_of_ten();
  int accused = 0;
  for (std::uint64_t seed = 2000; seed < 2100; ++seed) {
    PlantedDevice device;
    device.noise = 0.08;
    device.random.seed(seed);
    const auto run = run_of(campaign, measuring(device), device.random);
    const auto explanation = explain(campaign, run);
    ASSERT_TRUE(explanation) << explanation.error().message;
    accused += explanation->walls.empty() ? 0 : 1;
  }
  EXPECT_LE(accused, 3);
}

// Claim:  a search may begin where a wall is likely; where the witness's first test alone was slow, no
//         wall and no cause are told in the end.
TEST(Explain, AWitnessThatWasSlowOnceIsNoWall) {
  const Campaign campaign = campaign_of_ten();
  int refused = 0;
  for (std::uint64_t seed = 2200; seed < 2220; ++seed) {
    PlantedDevice device;
    device.random.seed(seed);
    ExplainOptions options;
    options.witness = random_configuration(campaign, device.random);
    int of_witness = 0;
    const Laboratory laboratory = laboratory_of([&](const Configuration& configuration) {
      Observation observation = device.measure(configuration);
      const bool slow = configuration == *options.witness && ++of_witness == 1;
      if (slow) observation.measures["bandwidth_gbps"].value *= 0.6;
      return observation;
    });
    const auto explanation = explain(campaign, {}, options, &laboratory);
    ASSERT_TRUE(explanation) << explanation.error().message;
    EXPECT_TRUE(explanation->causes.empty()) << to_text(*explanation);
    EXPECT_TRUE(explanation->walls.empty()) << to_text(*explanation);
    refused += explanation->finding == Finding::kFalseAlarm ? 1 : 0;
  }
  EXPECT_GE(refused, 19);
}

// Claim:  two tests of the baseline that stall one after the other are no device that stays slow.
TEST(Explain, TwoStallsInARowAreNoSlowDevice) {
  const Campaign campaign = campaign_of_ten();
  for (std::uint64_t seed = 2250; seed < 2260; ++seed) {
    PlantedDevice device;
    device.random.seed(seed);
    device.all_of = {{"c5", std::string("b")}, {"c7", std::string("b")}};
    ExplainOptions options;
    options.witness = campaign.baseline;
    for (int i = 5; i < kFactors; ++i)
      options.witness->set("c" + std::to_string(i), std::string("b"));
    int of_baseline = 0;
    const Laboratory laboratory = laboratory_of([&](const Configuration& configuration) {
      Observation observation = device.measure(configuration);
      const bool stalled =
          configuration == campaign.baseline && ++of_baseline >= 2 && of_baseline <= 3;
      if (stalled) observation.measures["bandwidth_gbps"].value *= 0.5;
      return observation;
    });
    const auto explanation = explain(campaign, {}, options, &laboratory);
    ASSERT_TRUE(explanation) << explanation.error().message;
    ASSERT_EQ(explanation->causes.size(), 1U) << to_text(*explanation);
    EXPECT_EQ(explanation->causes.front().text(), "c5 = b and c7 = b");
    EXPECT_EQ(to_text(*explanation).find("stays slow"), std::string::npos);
  }
}

// Claim: from stored observations alone a hypothesis holds on every wall that it explains and on no
//        clear configuration, and says that it is one.
TEST(Explain, AHypothesisAgreesWithEveryObservation) {
  const Campaign campaign = campaign_of_ten();
  for (std::uint64_t seed = 3000; seed < 3020; ++seed) {
    PlantedDevice device = planted(campaign, 1 + static_cast<int>(seed % 2), seed);
    const auto run = run_of(campaign, measuring(device), device.random);
    const auto explanation = explain(campaign, run);
    ASSERT_TRUE(explanation) << explanation.error().message;
    for (const Wall& wall : explanation->walls) ASSERT_TRUE(wall.cause) << "seed " << seed;
    for (const Cause& cause : explanation->causes) {
      EXPECT_FALSE(cause.by_experiment);
      for (const Observation& observation : run) {
        if (cause.holds(observation.asked)) EXPECT_TRUE(device.is_hit(observation.asked));
      }
    }
  }
}

// Claim: two separate causes are both found.
TEST(Explain, SeparatesTwoCauses) {
  const Campaign campaign = campaign_of_ten();
  PlantedDevice first;
  first.random.seed(77);
  first.all_of = {{"n0", 20.0}};
  PlantedDevice second;
  second.all_of = {{"c7", std::string("b")}, {"n3", 40.0}};
  const auto measure = [&](const Configuration& configuration) {
    Observation observation = first.measure(configuration);
    if (second.is_hit(configuration)) observation.measures["bandwidth_gbps"].value *= 0.5;
    return observation;
  };
  const auto run = run_of(campaign, measure, first.random, 300);
  const auto second_alone = std::ranges::count_if(run, [&](const Observation& observation) {
    return second.is_hit(observation.asked) && !first.is_hit(observation.asked);
  });
  ASSERT_GT(second_alone, 0) << "the plan never shows the second cause by itself";
  const Laboratory laboratory = laboratory_of(measure);
  const auto explanation = explain(campaign, run, {}, &laboratory);
  ASSERT_TRUE(explanation) << explanation.error().message;
  ASSERT_EQ(explanation->causes.size(), 2U) << to_text(*explanation);
  std::set<std::size_t> sizes;
  for (const Cause& cause : explanation->causes) sizes.insert(cause.all_of.size());
  EXPECT_EQ(sizes, (std::set<std::size_t>{1, 2})) << to_text(*explanation);
}

// Claim: a level under which the wall stays away is named as an exception, and tested.
TEST(Explain, NamesTheExceptionOfACause) {
  const Campaign campaign = campaign_of_ten();
  PlantedDevice device;
  device.random.seed(31);
  device.all_of = {{"n1", 20.0}};
  const auto measure = [&](const Configuration& configuration) {
    Observation observation = device.measure(configuration);
    if (configuration.text("c8") == "b" && device.is_hit(configuration)) {
      observation.measures["bandwidth_gbps"].value /= 1.0 - device.drop;
    }
    return observation;
  };
  const auto run = run_of(campaign, measure, device.random, 60);
  const Laboratory laboratory = laboratory_of(measure);
  const auto explanation = explain(campaign, run, {}, &laboratory);
  ASSERT_TRUE(explanation) << explanation.error().message;
  ASSERT_EQ(explanation->causes.size(), 1U) << to_text(*explanation);
  const Cause& cause = explanation->causes[0];
  ASSERT_EQ(cause.unless.size(), 1U) << to_text(*explanation);
  EXPECT_EQ(cause.unless[0].text(), "c8 = b");
  EXPECT_TRUE(cause.unless[0].confirmed);
}

// Claim: a device that fails outright is a wall whose outcome is named, and its cause is found.
TEST(Explain, AFailingDeviceIsAWall) {
  const Campaign campaign = campaign_of_ten();
  PlantedDevice device;
  device.random.seed(5);
  device.all_of = {{"c5", std::string("b")}, {"c6", std::string("b")}};
  const auto measure = [&](const Configuration& configuration) {
    Observation observation = device.measure(configuration);
    if (!device.is_hit(configuration)) return observation;
    observation.outcome = Outcome::kFailed;
    observation.reason = "IBV_WC_RETRY_EXC_ERR";
    observation.measures.clear();
    return observation;
  };
  const auto run = run_of(campaign, measure, device.random, 40);
  const Laboratory laboratory = laboratory_of(measure);
  const auto explanation = explain(campaign, run, {}, &laboratory);
  ASSERT_TRUE(explanation) << explanation.error().message;
  ASSERT_EQ(explanation->causes.size(), 1U) << to_text(*explanation);
  EXPECT_EQ(explanation->causes[0].text(), "c5 = b and c6 = b");
  EXPECT_NE(explanation->walls[0].outcome.find("IBV_WC_RETRY_EXC_ERR"), std::string::npos);
}

// Claim:  a share that is nothing at the baseline is explained against a bound far below what a wall has,
//         and so is one that is a hundred times the baseline's.
// Method: Collie's bound for pauses, a thousandth of the time; walls from twice it to all of the time.
TEST(Explain, AWallMayBeFarBeyondItsBound) {
  Campaign campaign = campaign_of_ten();
  PlantedDevice device;
  device.random.seed(8);
  device.all_of = {{"c5", std::string("b")}, {"c7", std::string("b")}};
  ExplainOptions options;
  options.witness = campaign.baseline;
  for (int i = 5; i < kFactors; ++i)
    options.witness->set("c" + std::to_string(i), std::string("b"));
  const auto tests_of = [&](double clear, double wall) {
    const Laboratory laboratory = laboratory_of([&](const Configuration& configuration) {
      Observation observation = device.measure(configuration);
      const double noise = observation.measures["bandwidth_gbps"].value /
                           (device.is_hit(configuration) ? 100.0 * (1.0 - device.drop) : 100.0);
      const double share = device.is_hit(configuration) ? wall : clear;
      observation.measures["pause_share"] = {share * noise, {}};
      return observation;
    });
    const auto explanation = explain(campaign, {}, options, &laboratory);
    EXPECT_TRUE(explanation) << explanation.error().message;
    EXPECT_EQ(explanation->causes.size(), 1U) << to_text(*explanation);
    EXPECT_TRUE(explanation->complete) << to_text(*explanation);
    if (!explanation->causes.empty()) {
      EXPECT_EQ(explanation->causes.front().text(), "c5 = b and c7 = b");
    }
    return explanation->tests;
  };
  campaign.wall = {.metric = "pause_share", .above = 0.001};
  for (const double wall : {0.002, 0.02, 0.3, 1.0}) EXPECT_LE(tests_of(0.0, wall), 40U) << wall;
  campaign.wall = {.metric = "pause_share", .above_baseline_by = 0.2};
  for (const double wall : {0.02, 0.3, 1.0}) EXPECT_LE(tests_of(0.01, wall), 40U) << wall;
}

/// Whatever meets the one cause meets the other, by trying all levels of the campaign's factors
/// that either looks at.
bool is_within(const Cause& one, const Cause& other, const Campaign& campaign,
               std::mt19937_64& random) {
  bool any = false;
  for (int i = 0; i < 3000; ++i) {
    Configuration configuration = random_configuration(campaign, random);
    for (const Condition& condition : one.all_of) {
      // No level of one factor stands for a sum of two.
      const bool sum = condition.relation == Relation::kSumAtLeast;
      if (!sum) configuration.set(condition.factor, condition.level);
    }
    if (!one.holds(configuration)) continue;
    any = true;
    if (!other.holds(configuration)) return false;
  }
  return any;
}

// Claim:  a wall that comes gradually is named once: where other settings or noise move its
//         threshold, the causes found from different walls are not told one beside the other.
// Oracle: random configurations under one cause; none may all lie under another.
// Method: bandwidth falls with n0, a little with n1, and levels lie close about the threshold.
TEST(Explain, NamesAGradualWallOnce) {
  Campaign campaign = campaign_of_ten();
  campaign.factors[0].levels.clear();
  for (const double level : {0.0, 20.0, 32.0, 33.0, 34.0, 35.0, 36.0, 37.0, 38.0, 60.0}) {
    campaign.factors[0].levels.emplace_back(level);
  }
  int explained = 0;
  int twice = 0;
  for (std::uint64_t seed = 4000; seed < 4006; ++seed) {
    std::mt19937_64 random(seed);
    std::normal_distribution<double> draw(0.0, 0.01);
    const auto measure = [&](const Configuration& configuration) {
      Observation observation;
      observation.asked = configuration;
      observation.outcome = Outcome::kMeasured;
      const double load = configuration.number("n0") / 35 + configuration.number("n1") / 1600;
      observation.measures["bandwidth_gbps"] = {100 * (1 - 0.2 * load) * std::exp(draw(random)),
                                                {}};
      return observation;
    };
    const auto run = run_of(campaign, measure, random, 80);
    const Laboratory laboratory = laboratory_of(measure);
    const auto explanation = explain(campaign, run, {}, &laboratory);
    ASSERT_TRUE(explanation) << explanation.error().message;
    const auto& causes = explanation->causes;
    explained += causes.empty() ? 0 : 1;
    bool nested = false;
    for (const Cause& one : causes) {
      for (const Cause& other : causes) {
        nested |= &one != &other && is_within(one, other, campaign, random);
      }
    }
    twice += nested ? 1 : 0;
    if (nested) {
      std::printf("seed %llu:\n%s\n", static_cast<unsigned long long>(seed),
                  to_text(*explanation).c_str());
    }
    for (const Wall& wall : explanation->walls) {
      if (wall.cause) EXPECT_TRUE(causes[*wall.cause].holds(wall.configuration));
    }
  }
  EXPECT_GT(explained, 2) << "some walls are too near the bound to be told from it";
  EXPECT_EQ(twice, 0);
}

}  // namespace
}  // namespace greynic::causal
