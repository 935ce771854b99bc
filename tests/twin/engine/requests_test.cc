#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "engine_run.h"
#include "target/counters.h"

namespace greynic::twin {
namespace {

constexpr std::uint64_t kSeed = 4711;

EngineRun run(const HostLoad& w, std::uint64_t packets = 50000, const Parameters& p = cx6()) {
  return run_engine(w, counting(packets), kSeed, p);
}

HostLoad small(Operation operation, std::uint32_t qps = 1) {
  HostLoad w;
  w.operation = operation;
  w.qp_count = qps;
  w.message_bytes = {64};
  return w;
}

double number(std::uint64_t count) { return static_cast<double>(count); }

// Claim:  a request on an idle QP comes with its doorbell (BlueFlame); a batch rings once, and is
//         read in blocks of four WQEs.
// Oracle: counts by hand: one slot a QP keeps it idle between requests; batches of 8 take two
//         reads.
TEST(Requests, ComeWithTheDoorbellOrAreRead) {
  HostLoad w = small(Operation::kWrite, 4);
  w.send_depth = 1;
  const EngineRun idle = run(w);
  EXPECT_EQ(idle.client.blueflame_doorbells, idle.client.posted);
  EXPECT_EQ(idle.client.doorbells, idle.client.posted);
  EXPECT_EQ(idle.client.wqe_reads, 0U);

  w.send_depth = 128;
  w.post_batch = w.signal_every = 8;
  const EngineRun batches = run(w);
  EXPECT_EQ(batches.client.doorbells, batches.client.posted / 8);
  EXPECT_EQ(batches.client.blueflame_doorbells, 0U);
  EXPECT_NEAR(number(batches.client.wqe_reads), 2 * number(batches.client.doorbells), 128);
}

// Claim:  payload in the WQE (inline) saves its read: no payload read, and half a round trip less
//         by the time that one takes.
// Oracle: pcie_read_latency_ns, and the jitter of 20 ns that a read has in the mean.
TEST(Requests, InlinePayloadSavesItsRead) {
  HostLoad w = small(Operation::kWrite);
  const auto half_trip = [&](std::uint32_t bytes) {
    w.inline_bytes = bytes;
    Engine engine(cx6(), w, Effects{}, kSeed);
    const double mean = engine.run_latency(RunLimits{}, 3000).mean_ns;
    EXPECT_EQ(engine.counters(0).payload_reads > 0, bytes == 0);
    return mean;
  };
  EXPECT_NEAR(half_trip(0) - half_trip(64), cx6().pcie_read_latency_ns + 20, 15);
}

// Claim:  one completion is written for each signal_every requests.
// Oracle: division.
TEST(Requests, AreCompletedAsOftenAsSignalled) {
  for (const std::uint32_t every : {1U, 4U, 100U}) {
    HostLoad w = small(Operation::kWrite);
    w.signal_every = every;
    const EngineRun seen = run(w);
    EXPECT_NEAR(number(seen.client.completions) * every, number(seen.server.write_requests),
                128 + every);
  }
}

// Claim:  SENDs that find no receive WQE are refused and come again over RC, where none is lost;
//         over UC and UD they are lost, and counted out_of_buffer.
// Oracle: books: messages received are WQEs used, and losses are what was sent beyond them.
TEST(Requests, WithoutReceiveAreRefusedOrLost) {
  HostLoad w = small(Operation::kSend);  // one QP: messages come faster than a WQE is put back
  w.receive_depth = 1;
  const EngineRun reliable = run(w, 2000);
  EXPECT_GT(reliable.server.rnr_naks, 100U);
  EXPECT_EQ(reliable.result.loss_share, 0);
  EXPECT_GE(reliable.client.retransmitted_packets, reliable.server.rnr_naks);
  for (const Transport transport : {Transport::kUC, Transport::kUD}) {
    w.transport = transport;
    const EngineRun lossy = run(w, 20000);
    EXPECT_EQ(lossy.server.rnr_naks, 0U);
    EXPECT_GT(lossy.server.out_of_buffer, 0U);
    const double judged = number(lossy.server.send_messages + lossy.server.out_of_buffer);
    EXPECT_NEAR(lossy.result.loss_share, number(lossy.server.out_of_buffer) / judged, 1e-9);
  }
  w.transport = Transport::kRC;
  w.receive_depth = 512;
  EXPECT_EQ(run(w, 2000).server.rnr_naks, 0U);
}

// Claim:  QPs on a shared receive queue live on one pool: it runs dry where queues of their own do
//         not, and does not when it holds what can be under way.
// Oracle: 16 QPs of depth 4 have at most 64 messages under way, 4 each.
TEST(Requests, ShareAReceiveQueue) {
  HostLoad w = small(Operation::kSend, 16);
  w.thread_count = 16;
  w.send_depth = 4;
  const auto refused = [&](bool shared, std::uint32_t depth) {
    w.shared_receive_queue = shared;
    w.receive_depth = depth;
    return run(w, 20000).server.rnr_naks;
  };
  EXPECT_EQ(refused(false, 8), 0U);
  EXPECT_GT(refused(true, 8), 0U);
  EXPECT_EQ(refused(true, 128), 0U);
}

// Claim:  atomics are carried out one after another by the responder, whatever the number of QPs.
// Oracle: atomic_rate_mops.
TEST(Requests, AtomicsGoOneByOne) {
  HostLoad w = small(Operation::kAtomic, 64);
  w.thread_count = 16;
  w.message_bytes = {8};
  const Parameters p = cx6();
  const EngineRun seen = run(w, 100000);
  EXPECT_NEAR(seen.result.messages_per_second * 1e-6, p.atomic_rate_mops,
              0.01 * p.atomic_rate_mops);
  EXPECT_EQ(seen.server.read_requests, 0U);
}

// Claim:  QP contexts beyond the cache miss as often as random replacement lets them, and slow the
//         QPs down; those that fit never miss.
// Oracle: a ring of N QPs over C entries hits h = exp(-N (1 - h) / C) of the time.
TEST(Caches, ContextsMissBeyondTheirNumber) {
  const Parameters p = cx6();
  HostLoad w = small(Operation::kWrite, 1500);
  w.send_depth = 4;
  w.thread_count = 16;
  const EngineRun fits = run(w, 200000);
  EXPECT_EQ(fits.client.context_misses + fits.server.context_misses, 0U);
  w.qp_count = 6000;
  const EngineRun beyond = run(w, 400000);
  EXPECT_LT(beyond.result.messages_per_second, 0.95 * fits.result.messages_per_second);
  const double ratio = 6000 / p.context_entry_count;
  double hit = 0;
  for (int i = 0; i < 100; ++i) hit = std::exp(-ratio * (1 - hit));
  // A message finds its context as it came in for the one before, in the same turn, or not at all.
  const double misses = number(beyond.server.context_misses);
  EXPECT_LT(misses / number(beyond.result.packets), 1 - hit + 0.02);
  EXPECT_GT(misses / number(beyond.result.packets), (1 - hit) / 4 - 0.02);
}

// Claim:  translations of pages beyond the cache are read again, by the share that does not fit.
// Oracle: pages are touched at random: a share 1 - entries / pages of touches misses.
TEST(Caches, TranslationsMissByTheShareThatDoesNotFit) {
  Parameters p = cx6();
  p.mtt_entry_count = 1000;
  HostLoad w = small(Operation::kWrite, 16);
  for (const double pages : {1000.0, 2000.0, 8000.0}) {
    w.mr_bytes = static_cast<std::uint64_t>(pages) * w.page_bytes;
    const EngineRun seen = run(w, 200000, p);
    const double misses = number(seen.client.translation_misses) / number(seen.client.posted);
    EXPECT_NEAR(misses, 1 - 1000 / pages, 0.02) << pages;
  }
}

// Claim:  WQEs that are posted far ahead leave the chip before they are worked on, and are read
//         again; few outstanding ones never do.
// Oracle: wqe_cache_entry_count on either side of what is outstanding.
TEST(Caches, WqesLeaveTheChipWhenTooManyAreOutstanding) {
  const Parameters p = cx6();
  HostLoad w = small(Operation::kWrite, 96);  // more than the request engine keeps up with
  w.thread_count = 96;
  w.doorbells = Doorbells::kOwn;
  w.send_depth = static_cast<std::uint32_t>(p.wqe_cache_entry_count / 96);
  EXPECT_EQ(run(w, 100000).client.wqe_cache_misses, 0U);
  w.send_depth *= 4;
  EXPECT_GT(number(run(w, 200000).client.wqe_cache_misses), 0.1 * 200000);
}

// Claim:  threads fill the RNIC's socket, then the far one, then share cores; a far thread sees
//         completions later, and a shared core is slower.
// Oracle: cores counted by hand.
TEST(Host, PlacesThreadsNearFirst) {
  Parameters p = cx6();
  p.cores_per_socket = 4;
  const auto placed = [&](std::uint32_t index, std::uint32_t count) {
    Thread thread;
    place_thread(thread, index, count, p);
    return thread;
  };
  for (std::uint32_t i = 0; i < 8; ++i) {
    EXPECT_EQ(placed(i, 8).far_ns, i < 4 ? 0 : p.far_socket_ns) << i;
    EXPECT_EQ(placed(i, 8).slowdown, 1) << i;
  }
  EXPECT_EQ(placed(8, 9).slowdown, p.smt_slowdown) << "the second thread of core 0";
  EXPECT_EQ(placed(0, 9).slowdown, p.smt_slowdown);
  EXPECT_EQ(placed(1, 9).slowdown, 1);
}

// Claim:  the first QPs have doorbell registers of their own, the others share the rest in turn.
// Oracle: the driver's defaults: 16 registers a process, 4 of them dedicated.
TEST(Host, SharesDoorbellRegistersInTurn) {
  const Parameters p = cx6();
  EXPECT_EQ(p.doorbell_register_count, 16);
  EXPECT_EQ(p.doorbell_dedicated_count, 4);
  std::set<std::uint32_t> shared;
  for (std::uint32_t qp = 0; qp < 40; ++qp) {
    const std::uint32_t reg = shared_register_of(qp, p);
    EXPECT_EQ(reg == kNone, qp < 4) << qp;
    if (qp >= 4) shared.insert(reg);
    if (qp >= 16) EXPECT_EQ(reg, shared_register_of(qp - 12, p)) << qp;
  }
  EXPECT_EQ(shared.size(), 12U);
}

// Claim:  counters have the names that ethtool, rdma statistic and the vendor's tools give them.
// Oracle: the names, written down from the mlx5 driver's documentation and Collie.
TEST(Counters, HaveTheNamesOfRealHardware) {
  std::set<std::string> names;
  const auto all =
      name_counters(std::vector<NicCounters>(2), 2, {.recovery = true, .congestion = true});
  for (const auto& [name, value] : all) names.insert(name);
  for (const char* name :
       {"tx_vport_rdma_unicast_packets", "tx_vport_rdma_unicast_bytes",
        "rx_vport_rdma_unicast_packets", "rx_vport_rdma_unicast_bytes", "tx_prio3_pause_duration",
        "rx_prio3_pause_duration", "outbound_pci_stalled_rd", "rx_write_requests",
        "rx_read_requests", "rx_atomic_requests", "out_of_buffer", "packet_seq_err",
        "out_of_sequence", "local_ack_timeout_err", "np_ecn_marked_roce_packets", "np_cnp_sent",
        "rp_cnp_handled", "rx_icrc_encapsulated"}) {
    EXPECT_TRUE(names.contains(name)) << name;
    EXPECT_TRUE(names.contains(std::string("server.") + name)) << name;
  }
}

}  // namespace
}  // namespace greynic::twin
