#pragma once

/// A program for the fabric that does what `measure` does: threads that keep send queues full, or
/// one request back and forth. It is written against the public interface alone.

#include <algorithm>
#include <memory>
#include <vector>

#include "greynic/statistics/random.h"
#include "greynic/twin/fabric.h"

namespace greynic::twin {

struct PerftestLoad {
  Transport transport = Transport::kRC;
  Operation operation = Operation::kWrite;
  std::uint32_t qp_count = 1, thread_count = 1;
  std::uint32_t send_depth = 128, post_batch = 1, signal_every = 1;
  std::uint64_t message_bytes = 65536;
  std::uint32_t mtu_bytes = 1024, sge_count = 1;
  std::uint64_t region_bytes = 1 << 24;
  bool both_ways = false;
  std::uint32_t inline_bytes = 0;
};

inline WorkKind kind_of(Operation operation) {
  switch (operation) {
    case Operation::kSend:
      return WorkKind::kSend;
    case Operation::kWrite:
      return WorkKind::kWrite;
    case Operation::kRead:
      return WorkKind::kRead;
    default:
      return WorkKind::kFetchAdd;
  }
}

/// One end of the traffic between two hosts of a fabric with counted bytes.
class PerftestEnd {
 public:
  PerftestEnd(Fabric& fabric, HostId host, const PerftestLoad& load, bool sends, std::uint64_t seed)
      : fabric_(fabric), host_(host), load_(load), sends_(sends), random_(seed) {
    domain_ = *fabric.create_domain(host);
    region_ = *fabric.register_counted(domain_, load.region_bytes, access::kAll);
    const std::uint32_t all = load.qp_count * (load.send_depth + 600);
    for (std::uint32_t i = 0; i < load.thread_count; ++i) {
      threads_.push_back({});
      threads_[i].cq = *fabric.create_cq(host, {.depth = all, .thread = i, .on_event = [this, i] {
                                                  threads_[i].waiting = false;
                                                  step(i);
                                                }});
    }
    for (std::uint32_t i = 0; i < load.thread_count; ++i) {  // others post receives again
      receive_cqs_.push_back(*fabric.create_cq(
          host, {.depth = all, .thread = load.thread_count + i, .on_event = [this, i] {
                   take_receives(i);
                 }}));
      fabric.arm(receive_cqs_[i]);
    }
    for (std::uint32_t i = 0; i < load.qp_count; ++i) {
      Thread& thread = threads_[i % load.thread_count];
      QpSpec spec{.transport = load.transport,
                  .domain = domain_,
                  .send_cq = thread.cq,
                  .receive_cq = receive_cqs_[i % load.thread_count],
                  .send_depth = load.send_depth,
                  .receive_depth = 512,
                  .send_elements = std::max(1U, load.sge_count),
                  .inline_bytes = load.inline_bytes};
      qps.push_back(*fabric.create_qp(spec));
      thread.qps.push_back(i);
      used_.push_back(0);
      posted_.push_back(0);
      by_number_.resize(std::max<std::size_t>(by_number_.size(), qps.back().id + 1));
      by_number_[qps.back().id] = i;
    }
  }

  void meet(PerftestEnd& other) {
    other_ = &other;
    handle_ = *fabric_.create_address_handle(domain_, other.host_);
  }
  void post_receives() {
    if (load_.operation != Operation::kSend) return;
    for (const QpId qp : qps) {
      for (int i = 0; i < 512; ++i) post_receive(qp);
    }
  }
  void start() {
    if (!sends_) return;
    for (std::uint32_t i = 0; i < threads_.size(); ++i) {
      fabric_.on_thread(host_, i, [this, i] { step(i); });
    }
  }

  std::vector<QpId> qps;
  std::uint64_t done = 0, failed = 0;
  std::uint64_t received = 0;

 private:
  struct Thread {
    CqId cq;
    std::vector<std::uint32_t> qps;
    std::size_t next = 0;
    bool waiting = false;
  };

