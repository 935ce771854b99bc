#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "engine/engine.h"
#include "stages/cache.h"
#include "stages/unit_queue.h"

namespace greynic::twin {
namespace {

constexpr std::uint64_t kSeed = 20261121;

std::size_t heap_bytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

HostLoad scalacn(std::uint32_t qps) {
  HostLoad w;
  w.qp_count = qps;
  w.message_bytes = {8388608};
  w.send_depth = 4;
  w.walk(Hop::kServerDecap).groups = 20;
  return w;
}

// Claim:  a QP that does nothing holds less than 1 KiB.
// Oracle: the allocator's own account of the heap.
// Method: the heap of 101,000 QPs less that of 1,000, both with queues of 128 and more QPs than
//         any cache holds, before a packet was sent.
TEST(TwinScale, HoldsLessThanAKibibyteForAnIdleQp) {
  const Parameters parameters = load_model("cx6", "")->parameters;
  const auto held = [&](std::uint32_t qps) {
    HostLoad w = scalacn(qps);
    w.send_depth = 128;
    w.transport = Transport::kRC;
    const std::size_t before = heap_bytes();
    Engine engine(parameters, w, Effects{}, kSeed);
    RunLimits limits;
    limits.duration = 0;
    (void)engine.run_bandwidth(limits);
    EXPECT_EQ(engine.data_packets(), 0U);
    return heap_bytes() - before;
  };
  const double per_qp = (static_cast<double>(held(101000)) - static_cast<double>(held(1000))) / 1e5;
  RecordProperty("bytes_per_idle_qp", std::to_string(per_qp));
  EXPECT_LT(per_qp, 1024) << "bytes";
  EXPECT_GE(per_qp, 64) << "a QP cannot be free";
}

// Claim:  a flow that does nothing holds less than 256 bytes.
// Oracle: the allocator's own account of the heap.
// Method: the heap with 2,000,000 flows less that with 100,000, both more than any cache holds.
TEST(TwinScale, HoldsLessThan256BytesForAnIdleFlow) {
  const Parameters parameters = load_model("cx6", "")->parameters;
  const auto held = [&](std::uint64_t flows) {
    HostLoad w = scalacn(4);
    w.flow_count = flows;
    const std::size_t before = heap_bytes();
    Engine engine(parameters, w, Effects{}, kSeed);
    RunLimits limits;
    limits.duration = 0;
    (void)engine.run_bandwidth(limits);
    return heap_bytes() - before;
  };
  const double per_flow =
      (static_cast<double>(held(2000000)) - static_cast<double>(held(100000))) / 1.9e6;
  RecordProperty("bytes_per_idle_flow", std::to_string(per_flow));
  EXPECT_LT(per_flow, 256) << "bytes";
  EXPECT_GT(per_flow, 0) << "a flow cannot be free";
}

// Claim:  a cache keeps what came in and was not thrown out, by bits and by table alike.
// Oracle: a std::set and a std::vector of slots, driven by the same random numbers.
// Method: 20,000 touches of skewed ids; ids below 2^23 are kept as bits, those above in a table.
TEST(TwinCache, BehavesAsASetWithRandomVictims) {
  for (const std::uint64_t bound : {std::uint64_t{5000}, std::uint64_t{1} << 40}) {
    constexpr std::uint64_t kCapacity = 300;
    Cache cache(kCapacity, 5000, bound, kSeed);
    statistics::QuickRandom victims(kSeed);
    statistics::Random ids(kSeed + 1);
    std::set<std::uint64_t> kept;
    std::vector<std::uint64_t> slots;
    for (int i = 0; i < 20000; ++i) {
      const double u = ids.uniform();
      const auto id = static_cast<std::uint64_t>(u * u * static_cast<double>(bound));
      const bool hit = kept.contains(id);
      if (!hit && slots.size() < kCapacity) {
        slots.push_back(id);
      } else if (!hit) {
        std::uint64_t& victim = slots[victims.below(kCapacity)];
        kept.erase(victim);
        victim = id;
      }
      kept.insert(id);
      ASSERT_EQ(cache.contains(id), hit) << "touch " << i << ", seed " << kSeed;
      ASSERT_EQ(cache.touch(id), hit);
    }
    EXPECT_EQ(kept.size(), kCapacity);
  }
}

// Claim:  the queue of units gives them out by time, of equal times by RNIC and number.
// Oracle: an ordered set of pairs.
// Method: random pushes and pops, times out of few values, so that ties are common.
TEST(TwinUnitQueue, GivesUnitsOutByTime) {
  statistics::Random random(kSeed);
  for (const auto& [nics, units] : {std::pair(1U, 1U), {1U, 16U}, {2U, 5U}, {3U, 1U}, {9U, 33U}}) {
    UnitQueue queue(nics, units);
    std::set<std::pair<Time, std::uint32_t>> expected;  // nic x units + index
    std::vector<std::uint32_t> idle(std::size_t{nics} * units);
    std::iota(idle.begin(), idle.end(), 0U);
    for (int i = 0; i < 5000; ++i) {
      if (!idle.empty() && random.below(2) == 0) {
        std::swap(idle[random.below(static_cast<std::uint32_t>(idle.size()))], idle.back());
        const Time time = random.below(8);
        queue.push({idle.back() / units, idle.back() % units}, time);
        expected.emplace(time, idle.back());
        idle.pop_back();
      } else if (!expected.empty()) {
        const UnitQueue::Unit first = queue.first();
        ASSERT_EQ(first.nic * units + first.index, expected.begin()->second) << "seed " << kSeed;
        idle.push_back(expected.begin()->second);
        expected.erase(expected.begin());
        queue.pop();
      }
      ASSERT_EQ(queue.time(), expected.empty() ? kNever : expected.begin()->first);
    }
  }
}

}  // namespace
}  // namespace greynic::twin
