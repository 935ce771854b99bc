/// Packets that come through tunnels: their bytes, how a real switch sees them, and what is told
/// beforehand.

#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "common/measured_traffic.h"
#include "greynic/flows/kinds.h"
#include "ovs/ovs_driver.h"
#include "private_ovs.h"

namespace greynic::flows {
namespace {

using F = MatchField;

Packet tunnelled(std::uint32_t vni, std::uint32_t source, std::uint32_t end, std::uint32_t port) {
  Packet packet;
  packet.set(F::kVxlanVni, vni);
  if (source != 0) packet.set(F::kTunnelIpv4Src, source);
  if (end != 0) packet.set(F::kTunnelIpv4Dst, end);
  packet.set(F::kEtherType, 0x0800);
  packet.set(F::kIpProtocol, 17);
  packet.set(F::kIpv4Dst, 0x0a010203);
  packet.set(F::kL4DstPort, port);
  return packet;
}

std::uint64_t number(const Frame& frame, std::size_t at, std::size_t bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) value = value << 8 | frame[at + i];
  return value;
}

// Claim:  a packet of a tunnel travels in VXLAN as RFC 7348 draws it, unchanged inside.
// Oracle: offsets of the RFC's figure; the frame of the same packet without its tunnel.
TEST(TunnelFrames, AreAsTheRfcDrawsThem) {
  const TunnelEnd end{0x02aabbccddee, 0xc0000201};
  const Packet packet = tunnelled(0xabcdef, 0x01020304, 0, 99);
  Packet inner = tunnelled(0, 0, 0, 99);
  const auto frame = frame_of(packet, 30, &end);
  const auto plain = frame_of(inner, 30, &end);
  ASSERT_TRUE(frame.has_value() && plain.has_value());
  ASSERT_EQ(frame->size(), plain->size() + 50);
  EXPECT_EQ(number(*frame, 0, 6), end.ethernet);
  EXPECT_EQ(number(*frame, 12, 2), 0x0800U);
  EXPECT_EQ(number(*frame, 14 + 2, 2), plain->size() + 36) << "total length";
  EXPECT_EQ(number(*frame, 14 + 9, 1), 17U);
  EXPECT_EQ(number(*frame, 14 + 12, 4), 0x01020304U);
  EXPECT_EQ(number(*frame, 14 + 16, 4), end.ipv4);
  EXPECT_EQ(number(*frame, 34 + 2, 2), 4789U);
  EXPECT_EQ(number(*frame, 34 + 4, 2), plain->size() + 16) << "UDP length";
  EXPECT_EQ(number(*frame, 42, 4), 0x08000000U);
  EXPECT_EQ(number(*frame, 46, 4), 0xabcdef00U);
  EXPECT_EQ(Frame(frame->begin() + 50, frame->end()), *plain);
  Packet named = packet;
  named.set(F::kTunnelIpv4Dst, 0x05060708);
  EXPECT_EQ(number(*frame_of(named, 30, &end), 14 + 16, 4), 0x05060708U);
  EXPECT_FALSE(frame_of(packet, 30).has_value()) << "without an end there is no tunnel";
}

FlowRule rule_of(RulePriority priority, std::vector<std::pair<MatchField, std::uint64_t>> fields) {
  FlowRule rule;
  rule.priority = priority;
  for (const auto& [field, value] : fields) rule.match.set(field, value);
  rule.actions = {Action::drop()};
  return rule;
}

// Claim:  wrapped packets reach the rules with their tunnel's number and addresses, and plain ones
//         beside them as if there were no tunnels, from the port that they always come from.
// Oracle: the switch's own counts by rule; of the replayed packets each rule must have its share,
//         and one on a number that no packet has must have none.
TEST(Tunnels, EndInTheSwitchWithTheirFields) {
  GREYNIC_NEEDS_OVS();
  auto ovs = PrivateSwitch::start({});
  ASSERT_TRUE(ovs.has_value()) << ovs.error().message;
  OvsDriver driver((*ovs)->folder() + "/br0.mgmt", [&] { return (*ovs)->ports(); },
                   Journal::in_memory());
  constexpr std::uint32_t kFarEnd = 0xcb007105;  // 203.0.113.5
  RuleSet rules;
  rules.rules = {
      rule_of(1, {{F::kVxlanVni, 100},
                  {F::kEtherType, 0x0800},
                  {F::kIpProtocol, 17},
                  {F::kL4DstPort, 80}}),
      rule_of(2, {{F::kVxlanVni, 100}, {F::kTunnelIpv4Src, 0x0a090807}}),
      rule_of(3, {{F::kTunnelIpv4Dst, kFarEnd}}),
      rule_of(4, {{F::kVxlanVni, 300}}),
      rule_of(5, {{F::kInPort, PrivateSwitch::kSourceNumber}, {F::kEtherType, 0x0800}}),
      rule_of(6, {}),
  };
  Traffic traffic;
  traffic.flows = {{tunnelled(100, 0, 0, 80), 1.0},
                   {tunnelled(100, 0x0a090807, 0, 81), 1.0},
                   {tunnelled(0xffffff, 0, kFarEnd, 82), 1.0},
                   {tunnelled(0, 0, 0, 83), 1.0}};
  ASSERT_TRUE(driver.apply(rules).has_value());
  ASSERT_TRUE((*ovs)->end_tunnels({PrivateSwitch::kTunnelEnd.ipv4, kFarEnd}).has_value());
  const std::string path = (*ovs)->folder() + "/t.pcap";
  // Twice: what is joined for the traffic is taken apart behind it. Short packets, and the longest.
  for (int round = 0; round < 2; ++round) {
    const std::size_t payload = round == 0 ? 22 : static_cast<std::size_t>(kMostPayloadBytes);
    const auto frames = frames_of(traffic, 4096, payload, 1, &PrivateSwitch::kTunnelEnd);
    ASSERT_TRUE(frames.has_value());
    std::ofstream(path, std::ios::binary) << pcap_of(*frames);
    const auto started = (*ovs)->start_traffic(path, true);
    ASSERT_TRUE(started.has_value()) << started.error().message;
    std::vector<double> counts;
    double all = 0;
    while (all < 100'000.0 * (round + 1)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      const auto rows = driver.counters();
      ASSERT_TRUE(rows.has_value()) << rows.error().message;
      counts.assign(7, 0);
      all = 0;
      for (const RuleCount& row : *rows) {
        counts[row.rule.priority] += static_cast<double>(row.packets);
        all += static_cast<double>(row.packets);
      }
    }
    for (const int rule : {1, 2, 3, 5}) EXPECT_NEAR(counts[rule] / all, 0.25, 0.05) << rule;
    EXPECT_EQ(counts[4] + counts[6], 0);
    ASSERT_TRUE((*ovs)->stop_traffic().has_value());
  }
}

// Claim:  what cannot be sent is told before anything is done, with every field or number that
//         stands against it; what a device cannot send another may.
TEST(Tunnels, TellBeforehandWhatCannotBeSent) {
  Traffic odd = {.flows = {{tunnelled(5, 0, 0, 1), 1.0}}};
  odd.flows.front().packet.set(F::kReg3, 1);
  const auto on_tc = check_sendable(odd);
  ASSERT_FALSE(on_tc.has_value());
  for (const char* field : {"vxlan_vni", "reg3"}) {
    EXPECT_NE(on_tc.error().message.find(field), std::string::npos) << on_tc.error().message;
  }
  EXPECT_EQ(on_tc.error().message.find("l4_dst"), std::string::npos) << on_tc.error().message;
  const auto on_ovs = check_sendable(odd, &PrivateSwitch::kTunnelEnd);
  ASSERT_FALSE(on_ovs.has_value());
  EXPECT_EQ(on_ovs.error().message.find("vxlan_vni"), std::string::npos);
  Traffic many;
  many.flows.assign(static_cast<std::size_t>(kMostFlows) + 1, {tunnelled(5, 0, 0, 1), 1.0});
  ASSERT_FALSE(check_sendable(many).has_value());
  EXPECT_NE(check_sendable(many).error().message.find("16385 flows"), std::string::npos);
  GREYNIC_NEEDS_OVS();
  auto opened = ovs_kind().open({.text = "ovs:br0", .kind = "ovs", .place = "br0", .options = {}});
  ASSERT_TRUE(opened.has_value()) << opened.error().message;
  Traffic ends;
  for (std::uint32_t i = 1; i <= 64; ++i) ends.flows.push_back({tunnelled(5, 0, i << 8, 1), 1.0});
  EXPECT_TRUE((*opened)->rules().check_traffic(ends).has_value());
  ends.flows.push_back({tunnelled(5, 0, 99, 1), 1.0});
  ASSERT_FALSE((*opened)->rules().check_traffic(ends).has_value());
  EXPECT_NE((*opened)->rules().check_traffic(ends).error().message.find("65 addresses"),
            std::string::npos);
}

}  // namespace
}  // namespace greynic::flows
