#include <gtest/gtest.h>

#include <cmath>
#include <queue>
#include <random>

#include "engine_run.h"

/// Acknowledgements, NAKs and notifications that the wire corrupts.

namespace greynic::twin {
namespace {

constexpr std::uint64_t kSeed = 4711;

/// One RC QP with messages of one packet, by the rules of the specification (9.7.5):
/// acknowledgements are cumulative, the receiver sends one NAK for each packet that it misses and
/// acknowledges what it has already, and the sender goes back to the oldest packet that it knows
/// nothing of when its timer is over. Everything on the wire is lost alike.
struct RcModel {
  Time gap, there, back, host, timeout;
  std::uint64_t depth;
  double loss;

  std::uint64_t messages = 0, timeouts = 0;

  void run(Time end) {
    enum Kind { kSlot, kPacket, kAck, kNak, kCredit, kTimer };
    struct Event {
      Time time;
      Kind kind;
      std::uint64_t psn;
      bool operator<(const Event& other) const { return time > other.time; }
    };
    std::mt19937_64 random(kSeed);
    const auto lost = [&] { return std::bernoulli_distribution(loss)(random); };
    std::priority_queue<Event> events;
    std::uint64_t next = 0, acked = 0, allowed = depth, expected = 0, timer = 0;
    bool nak_sent = false, idle = false;
    const auto watch = [&](Time t) { events.push({t + timeout, kTimer, ++timer}); };
    const auto wake = [&](Time t) {
      if (idle) events.push({t, kSlot, 0});
      idle = false;
    };
    const auto answer = [&](Time t, Kind kind) {
      if (!lost()) events.push({t + back, kind, expected});
    };
    events.push({0, kSlot, 0});
    while (!events.empty() && events.top().time < end) {
      const Event e = events.top();
      events.pop();
      switch (e.kind) {
        case kSlot:
          idle = next >= allowed;
          if (idle) break;
          if (next == acked) watch(e.time);
          if (!lost()) events.push({e.time + there, kPacket, next});
          ++next;
          events.push({e.time + gap, kSlot, 0});
          break;
        case kPacket:
          if (e.psn > expected) {
            if (!nak_sent) answer(e.time, kNak);
            nak_sent = true;
            break;
          }
          if (e.psn == expected) {
            ++expected;
            nak_sent = false;
          }
          answer(e.time, kAck);
          break;
        case kAck:
        case kNak:
          if (e.psn > acked) {
            acked = e.psn;
            next = std::max(next, acked);
            events.push({e.time + host, kCredit, acked});
            ++timer;
            if (next > acked) watch(e.time);
          }
          if (e.kind == kNak && e.psn == acked) {
            next = acked;
            wake(e.time);
          }
          break;
        case kCredit:
          allowed = std::max(allowed, e.psn + depth);
          wake(e.time);
          break;
        case kTimer:
          if (e.psn != timer || next == acked) break;
          ++timeouts;
          next = acked;
          watch(e.time);
          wake(e.time);
          break;
      }
    }
    messages = acked;
  }
};

struct Seen : EngineRun {
  double completed = 0, timeouts = 0;
};

Seen run(const HostLoad& w, const Parameters& p, double seconds) {
  Seen seen{run_engine(w, lasting(seconds), kSeed, p)};
  seen.completed = static_cast<double>(seen.client.completions);
  seen.timeouts = static_cast<double>(seen.client.timeouts);
  return seen;
}

/// WRITEs of one packet on one QP; the host is fast, so that the RNIC sets the pace.
struct Bed {
  Parameters p = cx6();
  HostLoad w;
  Bed() {
    p.post_request_ns = 20;
    p.completion_ns = 10;
    w.operation = Operation::kWrite;
    w.message_bytes = {64};
    w.inline_bytes = 64;
    w.overlay = false;
    w.signal_every = 1;
    w.retries.retry_count = 7;
  }
};

// Claim:  acknowledgements and NAKs are lost as packets are, and RC recovers: by a later
//         acknowledgement, or by its timer.
// Oracle: the rules of the specification, packet by packet and answer by answer (RcModel), which
//         sends all again where the twin sends one packet; it shares no code.
// Method: windows of 1, 4 and 64 messages, two timers, losses of 1 and 3 %. What a packet, a trip
//         and the host take is measured without loss. Goodput and timeouts agree within 6 % and
//         four standard errors.
TEST(LostAnswers, CostWhatTheProtocolMakesOfThem) {
  Bed bed;
  const auto interval_ns = [&](std::uint32_t depth) {
    bed.w.send_depth = depth;
    bed.w.loss = 0;
    return 1e6 / run(bed.w, bed.p, 0.001).completed;
  };
  const double gap = interval_ns(64);
  const double there = bed.p.one_way_ns + 50;
  const double back = bed.p.one_way_ns + bed.p.ack_ns;
  for (const std::uint32_t depth : {1U, 4U, 64U}) {
    const double cycle = depth * interval_ns(depth);
    for (const int code : {5, 7}) {
      for (const double loss : {0.01, 0.03}) {
        bed.w.send_depth = depth;
        bed.w.retries.ack_timeout = code;
        bed.w.loss = loss;
        const double seconds = code == 5 ? 0.3 : 0.6;
        RcModel model{.gap = gap,
                      .there = there,
                      .back = back,
                      .host = cycle - there - back,
                      .timeout = bed.w.retries.ack_timeout_ns(),
                      .depth = depth,
                      .loss = loss};
        model.run(seconds * 1e9);
        const Seen seen = run(bed.w, bed.p, seconds);
        SCOPED_TRACE(testing::Message() << "depth " << depth << ", timer " << code << ", loss "
                                        << loss << ", seed " << kSeed);
        const auto timeouts = static_cast<double>(model.timeouts);
        const double share = 0.06 + 4 / std::sqrt(timeouts);
        EXPECT_NEAR(seen.completed / static_cast<double>(model.messages), 1, share);
        EXPECT_NEAR(seen.timeouts / timeouts, 1, share);
        EXPECT_EQ(seen.client.retries_exceeded, 0U);
      }
    }
  }
}

// Claim:  an acknowledgement speaks for all before it: a lost one costs nothing while others
//         follow.
// Oracle: the same traffic without loss; no timer runs, so nothing but what follows can help.
TEST(LostAnswers, AreMadeGoodByLaterOnes) {
  Bed bed;
  bed.w.send_depth = 64;
  bed.w.retries.ack_timeout = 0;
  const Seen clean = run(bed.w, bed.p, 0.001);
  bed.w.loss = 0.001;
  const Seen lossy = run(bed.w, bed.p, 0.001);
  EXPECT_GT(lossy.client.dropped_packets, 3U) << "answers, seed " << kSeed;
  EXPECT_EQ(lossy.timeouts, 0);
  EXPECT_GT(lossy.completed, 0.9 * clean.completed);
}

// Claim:  a QP that is not answered for retry_count + 1 times fails, though the receiver has its
//         message, and the books balance.
// Oracle: closed form: without retries a QP completes (1 - q) / q messages in the mean before the
//         first that is lost or not answered, q = 1 - 0.6^2; the deviation of one QP is
//         sqrt(1 - q) / q.
TEST(LostAnswers, ExhaustTheRetriesOfTheirQp) {
  Bed bed;
  constexpr double kQps = 400;
  bed.w.qp_count = kQps;
  bed.w.send_depth = 1;
  bed.w.loss = 0.4;
  bed.w.retries.ack_timeout = 8;
  bed.w.retries.retry_count = 0;
  const Seen seen = run(bed.w, bed.p, 1);
  const double q = 1 - 0.6 * 0.6;
  EXPECT_EQ(seen.client.retries_exceeded, kQps);
  EXPECT_EQ(seen.client.flushed, 0U) << "the only request open on each is the one that failed";
  EXPECT_NEAR(seen.completed, kQps * (1 - q) / q, 4 * std::sqrt(kQps * (1 - q)) / q);
  EXPECT_GT(static_cast<double>(seen.server.write_requests), 1.2 * seen.completed)
      << "the receiver has more than the sender knows";
}

// Claim:  notifications of congestion are lost as well; a sender that heard of none goes on.
// Oracle: the books: what was sent was heard, was lost, or is on its way.
TEST(LostAnswers, TakeNotificationsAlong) {
  HostLoad w;
  w.qp_count = 4;
  w.message_bytes = {65536};
  w.server_link_gbps = 100;
  w.dcqcn = true;
  w.loss = 0.05;
  w.retries.ack_timeout = 3;
  const Seen seen = run(w, cx6(), 0.3);
  EXPECT_GT(seen.server.cnps_lost, 5U);
  EXPECT_GT(seen.client.cnps_handled, 50U);
  EXPECT_NEAR(static_cast<double>(seen.server.cnps_lost), 0.05 * seen.server.cnps_sent,
              5 * std::sqrt(0.05 * seen.server.cnps_sent));
}

}  // namespace
}  // namespace greynic::twin
