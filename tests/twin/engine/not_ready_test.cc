#include <gtest/gtest.h>

#include <cmath>
#include <deque>

#include "engine_run.h"
#include "greynic/twin/twin.h"

namespace greynic::twin {
namespace {

constexpr std::uint64_t kSeed = 77;
constexpr std::uint32_t kSignalEvery = 64;

HostLoad sends(std::uint32_t receive_depth, std::uint64_t bytes = 64) {
  HostLoad w;
  w.message_bytes = {bytes};
  w.receive_depth = receive_depth;
  return w;
}

struct Seen : EngineRun {
  double received = 0;
  Time end = 0;
};

Seen run(const HostLoad& w, double seconds, const Parameters& p = cx6()) {
  Seen seen{run_engine(w, lasting(seconds), kSeed, p)};
  seen.received = static_cast<double>(seen.server.send_messages);
  seen.end = seen.result.virtual_time;
  return seen;
}

/// One RC QP by the rules of the specification (9.7.5.2.8), packet by packet and sequence number by
/// sequence number: the receiver accepts the number that it expects and nothing else; the first
/// packet of a message takes a receive WQE, or is answered with an RNR NAK when there is none; the
/// sender goes back to that number when its timer is over.
struct PsnModel {
  Time gap, there, back, timer, repost;
  std::uint64_t packets_per_message, depth, receives;

  std::uint64_t messages = 0, naks = 0, sent = 0;

