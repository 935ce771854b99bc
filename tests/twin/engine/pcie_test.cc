#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "engine/engine.h"

namespace greynic::twin {
namespace {

constexpr std::uint64_t kSeed = 77;

BandwidthResult run(const Parameters& parameters, const HostLoad& load) {
  Engine engine(parameters, load, Effects{}, kSeed);
  RunLimits limits;
  limits.most_packets = 200000;
  limits.target_error = -1;
  const BandwidthResult result = engine.run_bandwidth(limits);
  EXPECT_EQ(engine.broken_law(), "");
  return result;
}

HostLoad writes(std::uint64_t bytes) {
  HostLoad w;
  w.operation = Operation::kWrite;
  w.qp_count = w.thread_count = 16;
  w.send_depth = 16;  // all WQEs stay on chip
  w.message_bytes = {bytes};
  return w;
}

// Claim:  an RNIC with few read credits is held back by the requests that its payload takes: the
//         smaller the largest read request (MRRS), the more of them.
// Oracle: Little's law: a message takes one credit for its WQE and ceil(4096 / MRRS) for its
//         payload, for as long as a read takes; 16 credits carry so many messages a second.
TEST(Pcie, ReadCreditsBoundTheRateByTheSizeOfRequests) {
  Parameters p = load_model("cx6", "")->parameters;
  p.pcie_read_slot_count = 16;
  for (const double request_bytes : {128.0, 256.0, 512.0}) {
    p.pcie_max_read_request_bytes = request_bytes;
    const double credits = 1 + 4096 / request_bytes;
    const double bound = 16 / (credits * p.pcie_read_latency_ns) * 1e9;
    const double rate = run(p, writes(4096)).messages_per_second;
    EXPECT_NEAR(rate, bound, 0.02 * bound) << request_bytes;
  }
}

// Claim:  a narrow link carries one way what the headers of its writes leave, by the largest
//         payload (MPS), and both ways what the requests for the other way's reads leave as well.
// Oracle: the pcie-bench model by hand: 24 bytes a write TLP of MPS bytes and 24 a request of MRRS
//         bytes; acknowledgements and credits take 16 bytes of 203, SKIP sets 4 of 1538.
// Method: Gen4 x8 below a 200 Gbit/s port, 64 KiB WRITE.
TEST(Pcie, NarrowLinkCarriesWhatHeadersLeave) {
  Parameters p = load_model("cx6", "")->parameters;
  p.pcie_lanes = 8;
  const double tlp = 16.0 * 8 * 128 / 130 * (1 - 16.0 / 203 - 4.0 / 1538);
  for (const double payload_bytes : {128.0, 256.0}) {
    for (const double request_bytes : {128.0, 512.0}) {
      p.pcie_max_payload_bytes = payload_bytes;
      p.pcie_max_read_request_bytes = request_bytes;
      const double writes_take = 1024 + 24 * 1024 / payload_bytes;
      const double requests_take = 24 * 1024 / request_bytes;
      HostLoad w = writes(65536);
      const double one_way = tlp * 1024 / writes_take;
      EXPECT_NEAR(run(p, w).gbps, one_way, 0.01 * one_way);
      w.direction = Direction::kBidirectional;
      const double each = tlp * 1024 / (writes_take + requests_take);
      EXPECT_NEAR(run(p, w).gbps, 2 * each, 0.02 * 2 * each)
          << payload_bytes << " " << request_bytes;
    }
  }
}

// Claim:  a list of elements is read element by element, and its WQE grows by 16 bytes for each.
// Oracle: Little's law again: 4 KiB in n elements take n requests (of 512 bytes: eight at least),
//         and a WQE of n elements takes ceil((32 + 16 n) / 256) reads.
TEST(Pcie, ElementsOfAListTakeReadsOfTheirOwn) {
  Parameters p = load_model("cx6", "")->parameters;
  p.pcie_read_slot_count = 16;
  for (const std::uint32_t elements : {1U, 8U, 16U, 32U}) {
    HostLoad w = writes(4096);
    w.sge_count = elements;
    const double credits = std::max(8U, elements) + std::ceil((32 + 16 * elements) / 256.0);
    const double bound = 16 / (credits * p.pcie_read_latency_ns) * 1e9;
    const double rate = run(p, w).messages_per_second;
    EXPECT_NEAR(rate, bound, 0.02 * bound) << elements;
  }
}

// Claim:  buffers on the far socket of the client take it longer to read, and its answers longer to
//         write: what it waits for grows by the distance once each, and nothing else does.
// Oracle: far_socket_ns. Half a round trip of WRITEs has half of one read (inlined: none) and half
//         of one write of the client's memory; of READ, a write of it alone, in the whole of it.
TEST(Pcie, FarMemoryAddsItsDistance) {
  const Parameters p = load_model("cx6", "")->parameters;
  const auto trip = [&](Operation operation, std::uint64_t bytes, bool far) {
    HostLoad w;
    w.operation = operation;
    w.message_bytes = {bytes};
    w.far_memory = far;
    Engine engine(p, w, Effects{}, kSeed);
    return engine.run_latency(RunLimits{}, 3000).mean_ns;
  };
  const auto added = [&](Operation operation, std::uint64_t bytes) {
    return trip(operation, bytes, true) - trip(operation, bytes, false);
  };
  EXPECT_NEAR(added(Operation::kWrite, 2048), p.far_socket_ns, 20);
  EXPECT_NEAR(added(Operation::kWrite, 64), p.far_socket_ns / 2, 20);
  EXPECT_NEAR(added(Operation::kRead, 2048), p.far_socket_ns, 20);
}

}  // namespace
}  // namespace greynic::twin
