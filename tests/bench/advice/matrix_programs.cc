#include "matrix_programs.h"

#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "greynic/broker/fabric_node.h"
#include "greynic/core/check.h"
#include "greynic/statistics/random.h"

namespace greynic::sharing {
namespace {

/// A round of 1,800 QPs whose contexts are fetched takes up to 30 virtual milliseconds where messages are long: some
/// such rounds, as all begin in step.
constexpr twin::Time kWarmUp = 100e6, kUntil = 200e6;
constexpr std::uint64_t kMemoryBytes = 8 << 20, kLargePage = 2 << 20;
/// READs that a QP of common RNICs may have open.
constexpr std::uint32_t kReadsOfQp = 16;

std::map<std::string, twin::HostId> hosts_of(const Matrix& matrix) {
  std::map<std::string, twin::HostId> hosts;
  for (const Demand& demand : matrix.demands) {
    hosts.try_emplace(demand.from, static_cast<twin::HostId>(hosts.size()));
    hosts.try_emplace(demand.to, static_cast<twin::HostId>(hosts.size()));
  }
  return hosts;
}

std::unique_ptr<twin::Fabric> fabric_for(const Matrix& matrix, const std::string& rnic,
                                         std::uint32_t threads) {
  twin::FabricSpec spec;
  spec.host_count = static_cast<std::uint32_t>(hosts_of(matrix).size());
  spec.host.rnic = rnic;
  spec.host.overlay = twin::HostSpec::Overlay::kOff;
  spec.host.thread_count = threads;
  return std::move(*twin::Fabric::create(spec));
}

/// Payload that has arrived at all RNICs.
double received_bytes(const twin::Fabric& fabric) {
  double sum = 0;
  for (twin::HostId host = 0; host < fabric.host_count(); ++host) {
    for (const auto& [name, value] : fabric.counters(host)) {
      if (name == "rx_vport_rdma_unicast_bytes") sum += value;
    }
  }
  return sum;
}

double steady_gbps(twin::Fabric& fabric) {
  fabric.run_until(kWarmUp);
  const double before = received_bytes(fabric);
  fabric.run_until(kUntil);
  return (received_bytes(fabric) - before) * 8 / (kUntil - kWarmUp);
}

/// Each connection has a QP; the threads of a host serve its connections in turn.
class OwnQps {
 public:
  OwnQps(twin::Fabric& fabric, const Matrix& matrix, bool own_doorbells)
      : fabric_(fabric), matrix_(matrix), hosts_(hosts_of(matrix)) {
    for (std::size_t h = 0; h < hosts_.size(); ++h) {
      const auto host = static_cast<twin::HostId>(h);
      memory_.emplace_back(kMemoryBytes);
      domains_.push_back(*fabric.create_domain(host));
      regions_.push_back(
          *fabric.register_memory(domains_[h], memory_[h], twin::access::kAll, kLargePage));
      for (std::uint32_t t = 0; t < matrix.threads; ++t) {
        const std::size_t index = workers_.size();
        workers_.push_back({.host = host, .thread = t});
        workers_[index].cq = *fabric.create_cq(
            host, {.depth = 1 << 17, .thread = t, .on_event = [this, index] { take(index); }});
        fabric.arm(workers_[index].cq);
      }
    }
    for (std::size_t d = 0; d < matrix.demands.size(); ++d) {
      for (std::uint32_t i = 0; i < matrix.demands[d].connections; ++i) connect(d, own_doorbells);
    }
  }

 private:
  struct Worker {
    twin::HostId host = 0;
    std::uint32_t thread = 0;
    twin::CqId cq;
    std::deque<std::uint32_t> wanting;  ///< connections that may post
    bool awake = false;
  };
  struct Connection {
    std::size_t demand = 0, worker = 0;
    twin::QpId qp;
  };

