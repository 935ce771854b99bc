#include "fleet/fleet.h"

#include <gtest/gtest.h>

#include "greynic/twin/twin.h"
#include "packet_fleet.h"

namespace greynic::twin {
namespace {

std::vector<Observation> measured(const std::string& target,
                                  const std::vector<std::string>& settings) {
  auto twin = create(target);
  EXPECT_TRUE(twin) << twin.error().message;
  std::vector<target::MeasureRequest> requests(settings.size());
  for (std::size_t i = 0; i < settings.size(); ++i) {
    requests[i].configuration = parse_configuration(settings[i]).value();
    requests[i].seed = 11 + i;
  }
  std::vector<Observation> got;
  EXPECT_TRUE((*twin)->measure(requests, [&](std::size_t, Observation o) {
    got.push_back(std::move(o));
    return true;
  }));
  return got;
}

// Claim:  twice the containers on 40,000 RNICs take 87 % of the bandwidth and bring 34 times the
//         latency, without a curve for it anywhere.
// Oracle: the production wall as quoted: 0.4 to 0.8 million containers; +-5 points, +-20 %.
TEST(Fleet, HitsTheProductionWall) {
  const auto seen = measured("twin:cx6?hosts=8000&rnics=40000&threads=1",
                             {"container_count=400000", "container_count=800000"});
  ASSERT_EQ(seen[1].outcome, Outcome::kMeasured) << seen[1].reason;
  const auto ratio = [&](std::string_view name) {
    return *seen[1].value(name) / *seen[0].value(name);
  };
  EXPECT_NEAR(1 - ratio(measure::kBandwidth), 0.87, 0.05);
  EXPECT_NEAR(ratio(measure::kLatencyMean), 34, 0.2 * 34);
  EXPECT_TRUE(seen[0].steady->settled && seen[1].steady->settled);
}

struct SmallFleet {
  const char* name;
  std::uint32_t hosts, rnics, containers;
  double software_share;
  double receive_over_send;  ///< time that a message takes at the receiver, over the sender's
};

void PrintTo(const SmallFleet& fleet, std::ostream* out) { *out << fleet.name; }

class SmallFleets : public testing::TestWithParam<SmallFleet> {};

// Claim:  the aggregated fleet carries what a packet-by-packet fleet carries, within 8 % in
//         throughput and 10 % in mean latency.
// Oracle: PacketFleet, an event for every packet at every queue (packet_fleet.h).
// Method: 4 to 16 RNICs, messages of four packets, with and without a software path, with the
//         bottleneck at senders, receivers or cores.
TEST_P(SmallFleets, CarryWhatPacketsSay) {
  const SmallFleet& fleet = GetParam();
  constexpr int kPackets = 4;
  constexpr double kCoreNs = 833;  // 1.2 million packets a second
  const FleetPlacement placement = place_fleet({.host_count = fleet.hosts,
                                                .rnic_count = fleet.rnics,
                                                .container_count = fleet.containers,
                                                .hosts_per_leaf = 64,
                                                .service_span_hosts = 64},
                                               5);
  MessageCost cost;
  cost.send_ns = 46.0 * kPackets;
  cost.receive_ns = cost.send_ns * fleet.receive_over_send;
  cost.send_delay_ns = 2700;
  cost.software_share = fleet.software_share;
  cost.software_ns = fleet.software_share * kPackets * kCoreNs;
  cost.software_delay_ns = 80000 + kPackets * (kCoreNs - 46);
  const std::vector<MessageCost> costs(placement.rnic_count(), cost);
  const FleetTraffic traffic = {.active_peer_share = 0.05, .return_ns = 700};

  const FleetFlow flow = solve_fleet(placement, costs, traffic);
  double rate = 0;
  double latency = 0;
  for (const FleetFlow::Class& c : flow.classes) {
    rate += c.per_second;
    latency += c.per_second * c.latency_ns;
  }
  PacketFleet packets(placement, costs, traffic, kPackets, 17);
  packets.upcall_ns = 80000;
  const PacketFleetResult oracle = packets.run(10e6, 20e6);
  EXPECT_TRUE(flow.converged);
  EXPECT_NEAR(rate / oracle.messages_per_second, 1, 0.08);
  EXPECT_NEAR(latency / rate / oracle.latency_ns, 1, 0.10);
}

INSTANTIATE_TEST_SUITE_P(All, SmallFleets,
                         testing::Values(SmallFleet{"Idle", 4, 4, 8, 0, 1},
                                         SmallFleet{"Busy", 4, 8, 80, 0, 1},
                                         SmallFleet{"SlowReceivers", 8, 8, 80, 0, 2},
                                         SmallFleet{"SomeSoftware", 8, 16, 160, 0.05, 1},
                                         SmallFleet{"MuchSoftware", 4, 4, 40, 0.4, 1}),
                         [](const auto& test) { return std::string(test.param.name); });

class FleetOfTwo : public testing::TestWithParam<int> {};

// Claim:  a fleet of two RNICs carries what the packet engine carries, within 10 %.
// Oracle: the engine, both ways, as many QPs as the fleet has messages under way.
// Method: masks from none to many; one way through software, and both directions loaded alike.
TEST_P(FleetOfTwo, CarriesWhatTheEngineCarries) {
  const int masks = GetParam();
  const std::string common = "message_bytes=65536,client_encap_masks=" + std::to_string(masks) +
                             ",server_decap_masks=" + std::to_string(masks);
  const auto fleet =
      measured("twin:cx6?hosts=2&rnics=2&threads=1&defects=S6", {"container_count=32," + common});
  const auto engine = measured(
      "twin:cx6?threads=1",
      {"direction=bidirectional,qp_count=16,send_queue_depth=4,server_encap_masks=" +
       std::to_string(masks) + ",client_decap_masks=" + std::to_string(masks) + "," + common});
  // The engine counts both directions, a fleet each RNIC's own.
  EXPECT_NEAR(*fleet[0].value(measure::kBandwidth) / (*engine[0].value(measure::kBandwidth) / 2), 1,
              0.1);
}

INSTANTIATE_TEST_SUITE_P(Masks, FleetOfTwo, testing::Values(0, 10, 20, 40));

// Claim:  flows that a switch judges by late counters go through software in a fleet too.
// Oracle: the same fleet without the fault.
TEST(Fleet, LosesFlowsToLateCounters) {
  const char* const settings = "container_count=4000,counter_poll_ms=1000,flow_idle_ms=100";
  const auto gbps = [&](const std::string& options) {
    return *measured("twin:e810?hosts=80&rnics=400&threads=1&defects=" + options, {settings})[0]
                .value(measure::kBandwidth);
  };
  EXPECT_LT(gbps("S1,S6"), 0.5 * gbps("S6"));
  EXPECT_EQ(gbps("S5,S6"), gbps("S6"));
}

// Claim:  sizes that cannot be are told in one message.
TEST(Fleet, RefusesSizesThatCannotBe) {
  for (const char* name : {"twin:cx6?hosts=1", "twin:cx6?hosts=10&rnics=5", "twin:cx6?rnics=many",
                           "twin:cx6?fleet=nowhere", "twin:cx6?fleet=/no/such.json",
                           "twin:cx6?hosts=10&switch=none", "twin:cx3?hosts=10"}) {
    const auto twin = create(name);
    ASSERT_FALSE(twin) << name;
    EXPECT_EQ(twin.error().code, ErrorCode::kBadInput) << name;
  }
  const auto seen = measured("twin:cx6?hosts=10&rnics=10", {"container_count=1"});
  EXPECT_EQ(seen[0].outcome, Outcome::kRefused);
}

}  // namespace
}  // namespace greynic::twin
