#include <fmt/core.h>
#include <gtest/gtest.h>

#include "engine/engine.h"
#include "perftest_program.h"

/// The fabric against the engine that `measure` runs on.

namespace greynic::twin {
namespace {

struct Case {
  PerftestLoad load;
  double encap = 0, decap = 0;
  std::string profile;
};

Case random_case(statistics::Random& random) {
  const auto pick = [&](auto... values) {
    const std::array all{values...};
    return all[random.below(static_cast<std::uint32_t>(all.size()))];
  };
  Case c;
  c.load.operation = static_cast<Operation>(random.below(4));
  if (c.load.operation == Operation::kSend) {
    c.load.transport = pick(Transport::kRC, Transport::kUC, Transport::kUD);
  } else if (c.load.operation == Operation::kWrite) {
    c.load.transport = pick(Transport::kRC, Transport::kUC);
  }
  c.load.qp_count = pick(1U, 2U, 4U, 8U, 16U, 64U);
  c.load.thread_count = std::min(c.load.qp_count, pick(1U, 2U, 4U, 8U));
  c.load.send_depth = pick(1U, 8U, 32U, 128U);
  c.load.signal_every = std::min(c.load.send_depth, pick(1U, 1U, 4U));
  c.load.post_batch = std::min(c.load.send_depth, pick(1U, 1U, 4U));
  c.load.mtu_bytes = pick(1024U, 2048U, 4096U);
  c.load.message_bytes = pick(2ULL, 64ULL, 500ULL, 1024ULL, 4096ULL, 20000ULL, 65536ULL, 262144ULL);
  if (c.load.operation == Operation::kAtomic) c.load.message_bytes = 8;
  if (c.load.transport == Transport::kUD) {
    c.load.message_bytes = std::min<std::uint64_t>(c.load.message_bytes, c.load.mtu_bytes);
  }
  c.load.sge_count = c.load.message_bytes >= 500 ? pick(1U, 1U, 2U, 4U) : 1;
  if (c.load.operation == Operation::kRead) c.load.sge_count = 1;  // the far side is one piece
  c.load.both_ways = random.below(4) == 0;
  c.encap = pick(0.0, 0.0, 5.0);
  c.decap = pick(0.0, 0.0, 5.0, 20.0);
  c.profile = pick("logs", "surface");
  return c;
}

HostLoad as_host_load(const Case& c) {
  HostLoad w;
  w.transport = c.load.transport;
  w.operation = c.load.operation;
  w.qp_count = c.load.qp_count;
  w.thread_count = c.load.thread_count;
  w.send_depth = c.load.send_depth;
  w.signal_every = c.load.signal_every;
  w.post_batch = c.load.post_batch;
  w.message_bytes = {c.load.message_bytes};
  w.mtu_bytes = c.load.mtu_bytes;
  w.sge_count = c.load.sge_count;
  w.mr_bytes = c.load.region_bytes;
  w.direction = c.load.both_ways ? Direction::kBidirectional : Direction::kUnidirectional;
  for (const Hop hop : {Hop::kClientEncap, Hop::kServerEncap}) w.walk(hop).groups = c.encap;
  for (const Hop hop : {Hop::kClientDecap, Hop::kServerDecap}) w.walk(hop).groups = c.decap;
  return w;
}

std::string name_of(const Case& c) {
  return fmt::format(
      "{} {} {} QPs {} threads depth {} signal {} batch {} bytes {} mtu {} sge {} {} groups {}/{} "
      "{}",
      to_string(c.load.operation), kTransportNames[static_cast<std::size_t>(c.load.transport)],
      c.load.qp_count, c.load.thread_count, c.load.send_depth, c.load.signal_every,
      c.load.post_batch, c.load.message_bytes, c.load.mtu_bytes, c.load.sge_count,
      c.load.both_ways ? "both ways" : "one way", c.encap, c.decap, c.profile);
}

FabricSpec fabric_of(const Case& c, std::uint64_t seed) {
  FabricSpec spec;
  spec.host.profile = c.profile;
  spec.host.encap_groups = c.encap;
  spec.host.decap_groups = c.decap;
  spec.host.thread_count = c.load.thread_count;
  spec.bytes = FabricSpec::Bytes::kCounted;
  spec.seed = seed;
  return spec;
}

void expect_same_rate(const Case& c, std::uint64_t seed) {
  const Parameters p = load_model("cx6", c.profile)->parameters;
  Engine engine(p, as_host_load(c), {}, seed);
  RunLimits limits;
  limits.most_packets = 600000;
  limits.target_error = 0.0005;
  const BandwidthResult expected = engine.run_bandwidth(limits);
  const Time span = std::clamp(expected.virtual_time, 2e6, 40e6);
  const PerftestResult seen = run_perftest(fabric_of(c, 1), c.load, span * 0.5, span * 1.5);
  EXPECT_EQ(seen.failed, 0U) << name_of(c);
  EXPECT_NEAR(seen.messages_per_second / expected.messages_per_second, 1, 0.01)
      << name_of(c) << ", seed " << seed << ", engine " << expected.messages_per_second * 1e-6
      << " +- " << expected.messages_error * 1e-6 << " M/s";
}

// Claim:  the same workload takes the same time on the fabric and in `measure`.
// Oracle: the engine, which computes in closed form what the fabric does event by event.
// Method: 40 random workloads over all operations; the program is written against the interface.
TEST(FabricAgainstMeasure, GivesTheSameRate) {
  const std::uint64_t seed = 20240;
  statistics::Random random(seed);
  for (int i = 0; i < 40; ++i) {
    const Case c = random_case(random);
    expect_same_rate(c, seed + static_cast<std::uint64_t>(i));
  }
}

// Claim:  so do atomics both ways, which share each RNIC's atomic unit with nobody but the other side.
TEST(FabricAgainstMeasure, GivesTheSameRateOfAtomicsBothWays) {
  for (const std::uint32_t qps : {1U, 4U, 8U, 16U}) {
    for (const std::uint32_t depth : {1U, 8U, 32U, 128U}) {
      Case c;
      c.load.operation = Operation::kAtomic;
      c.load.message_bytes = 8;
      c.load.qp_count = qps;
      c.load.thread_count = std::min(qps, 8U);
      c.load.send_depth = depth;
      c.load.both_ways = true;
      c.profile = "logs";
      expect_same_rate(c, depth + 1);
    }
  }
}

// Claim:  so do READs over more QPs than a chip holds, whose answers wait for contexts, and whose WQEs have left
//         the chip by then.
TEST(FabricAgainstMeasure, GivesTheSameRateOfReadsBeyondTheChip) {
  const Parameters p = load_model("cx3", "")->parameters;
  for (const std::uint32_t qps : {400U, 1024U}) {
    Case c;
    c.load.operation = Operation::kRead;
    c.load.message_bytes = 256;
    c.load.qp_count = qps;
    c.load.thread_count = 4;
    c.load.send_depth = 16;
    Engine engine(p, as_host_load(c), {}, qps);
    RunLimits limits;
    limits.target_error = 0.003;
    const double expected = engine.run_bandwidth(limits).messages_per_second;
    FabricSpec spec = fabric_of(c, 1);
    spec.host.rnic = "cx3";
    spec.host.overlay = HostSpec::Overlay::kOff;
    // All that is under way at first asks before anything is answered, so it takes long to settle.
    const Time settled = qps * 250e3;
    const PerftestResult seen = run_perftest(spec, c.load, settled, settled + 100e6);
    EXPECT_EQ(seen.failed, 0U);
    EXPECT_NEAR(seen.messages_per_second / expected, 1, 0.03) << qps << " QPs";
  }
}

// Claim:  so does a single message, there and back.
TEST(FabricAgainstMeasure, GivesTheSameMedianLatency) {
  const std::uint64_t seed = 7;
  statistics::Random random(seed);
  for (int i = 0; i < 40; ++i) {
    Case c = random_case(random);
    c.load.sge_count = 1;
    const Parameters p = load_model("cx6", c.profile)->parameters;
    HostLoad w = as_host_load(c);
    Engine engine(p, w, {}, seed + static_cast<std::uint64_t>(i));
    RunLimits limits;
    limits.target_error = 0.0005;
    const double expected = engine.run_latency(limits, 3000).histogram.quantile_ns(0.5);
    c.load.inline_bytes = static_cast<std::uint32_t>(p.max_inline_bytes[c.load.operation]);
    c.load.inline_bytes = std::min(c.load.inline_bytes, 220U);
    FabricSpec spec = fabric_of(c, 1);
    spec.host.thread_count = 1;
    PingPong program(spec, c.load);
    EXPECT_NEAR(program.median_ns(2000) / expected, 1, 0.01)
        << name_of(c) << ", case " << i << " of seed " << seed << ", engine " << expected << " ns";
  }
}

}  // namespace
}  // namespace greynic::twin
