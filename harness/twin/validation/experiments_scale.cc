#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "validation/experiments.h"
#include "validation/hop_report.h"

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
  const auto one_each = [&](std::uint32_t connections) {
    return bench.rate(transfers(Operation::kRead, connections, 65536, 1024), 400000).gbps;
  };
  std::array<double, 3> at{};
  double least_shared = 1e9;
  double most_shared = 0;
  double behind = 0;
  double risen = 0;
  double before = 0;
  for (const std::uint32_t n : {50U, 100U, 200U, 350U, 400U, 450U, 500U, 600U, 800U, 1000U}) {
    const double gbps = one_each(n);
    HostLoad w = transfers(Operation::kRead, 16, 65536, 1024);
    w.post_batch = 4;
    const double together = bench.rate(w, 400000).gbps;
    own.points.emplace_back(n, gbps);
    shared.points.emplace_back(n, together);
    least_shared = std::min(least_shared, together);
    most_shared = std::max(most_shared, together);
    if (n < 400) behind = std::max(behind, gbps / together - 1);
    if (n > 400) risen = std::max(risen, gbps / before - 1);
    before = gbps;
    if (n == 50) at[0] = gbps;
    if (n == 350) at[1] = gbps;
    if (n == 500) at[2] = gbps;
  }
  bench.accept(10, "64 KiB READ, 350 QPs over 50", "", 1, at[1] / at[0], 0.97, 1.03);
  bench.accept(10, "64 KiB READ, 500 QPs over 350", "", 0.9, at[2] / at[1], 0, 0.95);
  bench.accept(10, "64 KiB READ, largest rise beyond 400 QPs", "", 0, risen, -1, 0.01);
  bench.accept(10, "shared QPs, spread", "", 0, most_shared / least_shared - 1, 0, 0.03);
  bench.accept(10, "one QP each ahead of shared below 400", "", 0, behind, -1, 0.005);
  bench.explains(5);
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
  struct Report {
    const char* name;
    double clock_mhz, pipe_0, pipe_1, packets, hops, best, actual;
  };
  constexpr std::array<Report, 3> kReports = {
      {{"report 1, RX", 429.9965, 15214106, 479195, 367704, 42.6792, 20.1502, 10.3924},
       {"report 1, TX", 429.9965, 12595326, 402941, 3453046, 3.7643, 228.4663, 117.8848},
       {"report 2, TX", 429.9928, 12364722, 217383, 3258352, 3.8615, 222.7134, 113.3117}}};
  Series best{"published, best bound", true, {}}, actual{"published, actual bound", true, {}};
  Series best_seen{"twin, best bound", false, {}}, actual_seen{"twin, actual bound", false, {}};
  for (const Report& r : kReports) {
    const HopReport seen = hop_report(r.clock_mhz, r.pipe_0, r.pipe_1, r.packets);
    const std::string name = r.name;
    bench.within(13, name + ", hops per packet", "hops", r.hops, seen.hops_per_packet, 0.001);
    bench.within(13, name + ", best rate bound", "Mpps", r.best, seen.best_mpps, 0.001);
    bench.within(13, name + ", actual rate bound", "Mpps", r.actual, seen.actual_mpps, 0.001);
    best.points.emplace_back(r.hops, r.best);
    actual.points.emplace_back(r.hops, r.actual);
    best_seen.points.emplace_back(seen.hops_per_packet, seen.best_mpps);
    actual_seen.points.emplace_back(seen.hops_per_packet, seen.actual_mpps);
  }
  bench.explains(9);
  bench.picture({"item13",
                 "Steering hops and packet rate, 100 Gbit/s card",
                 "hops per packet",
                 "Mpps",
                 true,
                 true,
                 {best, best_seen, actual, actual_seen}});
}

void pcie_bandwidth(Bench& bench) {
  struct Row {
    const char* name;
    PcieLink link;
    double tlp;
    std::array<double, 3> write, read;  ///< at 64, 128, 256 bytes
  };
  const std::array<Row, 4> rows = {
      {{"Gen3 x8", {3, 8, 256}, 57.9, {42.1, 48.7, 52.9}, {44.1, 50.1, 53.7}},
       {"Gen3 x16", {3, 16, 256}, 113.7, {82.7, 95.7, 104.0}, {86.6, 98.3, 105.5}},
       {"Gen4 x16", {4, 16, 256}, 227.4, {165.4, 191.5, 207.9}, {173.3, 196.7, 210.9}},
       {"Gen5 x16", {5, 16, 256}, 454.8, {330.8, 383.0, 415.8}, {346.5, 393.3, 421.8}}}};
  constexpr std::array<double, 3> kBytes = {64, 128, 256};
  for (const Row& row : rows) {
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
