#include "greynic/burst/snapshot.h"

#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <map>

#include "greynic/burst/replay.h"
#include "packets.h"

namespace greynic::burst {
namespace {

FlowKey flow_number(std::uint32_t number) {
  FlowKey key{.source_port = static_cast<std::uint16_t>(1000 + number),
              .destination_port = 80,
              .protocol = 17,
              .kind = FlowKey::kIpv4Ports};
  key.source = {10, 0, 0, static_cast<std::uint8_t>(number + 1)};
  key.destination = {10, 0, 0, 200};
  return key;
}

struct Found {
  std::vector<bool> marked;
  Findings findings;
};

Found replayed(const std::vector<Arrival>& arrivals, const ReplayOptions& options) {
  Found out;
  out.marked.resize(arrivals.size());
  Replay replay(options, [&out](std::uint64_t number) { out.marked[number] = true; });
  for (const Arrival& arrival : arrivals) {
    EXPECT_TRUE(replay.add(arrival.time_ns, arrival.bytes, flow_number(arrival.flow)));
  }
  out.findings = replay.finish();
  return out;
}

// Claim:  armed at enqueue, the packets that are marked are those that took part, all and only; and
//         bursts hold their bytes, flows, senders, peak and times.
// Oracle: every packet's stay, counted again in whole numbers; bursts are runs of packets that took
//         part, parted by an empty queue.
// Method: random trains, many packets at equal times, thresholds that depths meet exactly.
TEST(Snapshot, MarksExactlyThosePacketsThatTookPart) {
  std::uint64_t bursts = 0, at_threshold = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    statistics::Random random(seed);
    const std::uint64_t rates[] = {1'000'000, 800'000'000, 10'000'000'000, 33'333'333'333};
    ReplayOptions options;
    options.allowance = {.rtt = std::chrono::nanoseconds(1 + random.below(100'000)),
                         .share_e8 = random.below(50'000'000),
                         .bits_per_second = rates[random.below(4)]};
    const auto arrivals = random_arrivals(400, options.allowance.bits_per_second, random);
    const std::uint64_t threshold = options.allowance.threshold_bytes();
    const auto truth = truth_of(arrivals, options.allowance.bits_per_second, threshold);
    const Found found = replayed(arrivals, options);
    std::vector<Burst> expected;
    bool open = false;
    for (std::size_t i = 0; i < arrivals.size(); ++i) {
      at_threshold += truth[i].depth_at_arrival == threshold ? 1 : 0;
      ASSERT_EQ(found.marked[i], truth[i].took_part) << "seed " << seed << " packet " << i;
      const bool alone = truth[i].depth_at_arrival == arrivals[i].bytes;
      if (truth[i].took_part && (!open || alone)) {
        expected.push_back({.start_ns = arrivals[i].time_ns - arrivals[0].time_ns});
      }
      open = truth[i].took_part;
      if (!open) continue;
      Burst& burst = expected.back();
      ++burst.packets;
      burst.bytes += arrivals[i].bytes;
      burst.peak_depth_bytes = std::max(burst.peak_depth_bytes, truth[i].depth_at_arrival);
      burst.end_ns = static_cast<std::uint64_t>(truth[i].leaves_ns) - arrivals[0].time_ns;
      FlowShare flow{.flow = flow_number(arrivals[i].flow)};
      const auto same = std::ranges::find(burst.flows, flow.flow, &FlowShare::flow);
      if (same == burst.flows.end()) burst.flows.push_back(flow);
      std::ranges::find(burst.flows, flow.flow, &FlowShare::flow)->bytes += arrivals[i].bytes;
    }
    ASSERT_EQ(found.findings.bursts.size(), expected.size()) << "seed " << seed;
    bursts += expected.size();
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const Burst& burst = found.findings.bursts[i];
      ASSERT_EQ(burst.start_ns, expected[i].start_ns) << "seed " << seed;
      ASSERT_NEAR(static_cast<double>(burst.end_ns), static_cast<double>(expected[i].end_ns), 1.0);
      ASSERT_EQ(burst.packets, expected[i].packets);
      ASSERT_EQ(burst.bytes, expected[i].bytes);
      ASSERT_EQ(burst.peak_depth_bytes, expected[i].peak_depth_bytes);
      ASSERT_EQ(burst.flows.size(), expected[i].flows.size());
      ASSERT_EQ(burst.incast_degree, expected[i].flows.size());
      for (const FlowShare& flow : expected[i].flows) {
        const auto same = std::ranges::find(burst.flows, flow.flow, &FlowShare::flow);
        ASSERT_TRUE(same != burst.flows.end());
        ASSERT_EQ(same->bytes, flow.bytes);
      }
    }
  }
  EXPECT_GT(bursts, 1000U);
  EXPECT_GT(at_threshold, 0U);
}

// Claim:  a depth that equals the threshold is not over it, one byte more is; a packet alone can be.
TEST(Snapshot, TellsAtTheThresholdFromOver) {
  // 30 % of 50 us at 10 Gbit/s are 18750 bytes: floating point says 18749.999...
  ReplayOptions options;
  ASSERT_EQ(options.allowance.threshold_bytes(), 18750U);
  EXPECT_EQ(replayed({{0, 18750, 1}}, options).findings.packets_marked, 0U);
  EXPECT_EQ(replayed({{0, 18751, 1}}, options).findings.packets_marked, 1U);
  EXPECT_EQ(replayed({{7, 9375, 1}, {7, 9375, 2}}, options).findings.packets_marked, 0U);
  EXPECT_EQ(replayed({{7, 9375, 1}, {7, 9376, 2}}, options).findings.packets_marked, 2U);
  // 1250 bytes take 1000 ns: the packet is gone when the next one arrives, not a nanosecond before.
  options.allowance.share_e8 = 5'000'000;
  options.allowance.rtt = std::chrono::microseconds(20);  // 1250 bytes
  EXPECT_EQ(replayed({{0, 1250, 1}, {1000, 1250, 2}}, options).findings.packets_marked, 0U);
  EXPECT_EQ(replayed({{0, 1250, 1}, {999, 1250, 2}}, options).findings.packets_marked, 2U);
}

// Claim:  a time before the one before it counts as equal to that, and is counted.
TEST(Snapshot, TakesTimesThatRunBackForEqual) {
  const auto back = replayed({{5000, 9000, 1}, {4000, 9751, 2}, {5000, 64, 3}}, {});
  EXPECT_EQ(back.findings.clock_ran_back, 1U);
  EXPECT_EQ(back.findings.packets_marked, 3U);
  ASSERT_EQ(back.findings.bursts.size(), 1U);
  EXPECT_EQ(back.findings.bursts[0].start_ns, 0U);
}

// Claim:  dequeue-only is the switch's rule: over the threshold after a packet left, that packet and
//         what then waits is marked, nothing else; it marks no packet that did not take part.
// Oracle: the rule by packets instead of by bytes: at each departure over the threshold, everyone
//         that waits then is put into a set.
TEST(Snapshot, DequeueOnlyMarksWhatWaitsWhenAPacketLeavesADeepQueue) {
  std::uint64_t missed = 0, all = 0;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    statistics::Random random(seed);
    std::array<QueueState, 1> queues{};
    std::array<CourierRecord, 4> ring;
    Snapshot snapshot(queues, ring, Mode::kDequeueOnly);
    queues[0].threshold_bytes = 4000;
    std::deque<std::pair<std::uint32_t, int>> waiting;
    std::map<int, bool> expected, took_part;
    std::uint64_t depth = 0;
    for (int number = 0, step = 0; step < 2000; ++step) {
      if (random.below(2) == 0 || waiting.empty()) {
        const std::uint32_t bytes = 60 + random.below(1440);
        depth += bytes;
        waiting.emplace_back(bytes, number++);
        snapshot.on_enqueue(0, bytes, depth, static_cast<std::uint64_t>(step));
        if (depth > 4000) {
          for (const auto& [_, who] : waiting) took_part[who] = true;
        }
        continue;
      }
      const auto [bytes, who] = waiting.front();
      waiting.pop_front();
      depth -= bytes;
      if (depth > 4000) {
        expected[who] = true;
        for (const auto& [_, stays] : waiting) expected[stays] = true;
      }
      const bool marked = snapshot.on_dequeue(0, bytes, depth, static_cast<std::uint64_t>(step));
      ASSERT_EQ(marked, expected[who]) << "seed " << seed << " packet " << who;
      ASSERT_LE(marked, took_part[who]);
      missed += took_part[who] && !marked ? 1 : 0;
      all += took_part[who] ? 1 : 0;
    }
  }
  EXPECT_GT(missed, 0U);
  EXPECT_LT(missed, all);
}

// Claim:  a queue that loses packets unseen (a reset) marks no packet that came after.
TEST(Snapshot, ForgetsWhatAResetQueueNoLongerHolds) {
  std::array<QueueState, 1> queues{};
  std::array<CourierRecord, 4> ring;
  Snapshot snapshot(queues, ring);
  queues[0].threshold_bytes = 1000;
  EXPECT_TRUE(snapshot.on_enqueue(0, 1500, 1500, 1));
  EXPECT_FALSE(snapshot.on_enqueue(0, 100, 100, 2));
  EXPECT_FALSE(snapshot.on_dequeue(0, 100, 0, 3));
  // A time that runs back is counted.
  EXPECT_FALSE(snapshot.on_enqueue(0, 100, 100, 1));
  EXPECT_EQ(queues[0].clock_ran_back, 1U);
}

// Claim:  a ring that overflows counts what it loses exactly; what it kept comes out whole.
TEST(Snapshot, CountsLostRecordsExactly) {
  for (const std::size_t size : {1U, 7U, 300U}) {
    std::array<QueueState, 2> queues{};
    std::vector<CourierRecord> storage(size);
    Snapshot snapshot(queues, storage);
    statistics::Random random(size);
    std::uint64_t kept = 0, lost = 0, out = 0;
    std::deque<std::uint64_t> expected;
    for (std::uint64_t i = 0; i < 5000; ++i) {
      if (random.below(3) != 0) {
        const bool fits = expected.size() < size;
        EXPECT_EQ(snapshot.keep(1, flow_number(i % 200), 100 + i, i, 2 * i, 3 * i, i), fits);
        if (fits) expected.push_back(i);
        ++(fits ? kept : lost);
        continue;
      }
      CourierRecord record;
      ASSERT_EQ(snapshot.ring().pop(record), !expected.empty());
      if (expected.empty()) continue;
      const std::uint64_t number = expected.front();
      expected.pop_front();
      ++out;
      ASSERT_EQ(record.enqueued_ns(), number);
      ASSERT_EQ(record.dequeued_ns, 2 * number);
      ASSERT_EQ(record.bytes(), 100 + number);
      ASSERT_EQ(record.depth_at_enqueue, 3 * number);
      ASSERT_EQ(record.flow, flow_number(number % 200));
    }
    EXPECT_EQ(snapshot.ring().lost(), lost);
    EXPECT_EQ(kept, out + snapshot.ring().size());
  }
}

// Claim:  a mirror port too slow for its ring loses records, and lost and analysed ones are all.
TEST(Snapshot, LosesOnlyRecordsToASlowMirror) {
  statistics::Random random(3);
  const auto arrivals = random_arrivals(3000, 10'000'000'000, random);
  ReplayOptions options;
  options.allowance.share_e8 = 5'000'000;
  const Found whole = replayed(arrivals, options);
  options.ring_records = 8;
  options.mirror_bits_per_second = 500'000'000;
  const Found slow = replayed(arrivals, options);
  EXPECT_EQ(slow.marked, whole.marked);
  EXPECT_GT(slow.findings.records_lost, 0U);
  std::uint64_t analysed = 0;
  for (const Burst& burst : slow.findings.bursts) analysed += burst.packets;
  EXPECT_EQ(analysed + slow.findings.records_lost, slow.findings.packets_marked);
  EXPECT_EQ(whole.findings.records_lost, 0U);
}

// Claim:  29 bytes carry what the 64 do: times to 48 bits, depths rounded up to cells of 80 bytes.
TEST(Snapshot, PacksARecordInto29Bytes) {
  std::array<QueueState, 1> queues{};
  std::array<CourierRecord, 1> ring;
  Snapshot snapshot(queues, ring);
  snapshot.keep(0, flow_number(4), 1500, 0x123456789abcULL, 0x123456789fffULL, 18751, 0);
  CourierRecord record;
  ASSERT_TRUE(snapshot.ring().pop(record));
  std::array<std::uint8_t, kPackedBytes> packed{};
  pack(record, packed);
  const std::array<std::uint8_t, kPackedBytes> expected = {
      10,   0,    0,    5,    10,   0,    0,    200,  0x03, 0xec, 0, 80,  17, 0x12, 0x34,
      0x56, 0x78, 0x9a, 0xbc, 0x12, 0x34, 0x56, 0x78, 0x9f, 0xff, 0, 235, 0,  0};
  EXPECT_EQ(packed, expected);
}

// Claim:  who kept the queue from draining before the burst, and who suffered, are told apart.
// Method: A fills the queue to the threshold and is gone when B's burst comes; C sends one packet.
TEST(Analyser, NamesIndirectCulpritsAndVictims) {
  ReplayOptions options;
  options.allowance.share_e8 = 5'000'000;
  options.allowance.rtt = std::chrono::microseconds(100);        // 6250 bytes
  std::vector<Arrival> arrivals = {{0, 3000, 0}, {0, 3000, 0}};  // A leaves at 2400 and 4800 ns
  arrivals.push_back({4700, 900, 1});                            // keeps the queue busy until 5520
  arrivals.push_back({5500, 1500, 1});
  for (int i = 0; i < 6; ++i) arrivals.push_back({5700, 1500, 1});
  arrivals.push_back({5700, 64, 2});
  const Found found = replayed(arrivals, options);
  ASSERT_EQ(found.findings.bursts.size(), 1U);
  const Burst& burst = found.findings.bursts[0];
  ASSERT_EQ(burst.flows.size(), 2U);
  EXPECT_EQ(burst.flows[0].flow, flow_number(1));
  ASSERT_EQ(burst.victims, 1U);
  EXPECT_EQ(burst.victim_flows()[0].flow, flow_number(2));
  ASSERT_EQ(burst.indirect.size(), 2U);
  EXPECT_EQ(burst.indirect[0].flow, flow_number(0));
  EXPECT_EQ(burst.indirect[0].bytes, 6000U);
  EXPECT_EQ(burst.start_ns, 5500U);
}

// Claim:  bursts of two queues are joined when they share a culprit and overlap in time, else not.
TEST(Analyser, RelatesBurstsAlongAPath) {
  const auto burst = [](std::uint32_t queue, std::uint64_t start, std::uint32_t flow) {
    return Burst{.queue = queue,
                 .start_ns = start,
                 .end_ns = start + 100,
                 .flows = {{.flow = flow_number(flow), .bytes = 10}}};
  };
  std::vector<Burst> all = {burst(0, 1000, 1), burst(1, 1050, 1), burst(1, 1060, 2),
                            burst(0, 5000, 1), burst(0, 1080, 1)};
  relate(all, 0);
  EXPECT_EQ(all[0].related, std::vector<std::size_t>({1}));
  EXPECT_EQ(all[1].related, std::vector<std::size_t>({0, 4}));
  EXPECT_TRUE(all[2].related.empty());
  EXPECT_TRUE(all[3].related.empty());
}

// Claim:  rates and shares carry units, in the ranges that the help names.
TEST(Threshold, ReadsRatesAndSharesWithUnits) {
  EXPECT_EQ(*parse_rate("10gbps"), 10'000'000'000U);
  EXPECT_EQ(*parse_rate("1.6 Tbps"), 1'600'000'000'000U);
  EXPECT_EQ(*parse_rate("64kbps"), 64'000U);
  EXPECT_EQ(*parse_rate("2.5Gbit/s"), 2'500'000'000U);
  for (const char* bad : {"10", "0gbps", "-1gbps", "gbps", "nangbps", "1001tbps", "10gbpss", ""}) {
    EXPECT_FALSE(parse_rate(bad)) << bad;
  }
  EXPECT_EQ(*parse_allowed("5%"), 5'000'000U);
  EXPECT_EQ(*parse_allowed("0.1 %"), 100'000U);
  for (const char* bad : {"5", "0.05", "-1%", "10001%", "%", ""}) {
    EXPECT_FALSE(parse_allowed(bad)) << bad;
  }
}

}  // namespace
}  // namespace greynic::burst
