#include <gtest/gtest.h>

#include <algorithm>

#include "engine/engine.h"

/// What of half a round trip grows with the size of a packet.

namespace greynic::twin {
namespace {

constexpr std::uint64_t kSeed = 31;

double trip_ns(const Parameters& parameters, Operation operation, std::uint64_t bytes) {
  HostLoad w;
  w.operation = operation;
  w.message_bytes = {bytes};
  Engine engine(parameters, w, Effects{}, kSeed);
  return engine.run_latency(RunLimits{}, 3000).mean_ns;
}

// Claim:  a stage that stores packets whole adds the time of one packet's payload on the line to
//         half a round trip of WRITEs, or a READ's whole one, however many packets the message has, and takes
//         nothing from the rate.
// Oracle: by hand: stages x min(message, MTU) x 8 bits / 200 Gbit/s; of READ only the answer carries payload.
// Method: the same seed with 0, 1 and 4 stages; 64 B are inlined.
TEST(Latency, StoredStagesAddTheTimeOfOnePacketEach) {
  Parameters p = load_model("cx6", "")->parameters;
  for (const Operation operation : {Operation::kSend, Operation::kWrite, Operation::kRead}) {
    for (const std::uint64_t bytes : {64U, 512U, 1024U, 8192U}) {
      p.stored_stage_count = 0;
      const double cut_through = trip_ns(p, operation, bytes);
      for (const double stages : {1.0, 4.0}) {
        p.stored_stage_count = stages;
        const double packet_ns = static_cast<double>(std::min<std::uint64_t>(bytes, 1024)) * 0.04;
        EXPECT_NEAR(trip_ns(p, operation, bytes) - cut_through, stages * packet_ns, 4)
            << bytes << " bytes, operation " << static_cast<int>(operation);
      }
    }
  }
  HostLoad w;
  w.message_bytes = {65536};
  const auto gbps = [&](double stages) {
    p.stored_stage_count = stages;
    return Engine(p, w, Effects{}, kSeed).run_bandwidth(RunLimits{}).gbps;
  };
  EXPECT_NEAR(gbps(4), gbps(0), 0.002 * gbps(0));
}

// Claim:  a short packet behind a full one does not overtake it in the stages that store packets.
// Oracle: a message of one full packet and 1 byte takes no less than one of the full packet alone.
TEST(Latency, ShortLastPacketsDoNotOvertake) {
  Parameters p = load_model("cx6", "")->parameters;
  p.stored_stage_count = 32;
  EXPECT_GT(trip_ns(p, Operation::kWrite, 1025), trip_ns(p, Operation::kWrite, 1024));
}

// Claim:  payload that is not inlined crosses two PCIe links before it is in memory: the sender's,
//         until its first packet is whole, and the receiver's.
// Oracle: TLPs by hand: 1 KiB in MPS of 256 bytes, 20 bytes of header each when read and 24 when
//         written; acknowledgements and credits take 16 bytes of 203 (x8) or 168 (x16), SKIP sets 4
//         of 1538. Of four packets only one is waited for: the link is faster than the line.
TEST(Latency, PayloadTakesItsTimeOnBothPcieLinks) {
  Parameters p = load_model("cx6", "")->parameters;
  const auto tlp_gbps = [](double lanes, double between_acks) {
    return 16.0 * lanes * 128 / 130 * (1 - 16.0 / between_acks - 4.0 / 1538);
  };
  const double link_bits = 8 * (2 * 1024 + 4 * 20 + 4 * 24);
  const double expected = link_bits / tlp_gbps(8, 203) - link_bits / tlp_gbps(16, 168);
  const double wide = trip_ns(p, Operation::kWrite, 1024);
  const double wide4 = trip_ns(p, Operation::kWrite, 4096);
  p.pcie_lanes = 8;
  EXPECT_NEAR(trip_ns(p, Operation::kWrite, 1024) - wide, expected, 4);
  EXPECT_NEAR(trip_ns(p, Operation::kWrite, 4096) - wide4, expected, 4);
}

}  // namespace
}  // namespace greynic::twin
