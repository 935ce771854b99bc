#include <gtest/gtest.h>

#include "greynic/files/campaign_file.h"
#include "greynic/testgen/plan.h"
#include "greynic/twin/twin.h"
#include "symptom.h"

namespace greynic::twin {
namespace {

double count(const Observation& seen, const char* counter) {
  const auto found = seen.counters_after.find(counter);
  return found == seen.counters_after.end() ? 0.0 : found->second;
}

using Requests = std::vector<target::MeasureRequest>;

std::vector<Observation> run(const std::string& name, const Requests& requests) {
  std::vector<Observation> seen(requests.size());
  (void)(*create(name))->measure(requests, [&](std::size_t i, const Observation& one) {
    seen[i] = one;
    return true;
  });
  return seen;
}

std::string symptom_of(const Observation& seen, bool crowd) {
  if (seen.outcome != Outcome::kMeasured) return seen.reason;
  if (*seen.value("rule_delete_us") > 1.5 * *seen.value("rule_insert_us")) return "slow deletion";
  if (count(seen, "driver_timeouts") + count(seen, "device_resets") > 0) {
    return "the driver gave up";
  }
  if (!crowd && *seen.value("pause_share") > 0.001) return "pauses";
  const bool no_receive = crowd && count(seen, "server.out_of_buffer") > 0;
  return *seen.value(measure::kLoss) > 0 && !no_receive ? "loss" : "";
}

// Claim:  a twin without defects has no symptom anywhere: every test is measured, nobody pauses,
//         nothing is lost, and rules are deleted at the usual cost. Where several hosts send to
//         one, pauses are congestion and no symptom (symptom.h), and what finds no receive WQE may
//         be lost; all else holds there too.
// Oracle: Collie's definition of a pause symptom (a share of 0.001 of the time), and the model's
//         own rule_insert_us; the same plan with all defects on must show symptoms.
// Method: configs/campaigns/no_symptom.json: all factors of verbs, switch and host at levels on
//         both sides of every defect's threshold, one sender and four, 3-way covered.
TEST(DefectsOff, ShowNoSymptomInAThreeWayCoverOfAllFactors) {
  const auto campaign =
      files::read_campaign(GREYNIC_SOURCE_DIR "/configs/campaigns/no_symptom.json");
  ASSERT_TRUE(campaign) << campaign.error().message;
  const auto plan = testgen::make_plan(*campaign, {});
  ASSERT_TRUE(plan) << plan.error().message;
  ASSERT_GE(plan->configurations.size(), 50U);
  Requests requests(plan->configurations.size());
  for (std::size_t i = 0; i < requests.size(); ++i) {
    requests[i].configuration = plan->configurations[i];
    requests[i].duration = std::chrono::milliseconds(20);
    requests[i].seed = i + 1;
  }
  const auto count_symptoms = [&](const std::string& name, bool expected) {
    const auto seen = run(name, requests);
    int found = 0;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const Configuration& at = requests[i].configuration;
      const std::string symptom = symptom_of(seen[i], is_crowd(at));
      found += symptom.empty() ? 0 : 1;
      if (!expected) EXPECT_EQ(symptom, "") << at.name();
    }
    return found;
  };
  EXPECT_EQ(count_symptoms("twin:cx6?defects=none", false), 0);
  std::string all = "twin:cx6?defects=";
  for (int i = 1; i <= 8; ++i) all += "S" + std::to_string(i) + ",";
  for (int i = 1; i <= 18; ++i) all += "C" + std::to_string(i) + (i < 18 ? "," : "");
  EXPECT_GT(count_symptoms(all, true), static_cast<int>(requests.size()) / 4);
}

}  // namespace
}  // namespace greynic::twin
