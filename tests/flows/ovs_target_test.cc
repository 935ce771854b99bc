#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <map>
#include <set>
#include <thread>

#include "greynic/flows/kinds.h"
#include "private_ovs.h"

namespace greynic::flows {
namespace {

// Claim:  on a real Open vSwitch the switch has as many masks as were asked for, a packet searches
//         half of them, and is charged for it.
// Oracle: the switch's own megaflow dump and lookup counter: even traffic searches (masks + 1) / 2.
// Method: five mask counts, caches off. Eighty masks cost some ten times of one; a third of that
//         is asked for, because what a packet costs depends on what else runs here.
TEST(PrivateOvs, ChargesForEachMask) {
  GREYNIC_NEEDS_OVS();
  auto opened = ovs_kind().open({.text = "ovs:br0", .kind = "ovs", .place = "br0", .options = {}});
  ASSERT_TRUE(opened.has_value()) << opened.error().message;
  std::map<double, double> costs;
  for (const double masks : {1.0, 10.0, 20.0, 40.0, 80.0}) {
    const auto one = target::measure_one(**opened, {.configuration = {{"server_decap_masks", masks},
                                                                      {"flow_count", 800.0},
                                                                      {"message_bytes", 22.0},
                                                                      {"exact_match_cache", false},
                                                                      {"signature_match_cache", false}},
                                                    .duration = std::chrono::milliseconds(400),
                                                    .seed = 3});
    ASSERT_TRUE(one.has_value()) << one.error().message;
    ASSERT_EQ(one->outcome, Outcome::kMeasured) << one->reason;
    EXPECT_EQ(one->value("megaflow_masks"), masks);
    EXPECT_NEAR(one->value("subtable_lookups_per_packet").value_or(0), (masks + 1) / 2,
                0.03 * masks);
    costs[masks] = one->value("packet_cost_ns").value_or(0);
  }
  EXPECT_GT(costs[80], 3 * costs[1]);
}

// Claim:  cycles a packet are those of the packet thread, whoever else wants its CPU.
// Oracle: the time stamp counter has one rate, so cycles by CPU time are the same alone and in a
//         crowd; without a correction two others on its CPU make three times of it.
TEST(PrivateOvs, CountsNoCyclesThatItWaitedFor) {
  GREYNIC_NEEDS_OVS();
  auto opened = ovs_kind().open({.text = "ovs:br0", .kind = "ovs", .place = "br0", .options = {}});
  ASSERT_TRUE(opened.has_value()) << opened.error().message;
  const auto cycles_by_ns = [&] {
    const auto got = target::measure_one(
        **opened, {.configuration = {{"server_decap_masks", 20.0}, {"flow_count", 800.0}},
                   .duration = std::chrono::milliseconds(500)});
    EXPECT_TRUE(got.has_value() && got->outcome == Outcome::kMeasured);
    return got->value("packet_cost_cycles").value_or(0) / got->value("packet_cost_ns").value_or(1);
  };
  const double alone = cycles_by_ns();
  cpu_set_t all;
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  cpu_set_t last;
  CPU_ZERO(&last);
  for (int cpu = CPU_SETSIZE - 1; cpu >= 0 && CPU_COUNT(&last) == 0; --cpu) {
    if (CPU_ISSET(cpu, &all)) CPU_SET(cpu, &last);
  }
  std::atomic<bool> enough = false;
  std::vector<std::thread> others;
  for (int i = 0; i < 2; ++i) {
    others.emplace_back([&] {
      sched_setaffinity(0, sizeof last, &last);
      while (!enough) continue;
    });
  }
  const double crowded = cycles_by_ns();
  enough = true;
  for (std::thread& other : others) other.join();
  EXPECT_NEAR(crowded / alone, 1.0, 0.5);
}

// Claim:  the exact-match cache hides the masks from traffic of few flows.
// Oracle: the switch's own hit counters.
TEST(PrivateOvs, FindsFewFlowsInItsExactMatchCache) {
  GREYNIC_NEEDS_OVS();
  auto opened = ovs_kind().open({.text = "ovs:br0", .kind = "ovs", .place = "br0", .options = {}});
  ASSERT_TRUE(opened.has_value()) << opened.error().message;
  const auto cached = target::measure_one(**opened, {.configuration = {{"server_decap_masks", 40.0},
                                                                       {"flow_count", 80.0},
                                                                       {"message_bytes", 22.0},
                                                                       {"exact_match_cache", true}},
                                                     .duration = std::chrono::milliseconds(200),
                                                     .seed = 3});
  ASSERT_TRUE(cached.has_value()) << cached.error().message;
  EXPECT_GT(cached->value("exact_match_hit_share").value_or(0), 0.95);
  EXPECT_LT(cached->value("subtable_lookups_per_packet").value_or(99), 2.0);
}

// Claim:  rules may forward to more ports than the private switch has sinks.
// Oracle: the switch's own count of megaflows, one for each port's rule.
TEST(PrivateOvs, ForwardsToManyPorts) {
  GREYNIC_NEEDS_OVS();
  auto opened = ovs_kind().open({.text = "ovs:br0", .kind = "ovs", .place = "br0", .options = {}});
  ASSERT_TRUE(opened.has_value());
  constexpr std::uint32_t kPorts = 70;
  Matcher matcher;
  matcher.mask.add(MatchField::kEtherType, 0xffff);
  matcher.mask.add(MatchField::kIpv4Dst, 0xffffffff);
  Traffic traffic;
  for (std::uint32_t i = 0; i < kPorts; ++i) {
    FlowRule rule;
    rule.match.set(MatchField::kEtherType, 0x0800);
    rule.match.set(MatchField::kIpv4Dst, 0x0a000001 + i);
    rule.actions = {Action::forward(std::to_string(i))};
    matcher.rules.push_back(rule);
    Packet packet;
    packet.set(MatchField::kEtherType, 0x0800);
    packet.set(MatchField::kIpv4Dst, 0x0a000001 + i);
    traffic.flows.push_back({packet, 1.0});
  }
  Layout layout;
  layout.tables.push_back({0, {matcher}});
  target::RuleHolder& holder = (*opened)->rules();
  const auto applied =
      holder.install(holder.fit(layout, target::LayoutForm::kAsWritten), &traffic, {});
  ASSERT_TRUE(applied.has_value()) << applied.error().message;
  const auto seen = target::measure_one(
      **opened, {.configuration = {}, .duration = std::chrono::milliseconds(200)});
  ASSERT_TRUE(seen.has_value()) << seen.error().message;
  EXPECT_EQ(seen->outcome, Outcome::kMeasured) << seen->reason;
  EXPECT_EQ(seen->value("megaflows"), kPorts);
}

// Claim:  what the switch's rules can match and do is told with its limits.
TEST(PrivateOvs, TellsWhatItOffers) {
  GREYNIC_NEEDS_OVS();
  auto opened = ovs_kind().open({.text = "ovs:br0", .kind = "ovs", .place = "br0", .options = {}});
  ASSERT_TRUE(opened.has_value());
  std::set<std::string> facts;
  for (const auto& row : (*opened)->info().facts) facts.insert(row.front());
  for (const char* there : {"match ipv4_src", "match ct_state", "action meter", "last table"}) {
    EXPECT_TRUE(facts.contains(there)) << there;
  }
  EXPECT_FALSE(facts.contains("match bth_opcode"));
}

// Claim:  what a switch cannot be set to is an outcome with the factor's name, not an error.
TEST(PrivateOvs, RefusesFactorsOfOtherDevices) {
  GREYNIC_NEEDS_OVS();
  auto opened = ovs_kind().open({.text = "ovs:br0", .kind = "ovs", .place = "br0", .options = {}});
  ASSERT_TRUE(opened.has_value());
  const auto refused =
      target::measure_one(**opened, {.configuration = {{"qp_count", 64.0}}, .repeat = 0});
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->outcome, Outcome::kRefused);
  EXPECT_NE(refused->reason.find("qp_count"), std::string::npos) << refused->reason;
}

}  // namespace
}  // namespace greynic::flows
