#include <gtest/gtest.h>

#include "greynic/files/campaign_file.h"
#include "greynic/testgen/plan.h"
#include "greynic/twin/twin.h"

namespace greynic::twin {
namespace {

double count(const Observation& seen, const char* counter) {
  const auto found = seen.counters_after.find(counter);
  return found == seen.counters_after.end() ? 0.0 : found->second;
}

// Claim:  a twin without defects has no symptom anywhere: every test is measured, nobody pauses,
//         nothing is lost, and rules are deleted at the usual cost.
// Oracle: Collie's definition of a pause symptom (a share of 0.001 of the time), and the model's
//         own rule_delete_us; the same plan with all defects on must show symptoms.
// Method: configs/campaigns/no_symptom.json: all factors of verbs, switch and host at levels on
//         both sides of every defect's threshold, 3-way covered; one sender, as several that meet
//         at a receiver pause by nature.
TEST(DefectsOff, ShowNoSymptomInAThreeWayCoverOfAllFactors) {
  const auto campaign =
      files::read_campaign(GREYNIC_SOURCE_DIR "/configs/campaigns/no_symptom.json");
  ASSERT_TRUE(campaign) << campaign.error().message;
  const auto plan = testgen::make_plan(*campaign, {});
  ASSERT_TRUE(plan) << plan.error().message;
  ASSERT_GE(plan->configurations.size(), 50U);
  std::vector<target::MeasureRequest> requests(plan->configurations.size());
  for (std::size_t i = 0; i < requests.size(); ++i) {
    requests[i].configuration = plan->configurations[i];
    requests[i].duration = std::chrono::milliseconds(20);
    requests[i].seed = i + 1;
  }
  const auto symptoms = [&](const std::string& name, bool expected) {
    auto twin = create(name);
    EXPECT_TRUE(twin) << twin.error().message;
    int found = 0;
    (void)(*twin)->measure(requests, [&](std::size_t i, const Observation& seen) {
      std::string symptom;
      if (seen.outcome != Outcome::kMeasured) {
        symptom = seen.reason;
      } else if (*seen.value("pause_share") > 0.001) {
        symptom = "pauses";
      } else if (*seen.value(measure::kLoss) > 0) {
        symptom = "loss";
      } else if (*seen.value("rule_delete_us") > 1.5 * *seen.value("rule_insert_us")) {
        symptom = "slow deletion";
      } else if (count(seen, "driver_timeouts") + count(seen, "device_resets") > 0) {
        symptom = "the driver gave up";
      }
      found += symptom.empty() ? 0 : 1;
      if (!expected) EXPECT_EQ(symptom, "") << requests[i].configuration.name();
      return true;
    });
    return found;
  };
  EXPECT_EQ(symptoms("twin:cx6?defects=none", false), 0);
  std::string all = "twin:cx6?defects=";
  for (int i = 1; i <= 8; ++i) all += "S" + std::to_string(i) + ",";
  for (int i = 1; i <= 18; ++i) all += "C" + std::to_string(i) + (i < 18 ? "," : "");
  EXPECT_GT(symptoms(all, true), static_cast<int>(requests.size()) / 4);
}

}  // namespace
}  // namespace greynic::twin
