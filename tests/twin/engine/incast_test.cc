#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <random>

#include "engine_run.h"
#include "greynic/twin/twin.h"

namespace greynic::twin {
namespace {

constexpr std::uint64_t kSeed = 41;
constexpr double kPayload = 1024, kWireBytes = 1156;

/// 4 QPs of each sender fill its link.
HostLoad writes(std::uint32_t senders) {
  HostLoad w;
  w.operation = Operation::kWrite;
  w.sender_count = senders;
  w.qp_count = 4;
  w.message_bytes = {65536};
  return w;
}

struct Seen : EngineRun {
  [[nodiscard]] double sum(std::uint64_t NicCounters::*counter) const {
    double all = 0;
    for (const NicCounters& rnic : rnics) all += static_cast<double>(rnic.*counter);
    return all;
  }
  /// Goodput of each sender, as a share of all.
  [[nodiscard]] std::vector<double> shares() const {
    std::vector<double> bytes;
    double all = 0;
    for (std::size_t i = 0; i < rnics.size(); ++i) {
      if (i == 1) continue;
      bytes.push_back(static_cast<double>(rnics[i].tx_bytes - rnics[i].retransmitted_bytes));
      all += bytes.back();
    }
    for (double& share : bytes) share /= all;
    return bytes;
  }
};

Seen run(const HostLoad& w, double seconds) { return {run_engine(w, lasting(seconds), kSeed)}; }

double jain(const std::vector<double>& values) {
  double sum = 0, squares = 0;
  for (const double value : values) {
    sum += value;
    squares += value * value;
  }
  return sum * sum / (static_cast<double>(values.size()) * squares);
}

// Claim:  senders that meet at one port share its line evenly; the port pauses each for the rest of
//         the time, and loses nothing.
// Oracle: fluid, by hand. A sender may send 1 / n of the time. Its part of the buffer drains by
//         d = pause - resume while it rests, at 1 / n of the rate R, and fills by d while it sends,
//         at R (1 - 1 / n): a pause comes once in (d / R) n^2 / (n - 1). Of two,
//         who sends while the other rests has the line alone, so that is rough for them.
// Method: 2, 4 and 12 senders; 12 share the buffer, so their thresholds are lower.
TEST(Incast, SharesThePausedLineEvenly) {
  const Parameters p = cx6();
  const double line = p.link_rate_gbps * kPayload / kWireBytes;
  for (const std::uint32_t n : {2U, 4U, 12U}) {
    SCOPED_TRACE(testing::Message() << n << " senders");
    constexpr double kSeconds = 0.02;
    const Seen seen = run(writes(n), kSeconds);
    EXPECT_NEAR(seen.result.gbps, line, 0.01 * line);
    for (const double share : seen.shares()) EXPECT_NEAR(share * n, 1, 0.03);
    for (std::size_t i = 0; i < seen.rnics.size(); ++i) {
      if (i != 1) {
        EXPECT_NEAR(seen.rnics[i].rx_pause / (kSeconds * 1e9), 1 - 1.0 / n, 0.03);
      }
    }
    EXPECT_EQ(seen.sum(&NicCounters::dropped_packets), 0);
    EXPECT_EQ(seen.sum(&NicCounters::retransmitted_packets), 0);
    const double part = std::min(1.0, p.port_buffer_kbytes / n / p.port_pause_kbytes);
    const double drained_ns =
        part * (p.port_pause_kbytes - p.port_resume_kbytes) * 8e3 / p.link_rate_gbps;
    const double period = drained_ns * n * n / (n - 1.0);
    const double pauses = n * kSeconds * 1e9 / period;
    EXPECT_NEAR(static_cast<double>(seen.port_pauses), pauses, (n == 2 ? 0.4 : 0.15) * pauses);
  }
}

// Claim:  without PFC the port drops what its buffer cannot hold. Transports that wait for nobody
//         lose all but the n-th part; RC goes back, delivers everything in the end, and wastes
//         line.
// Oracle: fluid: n lines into one. Counters: what clients miss is what the switch dropped.
TEST(Incast, LosesPacketsWithoutPauses) {
  for (const std::uint32_t n : {2U, 4U, 8U}) {
    SCOPED_TRACE(testing::Message() << n << " senders");
    HostLoad w = writes(n);
    w.pfc = false;
    w.transport = Transport::kUC;
    w.message_bytes = {1024};
    w.qp_count = 16;
    w.post_batch = w.signal_every = 8;
    const Seen lost = run(w, 0.02);
    // What one sender sends is less than the line here: threads are slower than it.
    const double sent = static_cast<double>(lost.rnics[0].tx_packets) / 0.02e9 * kWireBytes * 8;
    const double over = sent * n / cx6().link_rate_gbps;
    if (over > 1.1) EXPECT_NEAR(lost.result.loss_share, 1 - 1 / over, 0.03);
    EXPECT_EQ(lost.result.pause_share, 0);

    HostLoad rc = writes(n);
    rc.pfc = false;
    const Seen seen = run(rc, 0.1);
    EXPECT_GT(seen.sum(&NicCounters::port_discards), 100);
    EXPECT_EQ(seen.sum(&NicCounters::port_discards), seen.sum(&NicCounters::dropped_packets));
    EXPECT_GE(seen.sum(&NicCounters::sequence_naks) + seen.sum(&NicCounters::timeouts), n);
    EXPECT_GT(seen.sum(&NicCounters::retransmitted_packets), 1000);
    EXPECT_EQ(seen.result.loss_share, 0) << "RC delivers every message";
    EXPECT_EQ(seen.result.pause_share, 0);
    const double line = cx6().link_rate_gbps * kPayload / kWireBytes;
    EXPECT_LT(seen.result.gbps, line);
    EXPECT_GT(seen.result.gbps, 0.1 * line);
  }
}

// Claim:  DCQCN brings the flows of several senders to fair shares that fill the line, and pauses
//         end.
// Oracle: the line's rate; Jain's index over flows, which is 1 when they are equal; time paused.
// Method: 2, 4 and 8 senders of one QP; judged between 60 and 120 ms by the difference of two runs
//         from one seed.
TEST(Incast, ConvergesToFairSharesWithDcqcn) {
  const double line = cx6().link_rate_gbps * kPayload / kWireBytes;
  for (const std::uint32_t n : {4U, 8U}) {
    SCOPED_TRACE(testing::Message() << n << " senders");
    HostLoad w = writes(n);
    w.qp_count = 1;
    w.message_bytes = {65536};
    w.dcqcn = true;
    const Seen early = run(w, 0.06);
    const Seen late = run(w, 0.12);
    std::vector<double> flows;
    double bits = 0;
    for (std::size_t qp = 0; qp < n; ++qp) {
      flows.push_back(late.messages[qp] - early.messages[qp]);
      bits += flows.back() * 65536 * 8;
    }
    EXPECT_NEAR(bits / 0.06e9, line, 0.05 * line);
    EXPECT_GT(jain(flows), 0.95);
    double paused = 0;
    for (std::size_t i = 0; i < late.rnics.size(); ++i) {
      paused += late.rnics[i].rx_pause - early.rnics[i].rx_pause;
    }
    EXPECT_LT(paused, 1e-3 * n * 0.06e9);
    EXPECT_GT(late.sum(&NicCounters::cnps_handled), early.sum(&NicCounters::cnps_handled));
  }
}

// Claim:  the port counts each sender's packets by themselves: it pauses who fills the buffer, and
//         lets the other send; without PFC it drops what finds the buffer full, whoever it is.
// Oracle: the queue, packet by packet: a list of who has how much in it.
// Method: 20,000 packets of random sizes from three senders of different eagerness.
TEST(SwitchPort, CountsSendersApart) {
  for (const bool lossless : {true, false}) {
    const PortLimits limits{.ecn_low = 1e9,
                            .ecn_high = 2e9,
                            .lossless = lossless,
                            .pause = 900,
                            .resume = 500,
                            .buffer = 2000};
    SwitchPort port(1, limits, 3);
    statistics::Random unused(kSeed);
    std::mt19937_64 random(kSeed);
    struct Waiting {
      std::size_t sender;
      double leaves, takes;
    };
    std::deque<Waiting> queue;
    double stopped[3] = {0, 0, 0};
    double free = 0, t = 0;
    std::uint64_t pauses[3] = {0, 0, 0}, drops = 0;
    for (int i = 0; i < 20000; ++i) {
      t += std::exponential_distribution<>(1 / 40.0)(random);
      const std::size_t sender = random() % 10 < 7 ? 0 : random() % 10 < 8 ? 1 : 2;
      const double takes = std::uniform_real_distribution<>(10, 90)(random);
      while (!queue.empty() && queue.front().leaves <= t) queue.pop_front();
      if (lossless) {
        double waiting = 0;
        for (const Waiting& one : queue) waiting += one.sender == sender ? one.takes : 0;
        double allowed = t;
        if (t < stopped[sender]) {
          allowed = stopped[sender];
        } else if (waiting > limits.pause) {
          ++pauses[sender];
          for (const Waiting& one : queue) {
            if (waiting <= limits.resume) break;
            if (one.sender != sender) continue;
            waiting -= one.takes;
            stopped[sender] = allowed = one.leaves;
          }
        }
        ASSERT_NEAR(port.admit(sender, t), allowed, 1e-6) << "packet " << i << ", seed " << kSeed;
        if (allowed > t) continue;  // it stays where it is
      }
      const bool dropped = !lossless && std::max(0.0, free - t) + takes > limits.buffer;
      const double left = port.pass(sender, t, takes, true, unused);
      ASSERT_EQ(port.dropped(), dropped) << "packet " << i << ", seed " << kSeed;
      if (dropped) {
        ++drops;
        continue;
      }
      free = std::max(free, t) + takes;
      ASSERT_NEAR(left, free, 1e-6);
      queue.push_back({sender, free, takes});
    }
    if (lossless) {
      EXPECT_GT(pauses[0], 20U);
      EXPECT_EQ(pauses[2], 0U) << "who sends little is not held responsible";
    } else {
      EXPECT_GT(drops, 100U);
    }
  }
}

// Claim:  how many hosts there are is a factor: host_count - 1 send to one. Two are the pair, to
//         the last bit; what cannot be is refused.
// Oracle: the pair without the factor; the line; by hand.
TEST(Incast, IsAFactorOfTheTarget) {
  target::MeasureRequest request;
  request.duration = std::chrono::milliseconds(20);
  const auto seen = [&](const char* twin, const std::string& more) {
    request.configuration =
        parse_configuration("qp_count=2,operation=WRITE,message_bytes=65536" + more).value();
    return target::measure_one(*create(twin).value(), request).value();
  };
  const Observation pair = seen("twin:cx6", "");
  const Observation two = seen("twin:cx6", ",host_count=2");
  EXPECT_EQ(*two.value(measure::kBandwidth), *pair.value(measure::kBandwidth));
  EXPECT_EQ(two.counters_after, pair.counters_after);
  const Observation five = seen("twin:cx6", ",host_count=5");
  const double line = 200 * kPayload / kWireBytes;
  EXPECT_NEAR(*five.value(measure::kBandwidth), line, 0.01 * line);
  EXPECT_NEAR(*five.value("pause_share"), 0.75, 0.05);
  EXPECT_GT(*five.value("fairness"), 0.99);
  EXPECT_NEAR(*five.value("sender_gbps_min"), line / 4, 0.1 * line / 4);
  EXPECT_TRUE(five.counters_after.contains("client4.tx_vport_rdma_unicast_packets"));
  EXPECT_FALSE(five.counters_after.contains("client5.tx_vport_rdma_unicast_packets"));
  const Observation lossy = seen("twin:cx6?pfc=off", ",host_count=5");
  EXPECT_EQ(*lossy.value("pause_share"), 0);
  EXPECT_GT(lossy.counters_after.at("switch_discards"), 0);
  EXPECT_EQ(seen("twin:cx6", ",host_count=251").outcome, Outcome::kRefused);
  EXPECT_EQ(seen("twin:cx6", ",host_count=3,direction=loopback").outcome, Outcome::kRefused);
  EXPECT_EQ(seen("twin:cx6", ",host_count=3,direction=bidirectional").outcome, Outcome::kMeasured);
  EXPECT_FALSE(create("twin:cx6?pfc=maybe"));
}

}  // namespace
}  // namespace greynic::twin
