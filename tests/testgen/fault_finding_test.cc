#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "greynic/testgen/plan.h"

namespace greynic::testgen {
namespace {

Factor numeric(const std::string& name, std::vector<double> levels) {
  Factor factor;
  factor.name = name;
  for (const double level : levels) factor.levels.emplace_back(level);
  return factor;
}

Factor categorical(const std::string& name, std::vector<std::string> levels) {
  Factor factor;
  factor.name = name;
  factor.type = FactorType::kCategorical;
  for (std::string& level : levels) factor.levels.emplace_back(std::move(level));
  return factor;
}

/// The twin's factors, with the rules of RDMA between them.
Campaign rnic_campaign() {
  Campaign campaign;
  campaign.name = "faults";
  campaign.factors = {categorical("transport", {"RC", "UC", "UD"}),
                      categorical("operation", {"SEND", "WRITE", "READ"}),
                      numeric("qp_count", {1, 16, 256, 4096}),
                      numeric("message_bytes", {64, 1024, 65536}),
                      numeric("mtu_bytes", {1024, 4096}),
                      numeric("server_decap_masks", {0, 10, 40}),
                      numeric("client_encap_masks", {0, 20}),
                      numeric("mr_count", {1, 1024, 16384}),
                      numeric("post_batch", {1, 16, 64}),
                      numeric("qps_per_cq", {1, 16}),
                      numeric("thread_count", {1, 8})};
  campaign.baseline = {{"transport", std::string("RC")},
                       {"operation", std::string("SEND")},
                       {"qp_count", 16.0},
                       {"message_bytes", 1024.0},
                       {"mtu_bytes", 1024.0},
                       {"server_decap_masks", 0.0},
                       {"client_encap_masks", 0.0},
                       {"mr_count", 1.0},
                       {"post_batch", 1.0},
                       {"qps_per_cq", 1.0},
                       {"thread_count", 1.0}};
  return campaign;
}

std::vector<Configuration> planned(Design design, std::uint64_t seed) {
  Campaign campaign = rnic_campaign();
  campaign.design = std::move(design);
  PlanOptions options;
  options.seed = seed;
  const auto plan = make_plan(campaign, options);
  EXPECT_TRUE(plan) << plan.error().message;
  return plan->configurations;
}

using Defect = std::vector<std::pair<std::string, FactorValue>>;

bool triggers(const Configuration& configuration, const Defect& defect) {
  return std::all_of(defect.begin(), defect.end(), [&](const auto& term) {
    const FactorValue* value = configuration.find(term.first);
    return value != nullptr && *value == term.second;
  });
}

// Claim:  every defect that needs at most three settings to meet is triggered by the 3-way plan, in
// at
//         most a third of the tests that random configurations need.
// Oracle: defects are planted as conjunctions of the levels of random valid configurations, so each
//         can be triggered; triggering is plain comparison.
// Method: 50 seeds, each with 120 defects of orders 1 to 3; random plans of valid configurations.
TEST(FaultFinding, ThreeWayPlansTriggerAllDefectsOfOrderThreeEarly) {
  Design three;
  three.strength = 3;
  const std::vector<Configuration> plan = planned(three, 1);
  std::vector<double> ratios;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Design random;
    random.kind = DesignKind::kRandom;
    random.count = 3000;
    const std::vector<Configuration> tests = planned(random, seed + 100);
    random.count = 120;
    std::mt19937_64 dice(seed);
    std::size_t worst = 0;
    for (const Configuration& culprit : planned(random, seed + 9000)) {
      Defect defect = culprit.levels();
      std::shuffle(defect.begin(), defect.end(), dice);
      defect.resize(1 + dice() % 3);
      EXPECT_TRUE(std::any_of(plan.begin(), plan.end(), [&](const Configuration& configuration) {
        return triggers(configuration, defect);
      })) << Configuration{defect[0], defect.back()}.name();
      std::size_t first = 0;
      while (first < tests.size() && !triggers(tests[first], defect)) ++first;
      worst = std::max(worst, first + 1);
    }
    ratios.push_back(static_cast<double>(worst) / static_cast<double>(plan.size()));
  }
  std::nth_element(ratios.begin(), ratios.begin() + 25, ratios.end());
  RecordProperty("plan", std::to_string(plan.size()));
  RecordProperty("median_ratio", fmt::format("{:.2f}", ratios[25]));
  EXPECT_GE(ratios[25], 3.0) << "plan " << plan.size();
}

}  // namespace
}  // namespace greynic::testgen
