#include <gtest/gtest.h>

#include "common/packet_bytes.h"
#include "ovs/datapath_counts.h"

namespace greynic::flows {
namespace {

using F = MatchField;

// Claim:  the lookup counter is that of packet threads, weighted by their hits.
// Oracle: 100 hits of 4 lookups and 300 hits of 2 make 2.5 on average.
TEST(PmdStats, WeighsThreadsByTheirHits) {
  const auto stats = parse_pmd_stats(
      "pmd thread numa_id 0 core_id 1:\n"
      "  packets received: 150\n  emc hits: 50\n  megaflow hits: 100\n"
      "  avg. subtable lookups per megaflow hit: 4.00\n"
      "  processing cycles: 1000 (99.96%)\n"
      "  avg processing cycles per packet: 800.31 (44027956674/55013408)\n"
      "pmd thread numa_id 0 core_id 2:\n"
      "  packets received: 300\n  megaflow hits: 300\n"
      "  avg. subtable lookups per megaflow hit: 2.00\n"
      "main thread:\n  packets received: 7\n  megaflow hits: 9\n"
      "  avg. subtable lookups per megaflow hit: 9.00\n");
  ASSERT_TRUE(stats.has_value());
  EXPECT_DOUBLE_EQ(stats->packets, 450);
  EXPECT_DOUBLE_EQ(stats->lookups_per_hit, 2.5);
  EXPECT_DOUBLE_EQ(stats->processing_cycles, 1000);
  EXPECT_DOUBLE_EQ(stats->lookups_per_packet(), 1000.0 / 450.0);
}

TEST(PmdStats, RefusesTextWithoutAPacketThread) {
  EXPECT_FALSE(parse_pmd_stats("main thread:\n  packets received: 1\n").has_value());
}

// Claim:  flows that differ in values only count as one mask.
TEST(Megaflows, CountsMasksAndNotValues) {
  const auto count = count_megaflows(
      "flow-dump from pmd on cpu core: 1\n"
      "recirc_id(0),in_port(3),eth_type(0x0800),ipv4(src=10.0.0.1/255.255.255.224,frag=no), "
      "packets:5, bytes:350, used:0.002s, actions:2\n"
      "recirc_id(0),in_port(3),eth_type(0x0800),ipv4(src=10.0.9.9/255.255.255.224,frag=no), "
      "packets:7, bytes:0, used:never, actions:drop\n"
      "recirc_id(0),in_port(3),eth_type(0x0800),ipv4(src=10.0.9.9/255.255.255.0,frag=no), "
      "packets:7, bytes:0, used:never, actions:drop\n"
      "recirc_id(0),in_port(3),eth_type(0x0800),ipv4(src=10.0.9.9,frag=no),udp(dst=80), "
      "packets:7, bytes:0, used:never, actions:drop\n");
  EXPECT_EQ(count.flows, 4u);
  EXPECT_EQ(count.masks, 3u);
}

// Claim:  a frame carries its header values where RFC 791 and RFC 768 put them, checksum included.
// Oracle: bytes written out by hand; an IPv4 header with its checksum sums to 0xffff.
TEST(Frames, PutsHeadersWhereTheStandardsSay) {
  Packet packet;
  packet.set(F::kEthernetDst, 0x020000000001);
  packet.set(F::kEthernetSrc, 0x020000000002);
  packet.set(F::kVlanPresent, 1);
  packet.set(F::kVlanId, 5);
  packet.set(F::kIpv4Src, 0x0a000001);
  packet.set(F::kIpv4Dst, 0x0a000002);
  packet.set(F::kL4SrcPort, 1000);
  packet.set(F::kL4DstPort, 80);
  const auto frame = frame_of(packet, 100);
  ASSERT_TRUE(frame.has_value());
  const Frame& bytes = *frame;
  ASSERT_EQ(bytes.size(), 14u + 4 + 20 + 8 + 100);
  EXPECT_EQ(bytes[5], 1);
  EXPECT_EQ(bytes[11], 2);
  EXPECT_EQ(bytes[12] << 8 | bytes[13], 0x8100);
  EXPECT_EQ(bytes[14] << 8 | bytes[15], 5);
  EXPECT_EQ(bytes[16] << 8 | bytes[17], 0x0800);
  std::uint32_t sum = 0;
  for (std::size_t i = 18; i < 38; i += 2) sum += bytes[i] << 8 | bytes[i + 1];
  EXPECT_EQ((sum & 0xffff) + (sum >> 16), 0xffffu);
  EXPECT_EQ(bytes[18 + 9], 17) << "ports without a protocol mean UDP";
  EXPECT_EQ(bytes[38] << 8 | bytes[39], 1000);
  EXPECT_EQ(bytes[42] << 8 | bytes[43], 108);
}

TEST(Frames, RefusesWhatNoWireCarries) {
  Packet packet;
  packet.set(F::kReg3, 1);
  const auto frame = frame_of(packet, 0);
  ASSERT_FALSE(frame.has_value());
  EXPECT_NE(frame.error().message.find("reg3"), std::string::npos);
}

// Claim:  the revalidators' line is read as ovs-appctl upcall/show of Open vSwitch 3.1 prints it.
TEST(Revalidators, AreReadFromUpcallShow) {
  const auto stats = parse_revalidators(
      "netdev@ovs-netdev:\n  flows         : (current 26) (avg 33) (max 34) (limit 200000)\n"
      "  dump duration : 12ms\n  ufid enabled : true\n\n  17: (keys 26)\n");
  ASSERT_TRUE(stats.has_value());
  EXPECT_EQ(stats->flows, 26);
  EXPECT_EQ(stats->flow_limit, 200000);
  EXPECT_EQ(stats->dump_ms, 12);
  EXPECT_FALSE(parse_revalidators("").has_value());
}

}  // namespace
}  // namespace greynic::flows
