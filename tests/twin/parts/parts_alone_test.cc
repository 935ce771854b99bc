#include <gtest/gtest.h>

#include "parts/answers.h"
#include "parts/congestion.h"
#include "parts/host_memory.h"
#include "parts/path.h"
#include "parts/receives.h"
#include "parts/recovery.h"

/// Each part by itself, with no engine around it: a world, its neighbours, and times by hand.

namespace greynic::twin {
namespace {

/// Streams from the client to the server, one for each QP, that send four packets a message.
struct Bench {
  World world;
  Path path;
  Receives receives{world};
  Recovery recovery{world, path, receives};
  Answers answers{world, path, recovery};
  Congestion congestion{world, path};

  explicit Bench(const HostLoad& load) : world(load_model("cx6", "")->parameters, load, {}, 7) {
    world.lanes = 1;
    world.lane_bits = 0;
    world.messages = MessageCycle(world.p, world.load, world.pcie, false);
    world.streams.resize(load.qp_count);
    receives.lay_out();
    path.lay_out(world);
    recovery.lay_out();
    congestion.lay_out();
  }
  /// The stream sends its next packet; returns what becomes of it.
  Fate send(std::uint32_t stream, Time t) {
    Stream& s = world.streams[stream];
    if (s.packets_left == 0) s.packets_left = world.messages[s.sent].packets;
    const Fate fate = recovery.fate_of_packet(stream, t);
    if (--s.packets_left == 0) ++s.sent;
    return fate;
  }
  [[nodiscard]] NicCounters& client() { return world.nics[0].counters; }
};

HostLoad four_packets() {
  HostLoad load;
  load.message_bytes = {4096};
  return load;
}

// Claim:  a receive queue gives out as many WQEs as it has, and one that is posted again is there
//         when its thread is done, not before.
// Oracle: counts, and the two times that posting takes.
TEST(Receives, AreGivenOutOnceAndComeBack) {
  HostLoad load = four_packets();
  load.receive_depth = 3;
  Bench bench(load);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(bench.receives.take(0, 0)) << i;
  EXPECT_FALSE(bench.receives.take(0, 0));
  bench.receives.put_back(0, 100);
  const Time there = 100 + bench.world.p.pcie_post_ns + bench.world.p.completion_ns;
  EXPECT_FALSE(bench.receives.take(0, there - 1));
  EXPECT_TRUE(bench.receives.take(0, there));
  EXPECT_FALSE(bench.receives.take(0, there));
}

// Claim:  RC goes back to the packet that was lost, once for each gap.
// Oracle: the numbers of the packets: the first of four is lost and the second follows it, so the
//         stream has four left again, and two were sent in vain.
TEST(Recovery, GoesBackToTheLostPacket) {
  HostLoad load = four_packets();
  load.loss = 1;
  Bench bench(load);
  EXPECT_EQ(bench.send(0, 0), Fate::kCorrupted);
  EXPECT_EQ(bench.world.events.next_time(), load.retries.ack_timeout_ns());
  bench.world.load.loss = 0;
  EXPECT_EQ(bench.send(0, 10), Fate::kOutOfSequence);
  EXPECT_TRUE(bench.recovery.go_back(0, 0, /*timed_out=*/true));
  EXPECT_EQ(bench.world.streams[0].packets_left, 4U);
  EXPECT_EQ(bench.world.streams[0].sent, 0U);
  EXPECT_EQ(bench.client().retransmitted_packets, 2U);
  EXPECT_EQ(bench.client().timeouts, 1U);
  EXPECT_FALSE(bench.recovery.go_back(0, 0, true)) << "the gap is closed";
  EXPECT_EQ(bench.send(0, 20), Fate::kAnnounced);
}

// Claim:  a QP whose packet was sent retry_count times more in vain fails, and rests for good.
// Oracle: the count of tries.
TEST(Recovery, FailsAQpThatHasTriedOftenEnough) {
  HostLoad load = four_packets();
  load.loss = 1;
  load.retries.retry_count = 2;
  Bench bench(load);
  bench.world.streams[0].posted = 5;
  for (std::uint32_t gap = 0; gap < 2; ++gap) {
    EXPECT_EQ(bench.send(0, gap), Fate::kCorrupted);
    EXPECT_TRUE(bench.recovery.go_back(0, gap, true));
  }
  EXPECT_EQ(bench.send(0, 2), Fate::kCorrupted);
  EXPECT_FALSE(bench.recovery.go_back(0, 2, true));
  EXPECT_EQ(bench.client().retries_exceeded, 1U);
  EXPECT_EQ(bench.client().flushed, 4U);
  EXPECT_TRUE(bench.world.streams[0].resting);
  EXPECT_FALSE(bench.recovery.rested(0));
}

// Claim:  UC loses the message of a packet that is lost, and nothing else.
// Oracle: the message, whole or not.
TEST(Recovery, LosesTheMessageOverUc) {
  HostLoad load = four_packets();
  load.transport = Transport::kUC;
  load.loss = 1;
  Bench bench(load);
  (void)bench.send(0, 0);
  bench.world.load.loss = 0;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(bench.send(0, 1), Fate::kOutOfSequence);
  EXPECT_FALSE(bench.recovery.message_survives(0));
  EXPECT_EQ(bench.world.moved.messages_lost, 1U);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(bench.send(0, 2), Fate::kWritten);
  EXPECT_TRUE(bench.recovery.message_survives(0));
}

// Claim:  an acknowledgement speaks for those before it that were lost.
// Oracle: counts of messages: two answers are lost, the third completes three requests.
TEST(Answers, SpeakForTheLostOnesBeforeThem) {
  HostLoad load = four_packets();
  load.loss = 1;
  Bench bench(load);
  bench.answers.acknowledge(0, 1, 0);
  bench.answers.acknowledge(0, 1, 100);
  EXPECT_EQ(bench.recovery[0].unacknowledged, 2U);
  bench.world.load.loss = 1e-300;
  bench.answers.acknowledge(0, 1, 200);
  EXPECT_EQ(bench.recovery[0].unacknowledged, 0U);
  const Event completed = bench.world.events.pop();
  EXPECT_EQ(completed.kind, event::kCompleted);
  EXPECT_EQ(completed.count, 3U);
}

// Claim:  as many reads of host memory are under way as there are credits; the next one waits.
// Oracle: the latency of a read.
TEST(HostMemory, BoundsItsReads) {
  Bench bench(four_packets());
  HostMemory memory(bench.world);
  memory.lay_out();
  Nic& nic = bench.world.nics[0];
  const auto slots = static_cast<int>(bench.world.p.pcie_read_slot_count);
  for (int i = 0; i < slots; ++i) EXPECT_EQ(memory.begin_read(nic, 0), 0.0);
  EXPECT_EQ(memory.begin_read(nic, 0), bench.world.p.pcie_read_latency_ns);
  EXPECT_EQ(nic.counters.pcie_back_pressure, bench.world.p.pcie_read_latency_ns);
}

// Claim:  a stream that was told of congestion is held back until its rate allows it, once; others
//         are not.
// Oracle: half the line rate after the first notification (DCQCN: alpha begins at 1).
TEST(Congestion, HoldsBackWhoWasTold) {
  HostLoad load = four_packets();
  load.qp_count = 2;
  load.server_link_gbps = 50;
  load.dcqcn = true;
  Bench bench(load);
  const Time wire_ns = 100;
  bench.congestion.notified(0, 0);
  bench.congestion.sent(0, wire_ns, 0, 1000);
  bench.congestion.sent(1, wire_ns, 0, 1000);
  EXPECT_TRUE(bench.congestion.hold_back(0, wire_ns));
  EXPECT_TRUE(bench.congestion.hold_back(0, wire_ns));
  EXPECT_FALSE(bench.congestion.hold_back(1, wire_ns));
  const Event released = bench.world.events.pop();
  EXPECT_EQ(released.kind, event::kReleased);
  EXPECT_DOUBLE_EQ(released.time, 2 * wire_ns);
  EXPECT_TRUE(bench.world.events.empty());
  bench.congestion.released(0);
  EXPECT_FALSE(bench.congestion.hold_back(0, released.time));
}

}  // namespace
}  // namespace greynic::twin