  void post_receive(QpId qp) {
    const Sge sge = anywhere(region_, load_.message_bytes + 40);
    const ReceiveRequest request{qp.id, std::span(&sge, 1)};
    (void)fabric_.post_receive(qp, std::span(&request, 1));
  }
  void take_receives(std::uint32_t thread) {
    std::array<Completion, 64> seen;
    while (true) {
      const int count = fabric_.poll(receive_cqs_[thread], seen);
      for (int i = 0; i < count; ++i) {
        ++received;
        post_receive(QpId{seen[static_cast<std::size_t>(i)].qp});
      }
      if (count <= 0) break;
    }
    fabric_.arm(receive_cqs_[thread]);
  }
  /// A buffer anywhere in a region, as long as a message.
  Sge anywhere(RegionId region, std::uint64_t bytes) {
    const std::uint64_t room = load_.region_bytes - std::min(load_.region_bytes, bytes);
    const std::uint64_t at = room == 0 ? 0 : random_.next() % room / 64 * 64;
    return {fabric_.region_address(region) + at, static_cast<std::uint32_t>(bytes),
            fabric_.key(region)};
  }
  /// Takes what is complete, posts to the next QP that has room, and goes on when that is done.
  void step(std::uint32_t index) {
    Thread& thread = threads_[index];
    std::array<Completion, 64> seen;
    for (int count = 0; (count = fabric_.poll(thread.cq, seen)) > 0;) {
      for (int i = 0; i < count; ++i) {
        const Completion& one = seen[static_cast<std::size_t>(i)];
        used_[by_number_[one.qp]] -= load_.signal_every;
        done += load_.signal_every;
        failed += one.status != WcStatus::kSuccess;
      }
    }
    for (std::size_t tried = 0; tried < thread.qps.size(); ++tried) {
      const std::uint32_t qp = thread.qps[thread.next];
      thread.next = (thread.next + 1) % thread.qps.size();
      if (used_[qp] >= load_.send_depth) continue;
      post(qp, std::min(load_.post_batch, load_.send_depth - used_[qp]));
      return fabric_.on_thread(host_, index, [this, index] {
        if (!threads_[index].waiting) step(index);
      });
    }
    thread.waiting = true;
    fabric_.arm(thread.cq);
  }
  void post(std::uint32_t index, std::uint32_t count) {
    std::vector<SendRequest> list(count);
    std::vector<Sge> elements(std::size_t{count} * load_.sge_count);
    for (std::uint32_t i = 0; i < count; ++i) {
      Sge whole = anywhere(region_, load_.message_bytes);
      for (std::uint32_t e = 0; e < load_.sge_count; ++e) {
        const auto part = static_cast<std::uint32_t>(load_.message_bytes / load_.sge_count);
        const bool last = e + 1 == load_.sge_count;
        elements[std::size_t{i} * load_.sge_count + e] = {
            whole.address + std::uint64_t{e} * part,
            last ? whole.bytes - part * (load_.sge_count - 1) : part, whole.lkey};
      }
      const Sge there = other_->anywhere(other_->region_, load_.message_bytes);
      SendRequest& request = list[i];
      request.kind = kind_of(load_.operation);
      request.elements =
          std::span(elements).subspan(std::size_t{i} * load_.sge_count, load_.sge_count);
      request.remote_address = there.address;
      request.rkey = there.lkey;
      request.compare_add = 1;
      request.signaled = ++posted_[index] % load_.signal_every == 0;
      request.to = handle_;
      request.to_qp = other_->qps[index].id;
    }
    const Posted posted = fabric_.post_send(qps[index], list);
    used_[index] += static_cast<std::uint32_t>(posted.count);
    failed += posted.error != 0;
  }

