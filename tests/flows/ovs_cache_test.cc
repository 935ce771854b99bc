/// The exact-match cache of a real Open vSwitch, together with masks.

#include <gtest/gtest.h>

#include <map>

#include "greynic/flows/kinds.h"
#include "private_ovs.h"

namespace greynic::flows {
namespace {

// Claim:  what the exact-match cache has is what the traffic asks of it, and not how far it has
//         got: its hits depend on the number of flows and not on how dear a packet is.
// Oracle: the switch's own hit counters.
// Method: 1 to 160 masks, few and many flows, cache on and off.
TEST(PrivateOvs, FillsItsCacheBeforeItIsTimed) {
  GREYNIC_NEEDS_OVS();
  auto opened = ovs_kind().open({.text = "ovs:br0", .kind = "ovs", .place = "br0", .options = {}});
  ASSERT_TRUE(opened.has_value()) << opened.error().message;
  std::map<double, std::pair<double, double>> hits;  // smallest and largest share, by flows
  for (const bool cached : {false, true}) {
    for (const double flows : {1280.0, 8192.0}) {
      for (const double masks : {1.0, 40.0, 160.0}) {
        const auto one = target::measure_one(
            **opened, {.configuration = {{"server_decap_masks", masks},
                                         {"flow_count", flows},
                                         {"message_bytes", 22.0},
                                         {"exact_match_cache", cached},
                                         {"signature_match_cache", false}},
                       .duration = std::chrono::milliseconds(200),
                       .seed = 5});
        ASSERT_TRUE(one.has_value()) << one.error().message;
        ASSERT_EQ(one->outcome, Outcome::kMeasured) << one->reason;
        const double share = one->value("exact_match_hit_share").value_or(-1);
        if (!cached) {
          EXPECT_EQ(share, 0);
          continue;
        }
        auto [range, first] = hits.try_emplace(flows, share, share);
        range->second.first = std::min(range->second.first, share);
        range->second.second = std::max(range->second.second, share);
      }
    }
  }
  for (const auto& [flows, range] : hits) {
    EXPECT_LT(range.second - range.first, 0.1) << flows << " flows";
    EXPECT_GT(range.first, 0.3) << flows << " flows";
  }
  EXPECT_GT(hits[1280].first, 0.9);
}

}  // namespace
}  // namespace greynic::flows