  void run(Time end) {
    std::uint64_t next = 0, expected = 0;
    Time free_from = 0, acked_at = 0;
    std::deque<Time> posted(receives, 0.0);  // when receive WQEs are there
    std::deque<std::pair<Time, std::uint64_t>> acks;
    bool asked = false;  // an RNR NAK is out; what follows is dropped without a word
    Time heard = kNever;
    std::uint64_t acked = 0;
    for (Time t = 0; t < end; t += gap) {
      while (!acks.empty() && acks.front().first <= t) {
        acked = acks.front().second / kSignalEvery * kSignalEvery;
        acks.pop_front();
      }
      if (t >= heard) {  // rewinds and rests
        next = expected;
        free_from = heard + timer;
        heard = kNever;
        asked = false;
      }
      if (t < free_from || next >= (acked + depth) * packets_per_message) continue;
      const std::uint64_t psn = next++;
      ++sent;
      const Time arrives = t + there;
      if (asked || psn != expected) continue;
      if (psn % packets_per_message == 0) {
        if (posted.empty() || posted.front() > arrives) {
          ++naks;
          asked = true;
          heard = arrives + back;
          continue;
        }
        posted.pop_front();
      }
      ++expected;
      if (expected % packets_per_message != 0) continue;
      ++messages;
      acked_at = std::max(acked_at, arrives) + repost;
      posted.push_back(acked_at);
      acks.emplace_back(arrives + back, messages);
    }
  }
};

// Claim:  a SEND without receive WQE is dropped with all that follows it on its QP, and all of it
//         comes again in order when the timer is over.
// Oracle: a model of sequence numbers, packet by packet, that shares no code; its times are
//         parameters of the RNIC. Messages and NAKs have to agree within 1 %, packets sent in all
//         within 10 %: how many follow the refused one hangs on jitter.
// Method: one QP with few receive WQEs, messages of one and of many packets, three timers, 0.5 s.
TEST(ReceiverNotReady, MakesTheSenderGoBack) {
  const Parameters p = cx6();
  for (const std::uint64_t packets : {1ULL, 5ULL, 64ULL}) {
    for (const std::uint32_t receives : {1U, 3U, 8U}) {
      for (const int timer : {8, 12, 16}) {
        HostLoad w = sends(receives, packets == 1 ? 64 : packets * 1024);
        w.retries.min_rnr_timer = timer;
        // Without an overlay a trip is made of parameters alone.
        w.overlay = false;
        w.send_depth = 1024;
        w.signal_every = kSignalEvery;
        // The thread takes long to put a WQE back, so that few are there at a time; the sender's
        // has to look at one completion in 64 only.
        Parameters slow = p;
        slow.completion_ns = 20e3;
        const Seen seen = run(w, 0.5, slow);
        const double wire = (packets == 1 ? 64 : 1024) * 8 / p.link_rate_gbps;
        PsnModel model{.gap = packets == 1 ? 1e3 / p.qp_packet_rate_cap_mpps
                                           : std::max(1e3 / p.qp_packet_rate_cap_mpps, wire),
                       .there = p.one_way_ns + 50 + p.stored_stage_count * wire,
                       .back = p.one_way_ns + p.ack_ns,
                       .timer = w.retries.rnr_timer_ns(),
                       .repost = slow.completion_ns,
                       .packets_per_message = packets,
                       .depth = w.send_depth,
                       .receives = receives};
        model.run(0.5e9);
        SCOPED_TRACE(testing::Message() << packets << " packets, " << receives
                                        << " receives, timer " << timer << ", seed " << kSeed);
        const auto near = [](double seen_count, std::uint64_t expected, double share) {
          EXPECT_NEAR(seen_count, static_cast<double>(expected),
                      share * static_cast<double>(expected) + 3);
        };
        near(seen.received, model.messages, 0.01);
        near(static_cast<double>(seen.server.rnr_naks), model.naks, 0.01);
        near(static_cast<double>(seen.client.tx_packets), model.sent, 0.1);
        EXPECT_EQ(seen.client.rnr_naks_heard, seen.server.rnr_naks);
        EXPECT_EQ(seen.client.retries_exceeded + seen.client.rnr_retries_exceeded, 0U);
        EXPECT_EQ(seen.server.naks_sent, 0U) << "what follows is dropped without a word";
      }
    }
  }
}

// Claim:  a QP fails when it was refused once more than rnr_retry allows, and what is open on it is
//         flushed; with rnr_retry of 7 it asks without end.
// Oracle: counts by hand: rnr_retry + 1 refusals of each QP, its timer and a trip of 5 us between
//         them; all requests that were posted, but for the one that failed, are flushed.
// Method: nobody posts a receive WQE; every number of retries, both ways as well.
TEST(ReceiverNotReady, EndsInAnErrorAfterSoManyTries) {
  for (const Direction direction : {Direction::kUnidirectional, Direction::kBidirectional}) {
    for (int retries = 0; retries <= 7; ++retries) {
      HostLoad w = sends(0);
      w.qp_count = 5;
      w.send_depth = 32;
      w.direction = direction;
      w.retries.rnr_retry = retries;
      const Seen seen = run(w, 0.02);
      SCOPED_TRACE(testing::Message() << "rnr_retry " << retries);
      const std::uint64_t failed =
          seen.client.rnr_retries_exceeded + seen.server.rnr_retries_exceeded;
      if (retries == 7) {
        EXPECT_EQ(failed, 0U);
        EXPECT_NEAR(static_cast<double>(seen.server.rnr_naks), 5 * 0.02e9 / 640e3, 5);
        continue;
      }
      EXPECT_EQ(failed, 5U) << "a QP has two ends, and fails once";
      EXPECT_EQ(seen.client.flushed + seen.server.flushed, 5 * 31U);
      if (direction == Direction::kBidirectional) continue;
      EXPECT_EQ(seen.server.rnr_naks, 5 * (retries + 1U));
      EXPECT_NEAR(seen.end, retries * 645e3, 40e3) << "nothing happens afterwards";
    }
  }
}

// Claim:  a receiver that is ready again in time is not an error, and one that is late is.
// Oracle: by hand: a WQE that comes back after 2 ms is found by the 4th retry of 640 us (2.56 ms)
//         and not by the 3rd (1.92 ms).
TEST(ReceiverNotReady, IsWaitedForAsLongAsTheRetriesLast) {
  Parameters slow = cx6();
  slow.completion_ns = 2e6;
  HostLoad w = sends(1);
  w.signal_every = w.send_depth = 128;
  for (const int retries : {2, 3, 4, 6}) {
    w.retries.rnr_retry = retries;
    const Seen seen = run(w, 0.05, slow);
    const bool lives = retries >= 4;
    EXPECT_EQ(seen.client.rnr_retries_exceeded, lives ? 0U : 1U) << retries;
    EXPECT_NEAR(seen.received, lives ? 0.05e9 / (4 * 640e3) : 1, 1.5) << retries;
  }
}

// Claim:  the timers are those of the InfiniBand specification.
// Oracle: table 45 and 9.7.6.1.3, by hand.
TEST(Retries, TakeTheTimesOfTheSpecification) {
  const auto rnr_us = [](int code) { return Retries{.min_rnr_timer = code}.rnr_timer_ns() * 1e-3; };
  const double table[] = {655360, 10,    20,    30,     40,     60,     80,     120,
                          160,    240,   320,   480,    640,    960,    1280,   1920,
                          2560,   3840,  5120,  7680,   10240,  15360,  20480,  30720,
                          40960,  61440, 81920, 122880, 163840, 245760, 327680, 491520};
  for (int code = 0; code < 32; ++code) EXPECT_DOUBLE_EQ(rnr_us(code), table[code]) << code;
  EXPECT_DOUBLE_EQ(Retries{.ack_timeout = 14}.ack_timeout_ns(), 67108864);
  EXPECT_EQ(Retries{.ack_timeout = 0}.ack_timeout_ns(), kNever);
}

// Claim:  QPs live through an outage that ends before their last retry, and fail in one that is
//         longer; who fails has let its timer run out retry_count + 1 times, and all that is open
//         on it is flushed.
// Oracle: by hand: what is sent at the begin of the outage is sent again after T, 2 T, ... n T with
//         T = 4.096 us x 2^t and n = retry_count, and given up after (n + 1) T. QPs send within
//         3 us of each other.
// Method: outages just below and above n T, for five timers and counts, every operation, both
//         directions; 100 us of margin.
TEST(Outage, IsSurvivedWhenItEndsBeforeTheLastRetry) {
  for (const Operation operation :
       {Operation::kSend, Operation::kWrite, Operation::kRead, Operation::kAtomic}) {
    for (const Direction direction : {Direction::kUnidirectional, Direction::kBidirectional}) {
      for (const auto& [timeout, count] : {std::pair(14, 7), {14, 1}, {10, 3}, {18, 7}, {12, 0}}) {
        for (const bool longer : {false, true}) {
          HostLoad w = sends(512, operation == Operation::kAtomic ? 8 : 4096);
          w.operation = operation;
          w.direction = direction;
          w.qp_count = 4;
          w.send_depth = 16;
          w.retries.ack_timeout = timeout;
          w.retries.retry_count = count;
          const Time last = count * std::ldexp(4096.0, timeout);
          const Time outage = last + (longer ? 100e3 : -100e3);
          if (outage <= 0) continue;
          Engine engine(cx6(), w, Effects{}, kSeed);
          engine.run_outage(outage);
          SCOPED_TRACE(testing::Message()
                       << "timeout " << timeout << ", count " << count << ", outage of " << outage
                       << " ns, operation " << static_cast<int>(operation));
          EXPECT_EQ(engine.broken_law(), "");
          const auto both = [&](std::uint64_t NicCounters::*counter) {
            return engine.counters(0).*counter + engine.counters(1).*counter;
          };
          EXPECT_EQ(both(&NicCounters::retries_exceeded), longer ? 4U : 0U);
          EXPECT_EQ(both(&NicCounters::rnr_retries_exceeded), 0U);
          const std::uint64_t lanes = direction == Direction::kBidirectional ? 2 : 1;
          if (longer) {
            EXPECT_LE(both(&NicCounters::flushed), 4 * 15U);
            EXPECT_GE(both(&NicCounters::flushed), 4 * 13U);  // some were about to complete
            EXPECT_GE(both(&NicCounters::timeouts), 4 * (count * lanes + 1));
            EXPECT_LE(both(&NicCounters::timeouts), 4 * (count + 1) * lanes);
            EXPECT_GE(engine.now(), 100e3 + outage);
          } else {
            EXPECT_EQ(both(&NicCounters::flushed), 0U);
            EXPECT_EQ(both(&NicCounters::timeouts), 4 * count * lanes);
            EXPECT_NEAR(engine.now(), 100e3 + last, 100e3) << "alive with the last retry";
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace greynic::twin