  Fabric& fabric_;
  HostId host_;
  PerftestLoad load_;
  bool sends_;
  statistics::Random random_;
  PerftestEnd* other_ = nullptr;
  AddressHandleId handle_;
  DomainId domain_;
  RegionId region_;
  std::vector<CqId> receive_cqs_;
  std::vector<Thread> threads_;
  std::vector<std::uint32_t> used_, posted_, by_number_;
};

struct PerftestResult {
  double messages_per_second = 0;
  std::uint64_t failed = 0;
  std::uint64_t packets = 0;
};

/// Payload that has arrived at the RNICs of two hosts.
inline double received_bytes(const Fabric& fabric) {
  double sum = 0;
  for (HostId host : {0U, 1U}) {
    for (const auto& [name, value] : fabric.counters(host)) {
      if (name == "rx_vport_rdma_unicast_bytes") sum += value;
    }
  }
  return sum;
}

/// Rate of two ends between two times, ns.
inline PerftestResult run_perftest(const FabricSpec& spec, const PerftestLoad& load, Time warm_up,
                                   Time until) {
  auto made = Fabric::create(spec);
  Fabric& fabric = **made;
  PerftestEnd a(fabric, 0, load, true, spec.seed + 1),
      b(fabric, 1, load, load.both_ways, spec.seed + 2);
  a.meet(b);
  b.meet(a);
  for (std::size_t i = 0; i < a.qps.size(); ++i) {
    (void)fabric.connect(a.qps[i], 0, b.qps[i], 1, {.mtu_bytes = load.mtu_bytes});
  }
  a.post_receives();
  b.post_receives();
  a.start();
  b.start();
  fabric.run_until(warm_up);
  const double before = received_bytes(fabric);
  fabric.run_until(until);
  const double messages =
      (received_bytes(fabric) - before) / static_cast<double>(load.message_bytes);
  return {messages / (until - warm_up) * 1e9, a.failed + b.failed, fabric.packet_count()};
}

/// Median half round trip, ns: SEND and WRITE are answered by the peer's program, READ and ATOMIC
/// by its RNIC.
class PingPong {
 public:
  PingPong(const FabricSpec& spec, const PerftestLoad& load)
      : made_(*Fabric::create(spec)), load_(load), random_(spec.seed) {
    for (HostId host : {0U, 1U}) {
      End& end = ends_[host];
      end.domain = *made_->create_domain(host);
      end.region = *made_->register_counted(end.domain, load.region_bytes, access::kAll);
      end.cq = *made_->create_cq(host, {.depth = 4096, .on_event = [this, host] { event(host); }});
      made_->arm(end.cq);
      end.qp = *made_->create_qp({.transport = load.transport,
                                  .domain = end.domain,
                                  .send_cq = end.cq,
                                  .receive_cq = end.cq,
                                  .inline_bytes = load.inline_bytes});
      end.to = *made_->create_address_handle(end.domain, 1 - host);
      if (load.operation != Operation::kWrite) continue;
      (void)made_->watch(end.region, 0, [this, host](std::uint64_t) {
        made_->spend(host, 80);
        arrived(host);
      });
    }
    (void)made_->connect(ends_[0].qp, 0, ends_[1].qp, 1, {.mtu_bytes = load.mtu_bytes});
    if (load.operation == Operation::kSend) {
      for (HostId host : {0U, 1U}) {
        for (int i = 0; i < 256; ++i) post_receive(host);
      }
    }
  }
  double median_ns(std::size_t rounds) {
    rounds_ = rounds;
    made_->on_thread(0, 0, [this] { post(0); });
    made_->run_until(1e12);
    if (trips_.size() < rounds) return 0;
    std::sort(trips_.begin(), trips_.end());
    return trips_[trips_.size() / 2];
  }

 private:
  struct End {
    DomainId domain;
    RegionId region;
    CqId cq;
    QpId qp;
    AddressHandleId to;
  };
  void post_receive(HostId host) {
    const Sge sge{made_->region_address(ends_[host].region),
                  static_cast<std::uint32_t>(load_.message_bytes) + 40,
                  made_->key(ends_[host].region)};
    const ReceiveRequest request{1, std::span(&sge, 1)};
    (void)made_->post_receive(ends_[host].qp, std::span(&request, 1));
  }
  void post(HostId host) {
    const End& own = ends_[host];
    const End& other = ends_[1 - host];
    if (host == 0) {
      // The whole of a READ or an atomic, half of a ping-pong.
      const int ways =
          load_.operation == Operation::kSend || load_.operation == Operation::kWrite ? 2 : 1;
      if (began_ > 0) trips_.push_back((made_->thread_time(0, 0) - began_) / ways);
      began_ = made_->thread_time(0, 0);
      if (trips_.size() >= rounds_) return;
    }
    const Sge sge{made_->region_address(own.region),
                  static_cast<std::uint32_t>(load_.message_bytes), made_->key(own.region)};
    SendRequest request;
    request.kind = kind_of(load_.operation);
    request.elements = std::span(&sge, 1);
    request.remote_address = made_->region_address(other.region);
    request.rkey = made_->key(other.region);
    request.inlined =
        load_.message_bytes <= load_.inline_bytes && load_.operation <= Operation::kWrite;
    request.to = own.to;
    request.to_qp = other.qp.id;
    request.signaled = load_.operation >= Operation::kRead;
    (void)made_->post_send(own.qp, std::span(&request, 1));
  }
  void event(HostId host) {
    std::array<Completion, 16> seen;
    int count = 0;
    bool got = false;
    while ((count = made_->poll(ends_[host].cq, seen)) > 0) {
      for (int i = 0; i < count; ++i) {
        const Completion& one = seen[static_cast<std::size_t>(i)];
        if (one.kind == WorkKind::kReceive) {
          post_receive(host);
          got = true;
        } else if (load_.operation >= Operation::kRead) {
          got = true;
        }
      }
    }
    made_->arm(ends_[host].cq);
    if (got) arrived(host);
  }
  void arrived(HostId host) { post(host); }

  std::unique_ptr<Fabric> made_;
  PerftestLoad load_;
  statistics::Random random_;
  std::array<End, 2> ends_;
  std::size_t rounds_ = 0;
  Time began_ = 0;
  std::vector<double> trips_;
};

}  // namespace greynic::twin
