// The example of docs/twin/fabric.md: three hosts under one switch; one reads the counters of
// another's memory while the third floods it, and an observer watches the queue. Compiled and run as
// a test.

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <vector>

#include "greynic/twin/fabric.h"

using namespace greynic::twin;

namespace {

/// What one host needs to talk to another.
struct End {
  std::vector<std::byte> memory = std::vector<std::byte>(1 << 20);
  DomainId domain;
  RegionId region;
  CqId cq;
  QpId qp;
  int completed = 0;
};

void open_end(Fabric& fabric, HostId host, End& end) {
  end.domain = *fabric.create_domain(host);
  end.region = *fabric.register_memory(end.domain, end.memory, access::kAll);
  end.cq = *fabric.create_cq(host, {.on_event = [&fabric, &end] {
                               std::array<Completion, 16> seen;
                               while (true) {
                                 const int count = fabric.poll(end.cq, seen);
                                 if (count <= 0) break;
                                 end.completed += count;
                               }
                               fabric.arm(end.cq);
                             }});
  fabric.arm(end.cq);
  end.qp = *fabric.create_qp({.domain = end.domain, .send_cq = end.cq, .receive_cq = end.cq});
}

void post(Fabric& fabric, End& from, const End& to, WorkKind kind, std::uint32_t bytes) {
  const Sge sge{fabric.region_address(from.region), bytes, fabric.key(from.region)};
  SendRequest request;
  request.kind = kind;
  request.elements = std::span(&sge, 1);
  request.remote_address = fabric.region_address(to.region);
  request.rkey = fabric.key(to.region);
  (void)fabric.post_send(from.qp, std::span(&request, 1));
}

struct Deepest : PortObserver {
  std::uint64_t bytes = 0, packets = 0;
  void on_packet(const PacketRecord& record) override {
    ++packets;
    bytes = std::max(bytes, record.depth_at_enqueue);
  }
};

}  // namespace

int main() {
  FabricSpec spec;
  spec.host_count = 3;
  spec.others[1].link_gbps = 50;  // host 1 hangs on a slower link
  auto made = Fabric::create(spec);
  if (!made) {
    std::fprintf(stderr, "%s\n", made.error().message.c_str());
    return 2;
  }
  Fabric& fabric = **made;
  End monitor, watched, writer, target;
  open_end(fabric, 0, monitor);
  open_end(fabric, 1, watched);
  open_end(fabric, 2, writer);
  open_end(fabric, 1, target);
  if (!fabric.connect(monitor.qp, 0, watched.qp, 1)) return 1;
  if (!fabric.connect(writer.qp, 2, target.qp, 1)) return 1;

  Deepest queue;  // in front of host 1
  if (!fabric.observe({.device = 0, .port = 1}, &queue)) return 1;

  // Host 1 writes its counters into its own memory every 10 us; host 0 reads them every 10 us.
  for (int i = 1; i <= 20; ++i) {
    fabric.at(i * 10e3, [&] {
      const auto packets = static_cast<std::uint64_t>(fabric.counters(1)[2].second);
      std::memcpy(watched.memory.data(), &packets, sizeof packets);
    });
    fabric.on_thread(
        0, 0, [&] { post(fabric, monitor, watched, WorkKind::kRead, 64); }, i * 10e3 + 5e3);
  }
  // Host 2 writes one MiB as often as it can.
  for (int i = 0; i < 4; ++i) {
    fabric.on_thread(2, 0, [&] { post(fabric, writer, target, WorkKind::kWrite, 1 << 20); });
  }
  fabric.run_until(1e6);

  std::uint64_t seen = 0;
  std::memcpy(&seen, monitor.memory.data(), sizeof seen);
  std::printf(
      "%d READs, the last saw %llu packets; %d WRITEs; %llu packets passed the queue,\n"
      "which held %llu bytes at most\n",
      monitor.completed, static_cast<unsigned long long>(seen), writer.completed,
      static_cast<unsigned long long>(queue.packets), static_cast<unsigned long long>(queue.bytes));
  return monitor.completed == 20 && writer.completed == 4 && queue.bytes > 100000 && seen > 500 ? 0
                                                                                                : 1;
}
