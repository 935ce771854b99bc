#include <gtest/gtest.h>

#include <cmath>

#include "engine_run.h"
#include "greynic/twin/twin.h"

namespace greynic::twin {
namespace {

constexpr std::uint64_t kSeed = 99;

EngineRun run(HostLoad w, double loss, std::uint64_t packets, double seconds = 10) {
  w.loss = loss;
  return run_engine(w, counting(packets, seconds), kSeed);
}

HostLoad one_qp() {
  HostLoad w;
  w.message_bytes = {1 << 20};
  return w;
}

// Claim:  go-back-N loses what was sent between a corrupted packet and word of it; when the NAK is
//         lost, or the packet once more, it loses the time of a timer instead.
// Oracle: closed form: each loss costs W packets, so goodput is g0 / (1 + p W); W is the time to
//         the receiver and back, taken from the half round trip of a small message that the same
//         twin measures, over the 93 ns that a packet takes. Timers: a gap in p of all packets,
//         each with 2 p to wait for one.
// Method: one QP, 1 MiB WRITE, p from 0.0001 to 0.01. The small message's trip has the posting and
//         polling threads in it, which a loss does not wait for: W may be up to 40 % smaller.
TEST(GoBackN, LosesARoundTripOfPacketsForEachCorruptedOne) {
  const Parameters parameters = load_model("cx6", "")->parameters;
  HostLoad w = one_qp();
  w.operation = Operation::kWrite;
  HostLoad small = w;
  small.message_bytes = {2};
  Engine trip(parameters, small, Effects{}, kSeed);
  const double half_ns = trip.run_latency(RunLimits{}, 300).mean_ns;
  w.retries.ack_timeout = 6;
  const EngineRun clean = run(w, 0, 300000);
  const double packet_ns = 1e9 / clean.result.packets_per_second;
  const double window = 2 * half_ns / packet_ns;
  EXPECT_EQ(clean.client.retransmitted_packets, 0U);
  double first = 0;
  for (const double p : {0.0001, 0.001, 0.01}) {
    const EngineRun lossy = run(w, p, 1000000);
    const auto timeouts = static_cast<double>(lossy.client.timeouts);
    const auto packets = static_cast<double>(lossy.result.packets);
    const Time waited = timeouts * w.retries.ack_timeout_ns();
    const double lost = ((lossy.result.virtual_time - waited) / packets / packet_ns - 1) / p;
    EXPECT_LT(lost, 1.05 * window) << "p " << p << ", seed " << kSeed;
    EXPECT_GT(lost, 0.6 * window) << "p " << p << ", seed " << kSeed;
    if (first == 0) first = lost;
    EXPECT_NEAR(lost / first, 1, 0.25) << "the same W for each p";
    const double expected = 2 * p * p * packets;
    EXPECT_NEAR(timeouts, expected, 5 * std::sqrt(expected) + 1);
    const auto sent = static_cast<double>(lossy.client.tx_packets);
    EXPECT_NEAR(static_cast<double>(lossy.server.dropped_packets), p * sent,
                5 * std::sqrt(p * sent));
    EXPECT_EQ(lossy.result.loss_share, 0) << "RC delivers every message";
  }
}

// Claim:  when nothing follows a lost packet, or a lost acknowledgement, the timer heals it.
// Oracle: closed form: a message takes t0 + T q / (1 - q), where q = 1 - (1 - p)^2 is the chance
//         that the packet or its answer is lost, and T = 4.096 us x 2^14.
// Method: one message of one packet at a time, 2 % lost, 100 virtual seconds.
TEST(GoBackN, WaitsForItsTimerWhenNothingFollows) {
  HostLoad w = one_qp();
  w.operation = Operation::kWrite;
  w.message_bytes = {1024};
  w.send_depth = 1;
  const EngineRun lossy = run(w, 0.02, 60000, 100);
  const auto messages = static_cast<double>(lossy.result.packets);
  const double mean_ns = lossy.result.virtual_time / messages;
  const double q = 1 - 0.98 * 0.98;
  const double expected = 4096.0 * 16384 * q / (1 - q);
  EXPECT_NEAR(mean_ns / expected, 1, 4 / std::sqrt(q * messages)) << "seed " << kSeed;
  EXPECT_GT(lossy.client.timeouts, 100U);
  EXPECT_EQ(lossy.client.sequence_naks, 0U);
}

// Claim:  UC and UD lose messages, and a message with k packets survives with (1-p)^k.
TEST(WireLoss, CostsUnreliableTransportsTheWholeMessage) {
  for (const Transport transport : {Transport::kUC, Transport::kUD}) {
    HostLoad w = one_qp();
    w.transport = transport;
    w.message_bytes = {transport == Transport::kUD ? 1024U : 16384U};
    const double k = transport == Transport::kUD ? 1 : 16;
    const EngineRun lossy = run(w, 0.01, 400000);
    const double expected = 1 - std::pow(0.99, k);
    const double messages = static_cast<double>(lossy.result.packets) / k;
    EXPECT_NEAR(lossy.result.loss_share, expected, 5 * std::sqrt(expected / messages));
    EXPECT_EQ(lossy.client.retransmitted_packets, 0U);
  }
}

// Claim:  every kind of traffic survives loss: books balance and every message arrives in the end.
// Oracle: the engine's conservation laws, and counters: what was received is what was sent less
//         what was corrupted.
TEST(WireLoss, KeepsTheBooks) {
  for (const Operation operation : {Operation::kSend, Operation::kWrite, Operation::kRead}) {
    for (const Direction direction :
         {Direction::kUnidirectional, Direction::kBidirectional, Direction::kLoopback}) {
      HostLoad w;
      w.operation = operation;
      w.direction = direction;
      w.qp_count = 6;
      w.send_depth = 16;
      w.receive_depth = 8;  // receivers run dry as well
      w.message_bytes = {10000, 64};
      const EngineRun lossy = run(w, 0.003, 100000);
      EXPECT_GT(lossy.client.dropped_packets + lossy.server.dropped_packets, 100U);
      EXPECT_GT(lossy.result.gbps, 1);
      EXPECT_EQ(lossy.result.loss_share, 0);
    }
  }
}

// Claim:  loss is an option of the target, off by default, and its counters come with it.
TEST(WireLoss, IsAnOptionOfTheTarget) {
  target::MeasureRequest request;
  request.configuration = parse_configuration("qp_count=1,message_bytes=1048576").value();
  auto lossy = create("twin:cx6?loss=0.01");
  ASSERT_TRUE(lossy);
  const Observation seen = target::measure_one(**lossy, request).value();
  EXPECT_GT(seen.counters_after.at("rx_sequence_naks"), 10);
  EXPECT_GT(seen.counters_after.at("server.out_of_sequence"), 10);
  auto clean = create("twin:cx6");
  const Observation usual = target::measure_one(**clean, request).value();
  EXPECT_FALSE(usual.counters_after.contains("rx_sequence_naks"));
  EXPECT_LT(*seen.value(measure::kBandwidth), 0.8 * *usual.value(measure::kBandwidth));
  EXPECT_FALSE(create("twin:cx6?loss=0.6"));
  EXPECT_FALSE(create("twin:cx6?loss=some"));
}

// Claim:  the retries of RC are options of the target; a QP that runs out of them fails with its
//         verbs name, and what cannot be is refused.
// Oracle: the specification's fields: 5 bits of timer codes, 3 bits of counts.
TEST(Retries, AreOptionsOfTheTarget) {
  target::MeasureRequest request;
  request.configuration =
      parse_configuration("qp_count=3,message_bytes=64,receive_queue_depth=0,send_queue_depth=16")
          .value();
  const auto seen = [&](const char* name) {
    return target::measure_one(*create(name).value(), request).value();
  };
  const Observation failed = seen("twin:cx6?rnr_retry=2&min_rnr_timer=1");
  EXPECT_EQ(failed.outcome, Outcome::kFailed);
  EXPECT_EQ(failed.reason,
            "IBV_WC_RNR_RETRY_EXC_ERR: no receive WQE for 3 tries, 0.01 ms apart; 3 of 3 QPs "
            "failed, 45 requests flushed");
  EXPECT_EQ(failed.counters_after.at("rnr_nak_retry_err"), 9);
  EXPECT_EQ(failed.counters_after.at("req_cqe_error"), 48);
  EXPECT_EQ(seen("twin:cx6").outcome, Outcome::kTimedOut) << "rnr_retry of 7: without end";
  request.configuration.set("transport", std::string("UD"));
  EXPECT_EQ(*seen("twin:cx6").value(measure::kLoss), 1);
  for (const char* name : {"ack_timeout=32", "ack_timeout=1.5", "retry_count=8", "retry_count=-1",
                           "rnr_retry=8", "min_rnr_timer=32", "min_rnr_timer=long"}) {
    EXPECT_FALSE(create(std::string("twin:cx6?") + name)) << name;
  }
}

}  // namespace
}  // namespace greynic::twin
