/// The exact-match cache of a real Open vSwitch, together with masks.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <map>

#include "greynic/flows/kinds.h"
#include "greynic/model/model.h"
#include "private_ovs.h"

namespace greynic::flows {
namespace {

// Claim:  what the exact-match cache has is what the traffic asks of it, and not how far it has
//         got: its hits depend on the number of flows and not on how dear a packet is. So one law
//         explains a campaign that has it on and off.
// Oracle: the switch's own hit counters; R^2 of the cost law over all configurations.
// Method: 1 to 160 masks, few and many flows, cache on and off; the cheapest of a few rounds.
TEST(PrivateOvs, FillsItsCacheBeforeItIsTimed) {
  GREYNIC_NEEDS_OVS();
  auto opened = ovs_kind().open({.text = "ovs:br0", .kind = "ovs", .place = "br0", .options = {}});
  ASSERT_TRUE(opened.has_value()) << opened.error().message;
  std::vector<target::MeasureRequest> requests;
  for (const bool cached : {false, true}) {
    for (const double flows : {1280.0, 8192.0}) {
      for (const double masks : {1.0, 20.0, 80.0, 160.0}) {
        requests.push_back({.configuration = {{"server_decap_masks", masks},
                                              {"flow_count", flows},
                                              {"message_bytes", 22.0},
                                              {"exact_match_cache", cached},
                                              {"signature_match_cache", false}},
                            .duration = std::chrono::milliseconds(300),
                            .seed = 5});
      }
    }
  }
  const auto fitted = [](const std::vector<Observation>& observations) {
    model::FitOptions options;
    options.form = model::Form::kCost;
    return model::fit(observations, options);
  };
  const auto seen = cheapest_of_rounds(**opened, requests, [&](const auto& so_far) {
    const auto fit = fitted(so_far);
    return fit.has_value() && fit->r2.at("packet_cost_ns") >= 0.98;
  });
  std::map<double, std::pair<double, double>> hits;  // smallest and largest share, by flows
  for (const Observation& one : seen) {
    const double share = one.value("exact_match_hit_share").value_or(-1);
    if (!one.asked.flag("exact_match_cache")) {
      EXPECT_EQ(share, 0);
      continue;
    }
    auto [range, first] = hits.try_emplace(one.asked.number("flow_count"), share, share);
    range->second.first = std::min(range->second.first, share);
    range->second.second = std::max(range->second.second, share);
  }
  for (const auto& [flows, range] : hits) {
    EXPECT_LT(range.second - range.first, 0.1) << flows << " flows";
    EXPECT_GT(range.first, 0.3) << flows << " flows";
  }
  EXPECT_GT(hits[1280].first, 0.9);
  const auto fit = fitted(seen);
  ASSERT_TRUE(fit.has_value()) << fit.error().message;
  EXPECT_GE(fit->r2.at("packet_cost_ns"), 0.98);
}

}  // namespace
}  // namespace greynic::flows
