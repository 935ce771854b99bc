#include "greynic/model/comparison.h"

#include <gtest/gtest.h>

#include <random>

#include "../plain_law.h"
#include "greynic/model/design.h"

namespace greynic::model {
namespace {

// Claim:  a model differs in nothing from itself, and a device with a slower line differs in its
//         line.
TEST(ModelComparison, TellsWhatChanged) {
  const FitOptions options = quick();
  PlainLaw law;
  std::mt19937_64 random(3);
  const auto before = fit(plant(law, 150, 0.01, random), options);
  law.post *= 1.4;
  const auto observations = plant(law, 150, 0.01, random);
  const auto after = fit(observations, options);
  ASSERT_TRUE(before && after);
  const auto same = compare_models(*before->model, *before->model, {});
  ASSERT_TRUE(same) << same.error().message;
  EXPECT_GT(same->settings, 200U);
  for (const auto& [name, d] : same->measures) EXPECT_DOUBLE_EQ(d.worst_ratio, 1.0) << name;
  const auto changed = compare_models(*before->model, *after->model, observations);
  ASSERT_TRUE(changed);
  bool post_apart = false;
  for (const auto& p : changed->parameters) {
    EXPECT_TRUE(p.name != "base_send_us" || !p.apart);
    if (p.name != "post_ns") continue;
    post_apart = p.apart;
    EXPECT_NEAR(p.b / p.a, 1.4, 0.05);
  }
  EXPECT_TRUE(post_apart);
  const auto& on_run = changed->measures.at("bandwidth_gbps").on_run;
  ASSERT_TRUE(on_run);
  EXPECT_GT(on_run->error_a, 1.5 * on_run->error_b);
}

// Claim:  what a model was fitted on is asked for in factors that a target knows, by the comparison
//         and by the campaign that measures more.
TEST(ModelComparison, AndDesignNameKnownFactorsOnly) {
  const FitOptions options = quick();
  std::mt19937_64 random(4);
  const auto known = fit(plant(PlainLaw(), 60, 0.01, random), options);
  const auto other = fit(plant(PlainLaw(), 60, 0.01, random), options);
  ASSERT_TRUE(known && other);
  const auto campaign = campaign_for(*known->model, 20);
  ASSERT_TRUE(campaign) << campaign.error().message;
  EXPECT_FALSE(campaign->factors.empty());
  for (const auto& [name, value] : campaign->baseline.levels())
    EXPECT_NE(find_factor(name), nullptr) << name;
  const auto compared = compare_models(*known->model, *other->model, {});
  ASSERT_TRUE(compared);
  for (const auto& [measure, d] : compared->measures) {
    EXPECT_EQ(d.worst_at.find("requests_in_flight"), std::string::npos) << d.worst_at;
  }
}

}  // namespace
}  // namespace greynic::model
