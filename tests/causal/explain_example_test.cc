#include <gtest/gtest.h>

#include <algorithm>
#include <span>

#include "greynic/causal/explain.h"

namespace greynic::causal {
namespace {

// Claim:  the example in the header is what happens: this cause, and no level asked about that is
//         not the campaign's.
TEST(ExplainExample, FindsWhatTheExampleSays) {
  Campaign campaign;
  const auto add = [&](const char* name, std::vector<FactorValue> levels) {
    Factor factor;
    factor.name = name;
    factor.type =
        std::holds_alternative<double>(levels[0]) ? FactorType::kNumeric : FactorType::kCategorical;
    factor.levels = std::move(levels);
    campaign.factors.push_back(std::move(factor));
  };
  add("message_bytes", {64.0, 65536.0});
  add("operation", {std::string("SEND"), std::string("READ")});
  add("qp_count", {1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0});
  add("server_decap_masks", {0.0, 4.0, 8.0, 12.0, 16.0, 20.0, 40.0});
  campaign.wall = {"bandwidth_gbps", 0.2, {}, {}, {}};
  campaign.baseline = {{"message_bytes", 65536.0},
                       {"operation", std::string("SEND")},
                       {"qp_count", 1.0},
                       {"server_decap_masks", 0.0}};
  const Configuration wall = {{"message_bytes", 64.0},
                              {"operation", std::string("READ")},
                              {"qp_count", 64.0},
                              {"server_decap_masks", 40.0}};
  std::size_t strangers = 0;
  const auto measure = [&](const Configuration& configuration) {
    Observation observation;
    observation.asked = configuration;
    observation.outcome = Outcome::kMeasured;
    const bool slow =
        configuration.number("qp_count") >= 8 && configuration.number("server_decap_masks") >= 12;
    observation.measures["bandwidth_gbps"] = {slow ? 50.0 : 100.0, {}};
    for (const auto& [name, level] : configuration.levels()) {
      const auto& levels = campaign.find(name)->levels;
      strangers += std::find(levels.begin(), levels.end(), level) == levels.end() ? 1 : 0;
    }
    return observation;
  };
  std::vector<Observation> run;
  for (int repeat = 0; repeat < 3; ++repeat) {
    run.push_back(measure(campaign.baseline));
    run.push_back(measure(wall));
  }
  Laboratory laboratory;
  laboratory.measure = [&](std::span<const Configuration> wanted) {
    std::vector<Observation> made;
    for (const Configuration& one : wanted) made.push_back(measure(one));
    return Result<std::vector<Observation>>(std::move(made));
  };
  const auto explanation = explain(campaign, run, {}, &laboratory);
  ASSERT_TRUE(explanation) << explanation.error().message;
  ASSERT_EQ(explanation->causes.size(), 1U) << to_text(*explanation);
  EXPECT_EQ(explanation->causes.front().text(),
            "qp_count >= 8 (clear at 4) and server_decap_masks >= 12 (clear at 8)");
  EXPECT_TRUE(explanation->complete);
  EXPECT_EQ(strangers, 0U);
  EXPECT_LE(explanation->tests_ordered, 18U) << to_text(*explanation);
}

}  // namespace
}  // namespace greynic::causal