  void connect(std::size_t d, bool own_doorbells) {
    const Demand& demand = matrix_.demands[d];
    const twin::HostId from = hosts_.at(demand.from), to = hosts_.at(demand.to);
    const std::size_t thread = connections_.size() % matrix_.threads;
    Connection one{.demand = d, .worker = from * matrix_.threads + thread};
    one.qp = *fabric_.create_qp({.domain = domains_[from],
                                 .send_cq = workers_[one.worker].cq,
                                 .receive_cq = workers_[one.worker].cq,
                                 .send_depth = demand.outstanding,
                                 .own_doorbell = own_doorbells});
    const twin::CqId there = workers_[to * matrix_.threads].cq;
    const twin::QpId peer = *fabric_.create_qp(
        {.domain = domains_[to], .send_cq = there, .receive_cq = there, .send_depth = 1});
    GREYNIC_CHECK(fabric_.connect(one.qp, from, peer, to).has_value());
    const auto number = static_cast<std::uint32_t>(connections_.size());
    for (std::uint32_t i = 0; i < demand.outstanding; ++i) {
      workers_[one.worker].wanting.push_back(number);
    }
    connections_.push_back(one);
    wake(one.worker);
  }
  void wake(std::size_t index) {
    Worker& worker = workers_[index];
    if (worker.wanting.empty() || std::exchange(worker.awake, true)) return;
    fabric_.on_thread(worker.host, worker.thread, [this, index] {
      workers_[index].awake = false;
      post(index);
      wake(index);
    });
  }
  void post(std::size_t index) {
    Worker& worker = workers_[index];
    const Connection& one = connections_[worker.wanting.front()];
    const Demand& demand = matrix_.demands[one.demand];
    const auto bytes = static_cast<std::uint32_t>(demand.message_bytes);
    const twin::RegionId own = regions_[worker.host], far = regions_[hosts_.at(demand.to)];
    const twin::Sge here{fabric_.region_address(own), bytes, fabric_.key(own)};
    twin::SendRequest request;
    request.id = worker.wanting.front();
    request.kind =
        demand.operation == Operation::kRead ? twin::WorkKind::kRead : twin::WorkKind::kWrite;
    request.elements = std::span(&here, 1);
    const auto places = static_cast<std::uint32_t>(kMemoryBytes / bytes);
    request.remote_address =
        fabric_.region_address(far) + bytes * std::uint64_t{random_.below(places)};
    request.rkey = fabric_.key(far);
    GREYNIC_CHECK(fabric_.post_send(one.qp, std::span(&request, 1)).error == 0);
    worker.wanting.pop_front();
  }
  void take(std::size_t index) {
    Worker& worker = workers_[index];
    std::array<twin::Completion, 64> seen;
    for (int count = 0; (count = fabric_.poll(worker.cq, seen)) > 0;) {
      for (const twin::Completion& one : std::span(seen).first(static_cast<std::size_t>(count))) {
        GREYNIC_CHECK(one.status == twin::WcStatus::kSuccess);
        const auto number = static_cast<std::uint32_t>(one.id);
        worker.wanting.push_back(number);
      }
    }
    fabric_.arm(worker.cq);
    wake(index);
  }

  twin::Fabric& fabric_;
  const Matrix& matrix_;
  std::map<std::string, twin::HostId> hosts_;
  std::vector<std::vector<std::byte>> memory_;
  std::vector<twin::DomainId> domains_;
  std::vector<twin::RegionId> regions_;
  std::vector<Worker> workers_;
  std::vector<Connection> connections_;
  statistics::Random random_{1};
};

/// One application a demand: it opens connections and keeps transfers under way on each.
class Asker : public broker::FabricClient {
 public:
  Asker(twin::Fabric& fabric, broker::FabricNode& node, const Demand& demand,
        std::span<std::byte> segment, twin::Time ring_ns)
      : fabric_(fabric), node_(node), demand_(demand), ring_ns_(ring_ns) {
    app_ = *node.attach(*this, segment);
  }
  void open(broker::PeerId peer, std::uint16_t port) {
    node_.act([this, peer, port](broker::Core& core) {
      broker::VirtualQpn number = 0;
      for (std::uint32_t i = 0; i < demand_.connections; ++i) {
        GREYNIC_CHECK(core.connect(app_, peer, port, rings(), number) == 0);
      }
    });
  }
  void listen(std::uint16_t port) {
    node_.act([this, port](broker::Core& core) { GREYNIC_CHECK(core.listen(app_, port) == 0); });
  }
  void on_incoming(std::uint16_t, broker::VirtualQpn number) override {
    (void)node_.core().accept(app_, number, rings());
    is_server_ = true;
  }
  void on_open(broker::VirtualQpn number) override {
    if (is_server_) return;
    for (std::uint32_t i = 0; i < demand_.outstanding; ++i) ask(number);
  }
  void on_transferred(broker::VirtualQpn number, std::uint64_t) override { ask(number); }

