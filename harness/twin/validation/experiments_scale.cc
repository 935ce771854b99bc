#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>

#include "validation/experiments.h"
#include "validation/shared_qps.h"

/// Numbers of QPs on three RNICs, steering hops, and PCIe.

namespace greynic::twin {
namespace {

HostLoad transfers(Operation operation, std::uint32_t qps, std::uint64_t bytes, std::uint32_t mtu) {
  HostLoad w;
  w.operation = operation;
  w.overlay = false;
  w.qp_count = qps;
  w.thread_count = std::min(qps, 16U);
  w.doorbells = Doorbells::kOwn;
  w.signal_every = 4;
  w.send_depth = 16;
  w.message_bytes = {bytes};
  w.mtu_bytes = mtu;
  w.page_bytes = 1ULL << 21;
  return w;
}

}  // namespace

void qp_count_cx3(Bench& bench) {
  Series own{"twin, one QP per connection", false, {}};
  Series shared{"twin, connections share 16 QPs", false, {}};
  const auto gbps_of = [&](std::uint32_t connections, std::uint32_t qps) {
    return rate_of({.connection_count = connections, .qp_count = qps}, bench.rnic(), bench.seed())
        .gbps;
  };
  std::map<std::uint32_t, double> alone, together;
  for (const std::uint32_t n : {50U, 200U, 350U, 400U, 450U, 500U, 600U, 800U, 1000U}) {
    alone[n] = gbps_of(n, n);
    own.points.emplace_back(n, alone[n]);
  }
  for (const std::uint32_t n : {10U, 50U, 350U, 500U, 1000U}) {
    together[n] = gbps_of(n, 16);
    shared.points.emplace_back(n, together[n]);
  }
  double slowest_fall = 0;
  for (auto at = alone.find(500); at != alone.end(); ++at) {
    slowest_fall = std::max(slowest_fall, at->second / std::prev(at)->second);
  }
  const auto by_rate = [](const auto& a, const auto& b) { return a.second < b.second; };
  const auto [least, most] = std::ranges::minmax_element(together, by_rate);
  bench.accept(10, "64 KiB READ, 350 QPs over 50", "", 1, alone[350] / alone[50], 0.97, 1.03);
  bench.accept(10, "64 KiB READ, 500 QPs over 350", "", 0.9, alone[500] / alone[350], 0, 0.95);
  bench.accept(10, "64 KiB READ, each step beyond 450 QPs", "", 1, slowest_fall, 0, 0.98);
  bench.accept(10, "10 to 1,000 connections share 16 QPs, spread", "", 0,
               most->second / least->second - 1, 0, 0.03);
  bench.accept(10, "350 connections, one QP each ahead of shared", "", 0,
               alone[350] / together[350] - 1, -1, 0.005);
  // A lock that is kept until the READ is complete leaves its QP one READ at a time. One that is
  // let go of when it is posted shows with small messages alone: 64 KiB take far longer than that.
  const double kept = rate_of({.connection_count = 50,
                               .qp_count = 1,
                               .threads_per_qp = 3,
                               .send_depth = 1},
                              bench.rnic(), bench.seed())
                          .gbps;
  bench.accept(10, "64 KiB READ, one QP under a lock kept to completion, over 16", "", 1,
               kept / together[50], 0, 0.95);
  const auto locked = [&](std::uint32_t threads) {
    return rate_of({.connection_count = 600,
                    .qp_count = 2,
                    .threads_per_qp = threads,
                    .message_bytes = 64},
                   bench.rnic(), bench.seed())
        .messages_per_second;
  };
  const double free = locked(1), three = locked(3), six = locked(6);
  bench.accept(10, "64 B READ, 3 threads a QP under its lock, over one", "", 1, three / free, 0,
               0.95);
  bench.accept(10, "64 B READ, 6 threads a QP over 3", "", 1, six / three, 0, 0.95);
  bench.explains(8);
  bench.picture({"item10",
                 "ConnectX-3, random 64 KiB READ",
                 "connections",
                 "Gbit/s",
                 false,
                 false,
                 {own, shared}});
}

void qp_count_cx5(Bench& bench) {
  Series published{"published", true, {{256, 1}, {512, 0.77}, {16384, 0.54}}};
  Series twin{"twin", false, {}};
  double base = 0;
  for (const std::uint32_t n : {64U, 256U, 384U, 512U, 1024U, 4096U, 16384U}) {
    const double gbps = bench.rate(transfers(Operation::kWrite, n, 1024, 1024), 400000).gbps;
    if (n == 256) base = gbps;
    twin.points.emplace_back(n, gbps);
    if (n == 512)
      bench.accept(11, "RC, 512 QPs against 256", "", -0.23, gbps / base - 1, -0.28, -0.18);
    if (n == 16384) {
      bench.accept(11, "RC, 16384 QPs against 256", "", -0.46, gbps / base - 1, -0.52, -0.40);
    }
  }
  for (auto& [n, value] : twin.points) value /= base;
  bench.explains(2);
  bench.picture({"item11",
                 "ConnectX-5 class, RC, 1 KiB WRITE",
                 "QPs",
                 "share of 256 QPs",
                 true,
                 false,
                 {published, twin}});
}

void qp_count_cx7(Bench& bench) {
  Series published{"published, RC", true, {{60, 1}, {60000, 0.83}}};
  Series rc{"twin, RC", false, {}};
  Series uc{"twin, UC", false, {}};
  for (const Transport transport : {Transport::kRC, Transport::kUC}) {
    const bool reliable = transport == Transport::kRC;
    double base = 0;
    for (const std::uint32_t n : {60U, 600U, 6000U, 60000U}) {
      HostLoad w = transfers(Operation::kWrite, n, 4096, 4096);
      w.transport = transport;
      const double gbps = bench.rate(w, 600000).gbps;
      if (n == 60) base = gbps;
      (reliable ? rc : uc).points.emplace_back(n, gbps / base);
      if (n != 60000) continue;
      if (reliable) {
        bench.accept(12, "RC, 60,000 QPs against 60", "", -0.17, gbps / base - 1, -0.22, -0.10);
      } else {
        bench.accept(12, "UC, 60,000 QPs against 60", "", 0, gbps / base - 1, -0.05, 0.05);
      }
    }
  }
  bench.explains(2);
  bench.picture({"item12",
                 "ConnectX-7, transfers of one MTU",
                 "QPs",
                 "share of 60 QPs",
                 true,
                 false,
                 {published, rc, uc}});
}

void steering_hops(Bench& bench) {
  const Parameters& p = bench.model().parameters;
  HostLoad load = transfers(Operation::kWrite, 64, 64, 1024);
  Engine engine(p, load, Effects{}, statistics::split_mix(bench.seed()));
  RunLimits limits;
  limits.most_packets = 20000;
  (void)engine.run_bandwidth(limits);
  const NicCounters& sender = engine.counters(0);
  const double hops = sender.tx_hops / static_cast<double>(sender.tx_packets);
  // Work is split evenly on the twin, so the best bound is the one there is.
  const double bound = p.steering_pipe_count * p.chip_clock_mhz / hops;
  struct Report {
    const char* name;
    double hops, best;
  };
  constexpr std::array<Report, 2> kReports = {
      {{"report 1, TX", 3.7643, 228.4663}, {"report 2, TX", 3.8615, 222.7134}}};
  Series published{"published, best bound", true, {}}, seen{"twin", false, {}};
  for (const Report& r : kReports) {
    const std::string name = r.name;
    bench.within(13, name + ", hops per packet", "hops", r.hops, hops, 0.03);
    bench.within(13, name + ", best rate bound", "Mpps", r.best, bound, 0.03);
    published.points.emplace_back(r.hops, r.best);
  }
  // The reception report's packets met rules: as many groups as its hops say.
  constexpr double kHops = 42.6792, kBest = 20.1502;
  load = transfers(Operation::kWrite, 64, 64, 1024);
  load.walk(Hop::kServerDecap).groups = (kHops - p.base_hops_per_packet) / p.hops_per_group;
  const double mpps = bench.rate(load).packets_per_second * 1e-6;
  bench.within(13, "report 1, RX, rate behind 42.7 hops", "Mpps", kBest, mpps, 0.03);
  published.points.emplace_back(kHops, kBest);
  seen.points = {{hops, bound}, {kHops, mpps}};
  bench.explains(5);
  bench.picture({"item13",
                 "Steering hops and packet rate, 100 Gbit/s card",
                 "hops per packet",
                 "Mpps",
                 true,
                 true,
                 {published, seen}});
}

void pcie_bandwidth(Bench& bench) {
  struct Row {
    const char* name;
    PcieLink link;
    double tlp;
    std::array<double, 3> write, read;  ///< at 64, 128, 256 bytes
  };
  std::array<Row, 4> rows = {
      {{"Gen3 x8", {3, 8}, 57.9, {42.1, 48.7, 52.9}, {44.1, 50.1, 53.7}},
       {"Gen3 x16", {3, 16}, 113.7, {82.7, 95.7, 104.0}, {86.6, 98.3, 105.5}},
       {"Gen4 x16", {4, 16}, 227.4, {165.4, 191.5, 207.9}, {173.3, 196.7, 210.9}},
       {"Gen5 x16", {5, 16}, 454.8, {330.8, 383.0, 415.8}, {346.5, 393.3, 421.8}}}};
  constexpr std::array<double, 3> kBytes = {64, 128, 256};
  const Parameters& p = bench.model().parameters;
  for (Row& row : rows) {
    row.link.max_payload_bytes = static_cast<int>(p.pcie_max_payload_bytes);
    double worst = std::abs(row.link.tlp_gbps() - row.tlp);
    for (std::size_t i = 0; i < kBytes.size(); ++i) {
      worst = std::max(worst, std::abs(row.link.write_gbps(kBytes[i]) - row.write[i]));
      worst = std::max(worst, std::abs(row.link.read_gbps(kBytes[i]) - row.read[i]));
    }
    bench.accept(14, std::string(row.name) + ", largest difference of 7", "Gbit/s", 0, worst, 0,
                 0.1);
    bench.explains(7);
  }
  Series write{"DMA write", false, {}};
  Series read{"DMA read", false, {}};
  Series published{"published, write", true, {{64, 165.4}, {128, 191.5}, {256, 207.9}}};
  Series published_read{"published, read", true, {{64, 173.3}, {128, 196.7}, {256, 210.9}}};
  for (double bytes = 16; bytes <= 2048; bytes += 16) {
    write.points.emplace_back(bytes, rows[2].link.write_gbps(bytes));
    read.points.emplace_back(bytes, rows[2].link.read_gbps(bytes));
  }
  bench.picture({"item14",
                 "PCIe Gen4 x16, effective bandwidth",
                 "bytes of one transfer",
                 "Gbit/s",
                 true,
                 false,
                 {published, write, published_read, read}});
}

}  // namespace greynic::twin
