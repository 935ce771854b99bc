#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

#include "greynic/testgen/plan.h"
#include "sized.h"

namespace greynic::testgen {
namespace {

Factor numeric(const std::string& name, const std::vector<double>& levels) {
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

std::vector<Configuration> plan_of_rnic(Design design, std::uint64_t seed) {
  Campaign campaign = rnic_campaign();
  campaign.design = std::move(design);
  PlanOptions options;
  options.seed = seed;
  const auto plan = make_plan(campaign, options);
  EXPECT_TRUE(plan) << plan.error().message;
  return plan->configurations;
}

using Defect = std::vector<std::pair<std::string, FactorValue>>;

bool is_triggered_by(const Configuration& configuration, const Defect& defect) {
  return std::all_of(defect.begin(), defect.end(), [&](const auto& term) {
    const FactorValue* value = configuration.find(term.first);
    return value != nullptr && *value == term.second;
  });
}

/// One to three factors with levels, all equally likely, as long as some valid configuration has
/// them.
Defect plant(const std::vector<Configuration>& all, std::mt19937_64& dice) {
  std::vector<Factor> factors = rnic_campaign().factors;
  while (true) {
    std::shuffle(factors.begin(), factors.end(), dice);
    Defect defect;
    for (std::uint64_t order = 1 + dice() % 3; order > 0; --order) {
      const Factor& factor = factors[order];
      defect.emplace_back(factor.name, factor.levels[dice() % factor.levels.size()]);
    }
    if (std::any_of(all.begin(), all.end(),
                    [&](const Configuration& c) { return is_triggered_by(c, defect); })) {
      return defect;
    }
  }
}

// Claim:  every defect that needs at most three settings to meet is triggered by the 3-way plan, in
//         at most a third of the tests that random valid configurations need.
// Oracle: all valid configurations listed; triggering is plain comparison.
// Method: 50 seeds; for each, 200 defects and the valid configurations in random order.
TEST(FaultFinding, ThreeWayPlansTriggerAllDefectsOfOrderThreeEarly) {
  Design three;
  three.strength = 3;
  const std::vector<Configuration> plan = plan_of_rnic(three, 1);
  Design full;
  full.kind = DesignKind::kFull;
  const std::vector<Configuration> all = plan_of_rnic(full, 1);
  std::vector<double> ratios;
  constexpr std::size_t kOrders = sized<std::size_t>(50, 9);
  for (std::uint64_t seed = 1; seed <= kOrders; ++seed) {
    std::mt19937_64 dice(seed);
    std::vector<std::uint32_t> order(all.size());
    std::iota(order.begin(), order.end(), 0U);
    std::shuffle(order.begin(), order.end(), dice);
    std::size_t needed = 0;
    for (int d = 0; d < 200; ++d) {
      const Defect defect = plant(all, dice);
      EXPECT_TRUE(std::any_of(plan.begin(), plan.end(), [&](const Configuration& configuration) {
        return is_triggered_by(configuration, defect);
      })) << Configuration{defect.front(), defect.back()}.name();
      std::size_t first = 0;
      while (!is_triggered_by(all[order[first]], defect)) ++first;
      needed = std::max(needed, first + 1);
    }
    ratios.push_back(static_cast<double>(needed) / static_cast<double>(plan.size()));
  }
  std::sort(ratios.begin(), ratios.end());
  RecordProperty("plan", std::to_string(plan.size()));
  RecordProperty("median_ratio", fmt::format("{:.2f}", ratios[kOrders / 2]));
  EXPECT_GE(ratios[kOrders / 2], 3.0) << "plan " << plan.size();
}

}  // namespace
}  // namespace greynic::testgen
