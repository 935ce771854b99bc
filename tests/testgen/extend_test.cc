#include "greynic/testgen/extend.h"

#include <gtest/gtest.h>

#include <set>

namespace greynic::testgen {
namespace {

Campaign small_campaign() {
  Campaign campaign;
  campaign.name = "extend";
  for (const char* name : {"a", "b", "c", "d"}) {
    Factor factor;
    factor.name = name;
    factor.levels = {0.0, 1.0, 2.0};
    campaign.factors.push_back(factor);
    campaign.baseline.set(name, 0.0);
  }
  return campaign;
}

std::vector<Observation> run_of(const Plan& plan) {
  std::vector<Observation> out;
  for (const Configuration& configuration : plan.configurations) {
    Observation observation;
    observation.asked = configuration;
    observation.outcome = Outcome::kMeasured;
    out.push_back(observation);
  }
  return out;
}

using Levels = std::vector<double>;

std::set<Levels> combinations(const std::vector<Configuration>& configurations,
                              const std::vector<std::string>& factors) {
  std::set<Levels> out;
  for (const Configuration& configuration : configurations) {
    Levels levels;
    for (const std::string& factor : factors) levels.push_back(configuration.number(factor));
    out.insert(levels);
  }
  return out;
}

// Claim:  when all was measured and nothing was explained, there is nothing to add.
TEST(Extend, AddsNothingToACompleteRun) {
  const Campaign campaign = small_campaign();
  const auto first = make_plan(campaign, {});
  ASSERT_TRUE(first);
  const auto more = extend_plan(campaign, run_of(*first), {}, {});
  ASSERT_TRUE(more) << more.error().message;
  EXPECT_EQ(more->configurations.size(), 1U);
}

// Claim:  pairs that met only in a refused configuration are tried again, elsewhere.
// Oracle: pairs counted by hand over what was measured and what was added.
TEST(Extend, TriesWhatARefusalLeftOpenInOtherCompany) {
  const Campaign campaign = small_campaign();
  const auto first = make_plan(campaign, {});
  ASSERT_TRUE(first);
  std::vector<Observation> run = run_of(*first);
  run[3].outcome = Outcome::kRefused;
  const auto more = extend_plan(campaign, run, {}, {});
  ASSERT_TRUE(more) << more.error().message;
  EXPECT_GT(more->configurations.size(), 1U);
  EXPECT_LE(more->configurations.size(), 1U + 6U);
  std::vector<Configuration> all = more->configurations;
  for (std::size_t i = 0; i < run.size(); ++i) {
    if (i != 3) all.push_back(run[i].asked);
  }
  for (const Configuration& configuration : more->configurations) {
    EXPECT_NE(configuration, run[3].asked);
  }
  for (const auto& pair : std::vector<std::vector<std::string>>{
           {"a", "b"}, {"a", "c"}, {"a", "d"}, {"b", "c"}, {"b", "d"}, {"c", "d"}}) {
    EXPECT_EQ(combinations(all, pair).size(), 9U) << pair[0] << pair[1];
  }
}

// Claim:  the factors of a cause are covered together with every other factor.
TEST(Extend, CoversACauseWithEveryOtherFactor) {
  const Campaign campaign = small_campaign();
  const auto first = make_plan(campaign, {});
  ASSERT_TRUE(first);
  const auto causes = factors_of_causes(
      R"({"causes": [{"all_of": [{"factor": "b"}, {"factor": "a"}]}, {"all_of": []}]})");
  ASSERT_TRUE(causes) << causes.error().message;
  ASSERT_EQ(*causes, (std::vector<std::vector<std::string>>{{"a", "b"}}));
  const auto more = extend_plan(campaign, run_of(*first), *causes, {});
  ASSERT_TRUE(more) << more.error().message;
  std::vector<Configuration> all = more->configurations;
  all.insert(all.end(), first->configurations.begin(), first->configurations.end());
  EXPECT_EQ(combinations(all, {"a", "b", "c"}).size(), 27U);
  EXPECT_EQ(combinations(all, {"a", "b", "d"}).size(), 27U);
  EXPECT_LE(more->configurations.size(), 1U + 22U);
  EXPECT_FALSE(factors_of_causes("[]"));
  EXPECT_FALSE(factors_of_causes("{\"causes\": [{\"all_of\": [3]}]}"));
}

}  // namespace
}  // namespace greynic::testgen