 private:
  [[nodiscard]] static broker::Rings rings() {
    return {.send = {0, 4096}, .receive = {4096, 4096}, .exposed = {65536, kMemoryBytes - 65536}};
  }
  /// As if it came through the ring: the broker's thread reads it.
  void ask(broker::VirtualQpn number) {
    fabric_.spend(node_.host(), ring_ns_);
    const std::uint64_t bytes = demand_.message_bytes;
    const auto places = static_cast<std::uint32_t>((kMemoryBytes - 65536) / bytes);
    (void)node_.core().transfer(
        app_, number,
        demand_.operation == Operation::kRead ? broker::Verb::kRead : broker::Verb::kWrite, 65536,
        bytes * random_.below(places), bytes, 0);
  }

  twin::Fabric& fabric_;
  broker::FabricNode& node_;
  const Demand& demand_;
  twin::Time ring_ns_;
  broker::AppId app_ = 0;
  bool is_server_ = false;
  statistics::Random random_{1};
};

}  // namespace

double own_qps_gbps(const Matrix& matrix, const std::string& rnic, bool own_doorbells) {
  const auto fabric = fabric_for(matrix, rnic, matrix.threads);
  OwnQps programs(*fabric, matrix, own_doorbells);
  return steady_gbps(*fabric);
}

double shared_gbps(const Matrix& matrix, const std::string& rnic, const Setting& setting) {
  const auto fabric = fabric_for(matrix, rnic, 1);
  broker::FabricNodeOptions options;
  options.core.latency_lanes = static_cast<std::uint16_t>(setting.latency_qps);
  options.core.bulk_lanes = static_cast<std::uint16_t>(setting.bulk_qps);
  options.core.bulk_bytes = setting.bulk_bytes;
  options.core.in_flight_bytes = setting.in_flight_bytes;
  options.core.backlog = 1 << 20;
  options.attributes.most_reads = kReadsOfQp;
  const auto hosts = hosts_of(matrix);
  // Outlives the nodes: what their RNICs still have is written when regions go.
  std::vector<std::vector<std::byte>> memory;
  std::vector<std::unique_ptr<broker::FabricNode>> nodes;
  for (std::size_t h = 0; h < hosts.size(); ++h) {
    nodes.push_back(
        std::move(*broker::FabricNode::create(*fabric, static_cast<twin::HostId>(h), options)));
  }
  std::vector<std::unique_ptr<Asker>> programs;
  std::set<std::pair<twin::HostId, twin::HostId>> met;
  for (std::size_t d = 0; d < matrix.demands.size(); ++d) {
    const Demand& demand = matrix.demands[d];
    const twin::HostId from = hosts.at(demand.from), to = hosts.at(demand.to);
    if (met.insert(std::minmax(from, to)).second) {
      GREYNIC_CHECK(broker::FabricNode::meet(*nodes[from], *nodes[to]).has_value());
    }
    for (const twin::HostId host : {to, from}) {
      memory.emplace_back(kMemoryBytes);
      programs.push_back(
          std::make_unique<Asker>(*fabric, *nodes[host], demand, memory.back(), options.ring_ns));
    }
    programs[2 * d]->listen(static_cast<std::uint16_t>(7 + d));
  }
  fabric->run_until(1e5);
  for (std::size_t d = 0; d < matrix.demands.size(); ++d) {
    programs[2 * d + 1]->open(hosts.at(matrix.demands[d].to), static_cast<std::uint16_t>(7 + d));
  }
  return steady_gbps(*fabric);
}

}  // namespace greynic::sharing
