#include "parts/congestion.h"

#include <gtest/gtest.h>

#include <deque>

#include "engine_run.h"
#include "greynic/twin/twin.h"

namespace greynic::twin {
namespace {

constexpr std::uint64_t kSeed = 31;
constexpr double kPayload = 1024, kWireBytes = 1156;

HostLoad writes(std::uint32_t qps) {
  HostLoad w;
  w.operation = Operation::kWrite;
  w.qp_count = qps;
  w.message_bytes = {65536};
  return w;
}

EngineRun run(const HostLoad& w, const Effects& effects, double seconds) {
  return run_engine(w, lasting(seconds), kSeed, cx6(), effects);
}

// Claim:  a buffer that pauses its sender admits packets when a queue with two thresholds would.
// Oracle: the queue itself, packet by packet: a deque of leaving times, and a flag that is set when
//         it is full and taken back when it has drained.
// Method: 20,000 packets at random gaps, served at random times, buffers of 8 and 100.
TEST(Pause, BeginsWhenTheBufferIsFullAndEndsWhenItHasDrained) {
  for (const std::size_t size : {std::size_t{8}, std::size_t{100}}) {
    const std::size_t resume = size / 2;
    PauseBuffer buffer(size, resume);
    std::deque<Time> inside;
    statistics::Random random(kSeed);
    Time t = 0, served = 0;
    std::uint64_t pauses = 0;
    for (int i = 0; i < 20000; ++i) {
      t += random.exponential(9);
      while (!inside.empty() && inside.front() <= t) inside.pop_front();
      Time allowed = t;
      if (inside.size() == size) {
        ++pauses;
        while (inside.size() > resume) {
          allowed = inside.front();
          inside.pop_front();
        }
      }
      ASSERT_EQ(buffer.admit(t), allowed) << "packet " << i << ", seed " << kSeed;
      t = allowed;
      served = std::max(served, t) + random.exponential(10);
      inside.push_back(served);
      buffer.enter(served);
    }
    EXPECT_GT(pauses, 10U);
    EXPECT_EQ(buffer.pause_count(), pauses);
  }
}

// Claim:  a receiver that is slower than the wire pauses it for the rest of the time, and nothing
//         is lost.
// Oracle: conservation of packets. With w and r the times of a packet on the wire and in the
//         receiver, the wire rests 1 - w / r of the time; the buffer drains d packets while the
//         wire rests and takes d in while it does not, so pauses come once in d r^2 / (r - w).
// Method: 16 QPs; the receiver spends 20, 60 or 200 ns more on a packet than its PCIe link does.
TEST(Pause, TakesTheShareOfTimeThatTheReceiverIsSlowerBy) {
  const Parameters p = load_model("cx6", "")->parameters;
  const double wire = kWireBytes * 8 / p.link_rate_gbps;
  const double link = PcieLink{4, 16, 256}.write_ns(kPayload);
  const double drained = p.receive_buffer_packets - p.receive_resume_packets;
  for (const double stall : {20.0, 60.0, 200.0}) {
    const EngineRun seen = run(writes(16), Effects{.receive_stall_ns = stall}, 0.02);
    const double receive = link + stall;
    EXPECT_NEAR(seen.result.pause_share, 1 - wire / receive, 0.01) << stall;
    EXPECT_NEAR(seen.result.packets_per_second, 1e9 / receive, 0.01 * 1e9 / receive) << stall;
    const double period = drained * receive * receive / (receive - wire);
    EXPECT_NEAR(static_cast<double>(seen.pauses), 0.02e9 / period, 0.05 * 0.02e9 / period) << stall;
    EXPECT_EQ(seen.server.dropped_packets + seen.client.dropped_packets, 0U);
  }
}

// Claim:  the switch marks as RED does: nothing below its low threshold, all above the high one,
//         and between them a share that grows evenly to the greatest; a packet joins behind the
//         backlog that it was judged by.
// Oracle: the rule itself, at backlogs that are kept the same for 20,000 packets.
TEST(Dcqcn, MarksBySwitchQueueAsRedDoes) {
  const PortLimits limits{
      .ecn_low = 1000, .ecn_high = 9000, .ecn_share = 0.25, .pause = 1e9, .resume = 1e8};
  constexpr double kWireNs = 50;
  constexpr int kPackets = 20000;
  for (const double backlog : {0.0, 900.0, 1000.0, 3000.0, 5000.0, 8990.0, 9000.0, 20000.0}) {
    SwitchPort port(2, limits, 1);
    statistics::Random random(kSeed);
    Time leaves = port.pass(0, 0, backlog / 2, true, random);  // fills the queue
    int marked = 0;
    for (int i = 0; i < kPackets; ++i) {
      const Time arrives = leaves - backlog;
      leaves = port.pass(0, arrives, kWireNs, true, random);
      ASSERT_NEAR(leaves - arrives, backlog + 2 * kWireNs, 1e-6);
      marked += port.marked() ? 1 : 0;
    }
    const double share = backlog >= limits.ecn_high  ? 1
                         : backlog <= limits.ecn_low ? 0
                                                     : 0.25 * (backlog - limits.ecn_low) /
                                                           (limits.ecn_high - limits.ecn_low);
    const double sigma = std::sqrt(share * (1 - share) / kPackets);
    EXPECT_NEAR(static_cast<double>(marked) / kPackets, share, 4 * sigma + 1e-9)
        << backlog << " ns, seed " << kSeed;
  }
}

// Claim:  marks lead to notifications, at most one a QP in so long, and those keep the queue below
//         where the port would pause.
// Oracle: the receiver's interval between two CNPs of one QP, and the time that a sender was told
//         to pause: none after 30 ms.
TEST(Dcqcn, KeepsTheQueueBelowItsPause) {
  HostLoad w = writes(4);
  w.server_link_gbps = 100;
  w.dcqcn = true;
  const EngineRun early = run(w, Effects{}, 0.03);
  const EngineRun late = run(w, Effects{}, 0.08);
  EXPECT_EQ(late.client.rx_pause, early.client.rx_pause);
  const auto marks = late.server.ecn_marked - early.server.ecn_marked;
  const auto cnps = late.server.cnps_sent - early.server.cnps_sent;
  EXPECT_GT(cnps, 0U);
  EXPECT_LT(cnps, marks);
  const Parameters p = load_model("cx6", "")->parameters;
  EXPECT_LE(static_cast<double>(cnps), 4 * (0.05e9 / (p.dcqcn_cnp_us * 1e3) + 1));
}

// Claim:  a slower link of the server carries what it can; pauses alone hold the client back for
//         the rest of the time, and DCQCN makes them go away at no cost in bandwidth, sharing the
//         link evenly.
// Oracle: link rates and header bytes; Jain's index of fairness.
// Method: 4 QPs, 200 to 100 Gbit/s, 60 ms; pauses and marks are judged after 20 ms, by the
//         difference of two runs from one seed.
TEST(Dcqcn, ReplacesPausesWithRatesThatFillTheLink) {
  HostLoad w = writes(4);
  w.server_link_gbps = 100;
  const double goodput = 100 * kPayload / kWireBytes;
  const EngineRun paused = run(w, Effects{}, 0.02);
  EXPECT_NEAR(paused.result.gbps, goodput, 0.01 * goodput);
  EXPECT_NEAR(paused.result.pause_share, 0.5, 0.02);
  EXPECT_EQ(paused.server.cnps_sent, 0U);

  w.dcqcn = true;
  const EngineRun early = run(w, Effects{}, 0.02);
  const EngineRun late = run(w, Effects{}, 0.06);
  EXPECT_NEAR(late.result.gbps, goodput, 0.02 * goodput);
  EXPECT_LT(late.client.rx_pause - early.client.rx_pause, 1e-3 * 0.04e9) << "ns";
  EXPECT_GT(late.server.cnps_sent, early.server.cnps_sent);
  EXPECT_LE(late.server.cnps_sent, late.server.ecn_marked);
  EXPECT_LE(late.client.cnps_handled, late.server.cnps_sent);
  double sum = 0, squares = 0;
  for (std::size_t qp = 0; qp < 4; ++qp) {
    const double messages = late.messages[qp] - early.messages[qp];
    sum += messages;
    squares += messages * messages;
  }
  EXPECT_GT(sum * sum / (4 * squares), 0.95);
}

// Claim:  where no port is slower, DCQCN changes nothing.
// Oracle: the same run without it, number by number.
TEST(Dcqcn, DoesNothingWithoutCongestion) {
  HostLoad w = writes(4);
  const EngineRun without = run(w, Effects{}, 0.002);
  w.dcqcn = true;
  const EngineRun with = run(w, Effects{}, 0.002);
  EXPECT_EQ(with.result.gbps, without.result.gbps);
  EXPECT_EQ(with.client.tx_packets, without.client.tx_packets);
  EXPECT_EQ(with.server.ecn_marked, 0U);
}

DcqcnRule paper() {
  return {.line_gbps = 40,
          .minimum_gbps = 0.1,
          .gain = 1.0 / 256,
          .alpha_ns = 55e3,
          .increase_ns = 55e3,
          .increase_bytes = 1e7,
          .recovery_steps = 5,
          .additive_gbps = 0.04,
          .hyper_gbps = 0.4,
          .cnp_ns = 50e3};
}

// Claim:  after its first CNP a QP falls to half its rate, comes halfway back five times, and then
//         follows a target that rises by R_AI.
// Oracle: closed form: R(k) = C - C / 2^(k+1) for k <= 5; then R(k) = (R(k-1) + T(k)) / 2 with the
//         target T at the line, so it stays there.
TEST(Dcqcn, ComesHalfwayBackFiveTimes) {
  const DcqcnRule rule = paper();
  RateLimiter limiter;
  EXPECT_EQ(limiter.rate(rule), 40);
  limiter.cut(rule, 1000);
  EXPECT_DOUBLE_EQ(limiter.rate(rule), 20);
  for (int k = 1; k <= 8; ++k) {
    limiter.catch_up(rule, 1000 + 55e3 * k + 1);
    EXPECT_NEAR(limiter.rate(rule), 40 - 40 / std::pow(2.0, k + 1), 1e-9) << k;
  }
}

// Claim:  under CNPs at a steady period, alpha settles where its decay and its gain balance.
// Oracle: closed form: a CNP each m + 1/2 times K leaves m decays between two, so after a CNP
//         alpha = g / (1 - (1 - g)^(m + 1)), and the next one cuts by half of what m decays leave.
// Method: 1,000 CNPs and no raises between them; the cut is the ratio of the rates around the last.
TEST(Dcqcn, CutsByAnAlphaThatBalances) {
  DcqcnRule rule = paper();
  rule.minimum_gbps = 0;
  rule.increase_ns = kNever;
  const double g = rule.gain;
  for (const int m : {0, 3, 20}) {
    RateLimiter limiter;
    double before = 0;
    for (int i = 1; i <= 1000; ++i) {
      before = limiter.rate(rule);
      limiter.cut(rule, i * (m + 0.5) * rule.alpha_ns);
    }
    const double cut = 1 - limiter.rate(rule) / before;
    EXPECT_NEAR(cut, g / (1 - std::pow(1 - g, m + 1)) * std::pow(1 - g, m) / 2, 1e-6) << m;
  }
}

// Claim:  bytes raise the rate as time does, and packets leave no faster than the rate.
// Oracle: arithmetic: 1000 bytes at 20 Gbit/s take 400 ns.
TEST(Dcqcn, SpacesPacketsByTheRate) {
  DcqcnRule rule = paper();
  RateLimiter limiter;
  limiter.send(rule, 1000, 0);
  EXPECT_EQ(limiter.allowed_at(), 0) << "nobody is limited before the first CNP";
  limiter.cut(rule, 0);
  limiter.send(rule, 1000, 100);
  EXPECT_DOUBLE_EQ(limiter.allowed_at(), 500);
  limiter.send(rule, 1000, 200);
  EXPECT_DOUBLE_EQ(limiter.allowed_at(), 900);
  rule.increase_bytes = 2500;
  limiter.send(rule, 1000, 900);
  EXPECT_DOUBLE_EQ(limiter.rate(rule), 30);
}

// Claim:  what cannot be is refused with one message.
TEST(Dcqcn, RefusesWhatCannotBe) {
  for (const char* name : {"twin:cx6?server_link_gbps=400", "twin:cx6?server_link_gbps=fast",
                           "twin:cx3?dcqcn=on", "twin:cx6?dcqcn=maybe"}) {
    const auto twin = create(name);
    ASSERT_FALSE(twin) << name;
    EXPECT_EQ(twin.error().code, ErrorCode::kBadInput);
  }
  EXPECT_TRUE(create("twin:cx6?server_link_gbps=100&dcqcn=on"));
}

}  // namespace
}  // namespace greynic::twin
