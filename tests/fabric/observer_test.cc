#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>

#include "perftest_program.h"

/// What an observer is told of a queue, held against a recount from its own packet log.

namespace greynic::twin {
namespace {

struct Log : PortObserver {
  std::vector<PacketRecord> records;
  void on_packet(const PacketRecord& record) override { records.push_back(record); }
};

/// Bytes that were in the queue when a packet joined it, its own among them.
std::uint64_t recount_at_enqueue(const std::vector<PacketRecord>& all, std::size_t own) {
  std::uint64_t bytes = all[own].bytes;
  for (std::size_t i = own; i-- > 0 && all[i].dequeued > all[own].enqueued;) bytes += all[i].bytes;
  return bytes;
}
/// Bytes that stayed when it left.
std::uint64_t recount_at_dequeue(const std::vector<PacketRecord>& all, std::size_t own) {
  std::uint64_t bytes = 0;
  for (std::size_t i = own + 1; i < all.size() && all[i].enqueued < all[own].dequeued; ++i) {
    bytes += all[i].bytes;
  }
  return bytes;
}

// Claim:  depth and times are those of the queue, byte for byte, at host and switch, with PFC and
//         without, on one switch and on a leaf-spine; and packets leave in order, one at a time.
// Oracle: every packet's enqueue and dequeue time, counted again.
TEST(Observers, SeeTheDepthThatARecountGives) {
  for (const bool pfc : {true, false}) {
    for (const std::uint32_t hosts_per_leaf : {0U, 2U}) {
      FabricSpec spec;
      spec.host_count = 6;
      spec.hosts_per_leaf = hosts_per_leaf;
      spec.pfc = pfc;
      spec.bytes = FabricSpec::Bytes::kCounted;
      auto fabric = std::move(*Fabric::create(spec));
      std::map<std::size_t, Log> logs;
      const auto ports = fabric->ports();
      for (std::size_t i = 0; i < ports.size(); ++i) {
        ASSERT_TRUE(fabric->observe(ports[i], &logs[i]));
      }
      // All write to host 0.
      std::vector<std::unique_ptr<PerftestEnd>> ends;
      for (HostId host = 1; host < 6; ++host) {
        PerftestLoad load{.qp_count = 2, .send_depth = 4, .message_bytes = 20000};
        ends.push_back(std::make_unique<PerftestEnd>(*fabric, host, load, true, host));
        ends.push_back(std::make_unique<PerftestEnd>(*fabric, 0, load, false, host + 10));
        PerftestEnd& a = *ends[ends.size() - 2];
        PerftestEnd& b = *ends[ends.size() - 1];
        a.meet(b);
        for (std::size_t i = 0; i < 2; ++i) {
          ASSERT_TRUE(fabric->connect(a.qps[i], host, b.qps[i], 0));
        }
        a.start();
      }
      fabric->run_until(150e3);
      std::size_t seen = 0, deep = 0;
      for (auto& [index, log] : logs) {
        for (std::size_t i = 0; i < log.records.size(); ++i) {
          const PacketRecord& r = log.records[i];
          ASSERT_EQ(r.port, ports[index]);
          ASSERT_LE(r.enqueued, r.dequeued);
          if (i > 0) {
            ASSERT_LE(log.records[i - 1].enqueued, r.enqueued);
            ASSERT_LE(log.records[i - 1].dequeued, r.dequeued);
          }
          // Whoever had not left by then comes within the run, or the recount would not know it.
          if (r.dequeued > 20e3) continue;
          ASSERT_EQ(r.depth_at_enqueue, recount_at_enqueue(log.records, i)) << i;
          ASSERT_EQ(r.depth_at_dequeue, recount_at_dequeue(log.records, i)) << i;
          ++seen;
          deep += r.depth_at_enqueue > 5 * r.bytes;
        }
      }
      EXPECT_GT(seen, 1000U);
      EXPECT_GT(deep, 200U);
    }
  }
}

// Claim:  an observer changes nothing.
TEST(Observers, ChangeNothing) {
  std::array<std::uint64_t, 2> done{};
  for (const bool observed : {false, true}) {
    FabricSpec spec;
    spec.bytes = FabricSpec::Bytes::kCounted;
    auto fabric = std::move(*Fabric::create(spec));
    Log log;
    if (observed) {
      for (const PortId& port : fabric->ports()) ASSERT_TRUE(fabric->observe(port, &log));
    }
    PerftestLoad load{.qp_count = 3, .message_bytes = 5000};
    PerftestEnd a(*fabric, 0, load, true, 1), b(*fabric, 1, load, false, 2);
    a.meet(b);
    for (std::size_t i = 0; i < 3; ++i) ASSERT_TRUE(fabric->connect(a.qps[i], 0, b.qps[i], 1));
    a.start();
    fabric->run_until(100e3);
    done[observed ? 1 : 0] = a.done;
    EXPECT_EQ(log.records.empty(), !observed);
  }
  EXPECT_EQ(done[0], done[1]);
}

}  // namespace
}  // namespace greynic::twin
