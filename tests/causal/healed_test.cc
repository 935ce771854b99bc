/// Settings that heal what others cause, and walls that come level by level.

#include <gtest/gtest.h>

#include "device_of_ten.h"

namespace greynic::causal {
namespace {

/// A witness with these factors at "b", and 100 Gbit/s times what `left` says.
Explanation explained(const std::vector<std::string>& factors, std::uint64_t seed,
                      const std::function<double(const Configuration&)>& left) {
  const Campaign campaign = campaign_of_ten();
  PlantedDevice device;
  device.random.seed(seed);
  const Laboratory laboratory = laboratory_of([&](const Configuration& configuration) {
    Observation observation = device.measure(configuration);
    observation.measures["bandwidth_gbps"].value *= left(configuration);
    return observation;
  });
  ExplainOptions options;
  options.witness = campaign.baseline;
  for (const std::string& factor : factors) options.witness->set(factor, std::string("b"));
  return explain(campaign, {}, options, &laboratory).value();
}

std::set<std::string> texts_of(const Explanation& explanation) {
  std::set<std::string> texts;
  for (const Cause& cause : explanation.causes) texts.insert(cause.text());
  return texts;
}

// Claim:  where one setting brings a wall, another heals it and a third undoes that, the first alone is
//         named: what undoes the healing is no term.
// Method: each order of the three roles among the settings, for rows add them in a fixed order.
TEST(Healed, WhatUndoesTheHealingIsNoTerm) {
  std::vector<std::string> roles = {"c5", "c6", "c7"};
  do {
    const auto explanation =
        explained({"c5", "c6", "c7"}, 7100, [&](const Configuration& configuration) {
          const bool healed = is_set(configuration, roles[1]) && !is_set(configuration, roles[2]);
          return is_set(configuration, roles[0]) && !healed ? 0.6 : 1.0;
        });
    EXPECT_EQ(texts_of(explanation), (std::set<std::string>{roles[0] + " = b"}))
        << to_text(explanation);
  } while (std::next_permutation(roles.begin(), roles.end()));
}

// Claim:  of few settings, one that is a wall by itself is named although another setting of the wall
//         heals it there.
// Method: the same, in each order of the roles; two settings more have none.
TEST(Healed, ACauseThatTheWallItselfHealsIsNamed) {
  std::vector<std::string> roles = {"c5", "c6", "c7"};
  do {
    const auto explanation =
        explained({"c5", "c6", "c7", "c8", "c9"}, 7200, [&](const Configuration& configuration) {
          const bool hidden = is_set(configuration, roles[1]) && !is_set(configuration, roles[2]);
          return is_set(configuration, roles[0]) || hidden ? 0.6 : 1.0;
        });
    EXPECT_EQ(texts_of(explanation), (std::set<std::string>{roles[0] + " = b", roles[1] + " = b"}))
        << to_text(explanation);
  } while (std::next_permutation(roles.begin(), roles.end()));
}

/// How many of 40 walls of n0, which is 7 of 0 to 7 in the witness, begin at 4 as they should; `measured`
/// changes what the test of so much is, the n-th at its level.
int slopes_from_four(const std::vector<double>& rates, double noise,
                     const std::function<double(double rate, int level, int n)>& measured) {
  Campaign campaign = campaign_of_ten();
  campaign.wall.below_baseline_by = 0.5;
  campaign.factors[0].levels.clear();
  for (std::size_t i = 0; i < rates.size(); ++i) {
    campaign.factors[0].levels.emplace_back(static_cast<double>(i));
  }
  int right = 0;
  for (std::uint64_t seed = 7300; seed < 7340; ++seed) {
    PlantedDevice device;
    device.noise = noise;
    device.random.seed(seed);
    std::map<int, int> tests;
    const Laboratory laboratory = laboratory_of([&](const Configuration& configuration) {
      Observation observation = device.measure(configuration);
      const int level = static_cast<int>(configuration.number("n0"));
      const double rate = rates[static_cast<std::size_t>(level)];
      observation.measures["bandwidth_gbps"].value *= measured(rate, level, ++tests[level]) / 100.0;
      return observation;
    });
    ExplainOptions options;
    options.witness = campaign.baseline;
    options.witness->set("n0", static_cast<double>(rates.size()) - 1.0);
    options.witness->set("c7", std::string("b"));
    const auto explanation = explain(campaign, {}, options, &laboratory).value();
    right += texts_of(explanation) == std::set<std::string>{"n0 >= 4 (clear at 3)"} ? 1 : 0;
  }
  return right;
}

// Claim:  where a rate falls level by level, levels between the baseline's rate and the bound are clear,
//         at a noise of 15 %.
// Oracle: 100, 85, 72 and 65 Gbit/s are clear at a bound of 50; 38 and less are walls.
TEST(Healed, ASlopeBeginsWhereItCrossesTheBound) {
  EXPECT_GE(slopes_from_four({100, 85, 72, 65, 38, 28, 20, 14}, 0.15,
                             [](double rate, int, int) { return rate; }),
            38);
}

// Claim:  one value far off, of a level of such a slope, does not move the threshold: no other level is as
//         fast, so what lies next to the threshold is tested again.
// Method: a noise of 20 %; a clear level shows 15 in place of 85 in its first test.
TEST(Healed, OneSlowTestOfALevelMovesNoThreshold) {
  EXPECT_GE(slopes_from_four(
                {100, 85, 72, 65, 38, 28, 20, 14}, 0.20,
                [](double rate, int level, int n) { return level == 1 && n == 1 ? 15.0 : rate; }),
            38);
}

}  // namespace
}  // namespace greynic::causal
