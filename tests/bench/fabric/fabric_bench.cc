// Speed of the fabric: CPU time of a packet through one switch, 64-byte WRITEs with real bytes
// between pairs of hosts, from 2 to 10,000 hosts; and the bytes of a host that has one QP and does
// nothing. A packet is whatever a host receives, data and acknowledgements alike; both numbers are
// given. What a run costs before its packets flow cancels: each point is the difference of a run and
// one of twice its length. Points are measured in turn; the least of each run counts. Nothing is
// asserted.
//
// usage: fabric_bench [rounds] [hosts]           hosts: only that many
//        fabric_bench --once hosts messages      one run; prints packets, messages and CPU seconds
//        fabric_bench --watched hosts messages   the same, with an observer at every switch port

#include <fmt/core.h>
#include <malloc.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "greynic/twin/fabric.h"

namespace {

using namespace greynic::twin;

constexpr std::uint32_t kBytes = 64;
constexpr std::uint64_t kMessages = 400000;

/// Keeps the send queue of one QP full.
class Writer {
 public:
  Writer(Fabric& fabric, HostId from, HostId to, std::uint32_t depth, bool counted)
      : fabric_(fabric), depth_(depth), memory_(2 * kBytes) {
    for (const std::size_t end : {0U, 1U}) {
      const HostId host = end == 0 ? from : to;
      const DomainId domain = *fabric.create_domain(host);
      regions_[end] =
          counted ? *fabric.register_counted(domain, kBytes, access::kAll)
                  : *fabric.register_memory(
                        domain, std::span(memory_).subspan(end * kBytes, kBytes), access::kAll);
      const CqId cq =
          *fabric.create_cq(host, {.depth = 2 * depth, .on_event = [this] { go_on(); }});
      if (end == 0) cq_ = cq;
      qps_[end] = *fabric.create_qp(
          {.domain = domain, .send_cq = cq, .receive_cq = cq, .send_depth = depth});
    }
    (void)fabric.connect(qps_[0], from, qps_[1], to);
    sge_ = {fabric.region_address(regions_[0]), kBytes, fabric.key(regions_[0])};
    request_.kind = WorkKind::kWrite;
    request_.elements = std::span(&sge_, 1);
    request_.remote_address = fabric.region_address(regions_[1]);
    request_.rkey = fabric.key(regions_[1]);
    fabric.on_thread(from, 0, [this] { post(depth_); });
  }
  std::uint64_t done = 0;

 private:
  void post(std::uint32_t count) {
    list_.assign(count, request_);
    (void)fabric_.post_send(qps_[0], list_);
    fabric_.arm(cq_);
  }
  void go_on() {
    std::array<Completion, 32> seen;
    const int count = fabric_.poll(cq_, seen);
    done += static_cast<std::uint64_t>(std::max(count, 0));
    post(static_cast<std::uint32_t>(std::max(count, 0)));
  }

  Fabric& fabric_;
  std::uint32_t depth_;
  std::vector<std::byte> memory_;
  std::array<RegionId, 2> regions_;
  std::array<QpId, 2> qps_;
  CqId cq_;
  Sge sge_;
  SendRequest request_;
  std::vector<SendRequest> list_;
};

struct Cost {
  double seconds = 0, packets = 0, messages = 0;
};

/// Looks at what it is told, and no more.
class Watcher : public PortObserver {
 public:
  void on_packet(const PacketRecord& record) override { most_ = std::max(most_, record.bytes); }

 private:
  std::uint32_t most_ = 0;
};

Cost run(std::uint32_t hosts, std::uint64_t messages, bool counted, bool watched = false) {
  FabricSpec spec;
  spec.host_count = hosts;
  if (counted) spec.bytes = FabricSpec::Bytes::kCounted;
  const std::clock_t began = std::clock();
  auto fabric = std::move(*Fabric::create(spec));
  Watcher watcher;
  for (const PortId port : watched ? fabric->ports() : std::vector<PortId>()) {
    if (!port.of_host) (void)fabric->observe(port, &watcher);
  }
  std::vector<std::unique_ptr<Writer>> writers;
  for (HostId host = 0; host + 1 < hosts; host += 2) {
    writers.push_back(std::make_unique<Writer>(*fabric, host, host + 1, 16, counted));
  }
  Cost cost;
  for (Time until = 10e3; cost.messages < static_cast<double>(messages); until += 10e3) {
    fabric->run_until(until);
    cost.messages = 0;
    for (const auto& writer : writers) cost.messages += static_cast<double>(writer->done);
  }
  cost.seconds = static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC;
  cost.packets = static_cast<double>(fabric->packet_count());
  return cost;
}

struct Point {
  std::uint32_t hosts;
  bool counted = false;
  double once = 1e9, twice = 1e9, packets = 0, messages = 0;
};

double idle_host_bytes() {
  constexpr std::uint32_t kHosts = 10000;
  const auto before = mallinfo2();
  FabricSpec spec;
  spec.host_count = kHosts;
  auto fabric = std::move(*Fabric::create(spec));
  for (HostId host = 0; host < kHosts; ++host) {
    const DomainId domain = *fabric->create_domain(host);
    const CqId cq = *fabric->create_cq(host, {});
    (void)*fabric->create_qp({.domain = domain, .send_cq = cq, .receive_cq = cq});
  }
  const auto after = mallinfo2();
  return static_cast<double>(after.uordblks + after.hblkhd - before.uordblks - before.hblkhd) /
         kHosts;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string first = argc > 1 ? argv[1] : "";
  if (argc == 4 && (first == "--once" || first == "--watched")) {
    const Cost cost =
        run(static_cast<std::uint32_t>(std::atoi(argv[2])),
            static_cast<std::uint64_t>(std::atoll(argv[3])), false, first == "--watched");
    fmt::print("{:.0f} {:.0f} {:.6f}\n", cost.packets, cost.messages, cost.seconds);
    return 0;
  }
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 3;
  std::vector<Point> points = {{2}, {2, true}, {16}, {128}, {1000}, {10000}, {10000, true}};
  if (argc > 2) points = {{static_cast<std::uint32_t>(std::atoi(argv[2]))}};
  fmt::print("an idle host with one QP: {:.0f} bytes\n", idle_host_bytes());
  for (int round = 0; round < rounds; ++round) {
    for (Point& point : points) {
      const std::uint64_t messages = std::max<std::uint64_t>(kMessages, 200ULL * point.hosts);
      const Cost once = run(point.hosts, messages, point.counted);
      const Cost twice = run(point.hosts, 2 * messages, point.counted);
      point.once = std::min(point.once, once.seconds);
      point.twice = std::min(point.twice, twice.seconds);
      point.packets = twice.packets - once.packets;
      point.messages = twice.messages - once.messages;
    }
  }
  fmt::print("{:>8} {:>8} {:>12} {:>12} {:>14} {:>8}\n", "hosts", "bytes", "ns a packet",
             "Mpackets/s", "Mmessages/s", "of 2");
  const double base = (points[0].twice - points[0].once) / points[0].packets * 1e9;
  for (const Point& point : points) {
    const double ns = (point.twice - point.once) / point.packets * 1e9;
    fmt::print("{:>8} {:>8} {:>12.1f} {:>12.2f} {:>14.2f} {:>8.2f}\n", point.hosts,
               point.counted ? "counted" : "real", ns, 1e3 / ns,
               point.messages / (point.twice - point.once) * 1e-6, ns / base);
  }
  return 0;
}
