#include <algorithm>

#include "fabric/simulation.h"

/// Requests from the doorbell until they can be sent, and their completions: what
/// parts/request_engine.h does for one workload, with the same costs in the same order.

namespace greynic::twin::fabric {
namespace {

constexpr std::uint32_t kBlocksPerRead = 4;  ///< of WQEs, 64 bytes each, in one 256-byte read
constexpr std::uint32_t kBlock = 2;          ///< WQEs read again together
constexpr std::uint64_t kMostBytesOfMessage = 1ULL << 31;

}  // namespace

void Simulation::doorbell(Qp& qp, std::uint32_t count) {
  Nic& nic = nic_of(qp.host);
  const Parameters& p = hosts_[qp.host].type->p;
  // 16 bytes each: what to do, where to (not of a SEND), and the elements.
  const Work& first = qp.work(qp.fetched);
  const std::uint32_t segments = 1 + (first.kind == WorkKind::kSend ? 0 : 1) + first.elements.count;
  const std::uint32_t reads = (count * ((segments + 3) / 4) + kBlocksPerRead - 1) / kBlocksPerRead;
  for (std::uint32_t i = 0; i < reads; ++i) {
    nic.read_slots.enter(nic.read_slots.admit(s_.now) + p.pcie_read_latency_ns);
  }
  nic.counters.wqe_reads += reads;
  nic.counters.pcie_read_tlps += reads;
  s_.events.push(s_.now + p.pcie_read_latency_ns + s_.jitter(), event::kWqesArrive, qp.id, count);
}

void Simulation::wqes_arrive(Qp& qp, std::uint32_t count) {
  Nic& nic = nic_of(qp.host);
  for (std::uint32_t i = 0; i < count && qp.fetched != qp.posted; ++i) {
    bring_wqe(qp, qp.fetched);
    ++qp.fetched;
    nic.push_request(qp.id);
  }
  engine_goes_on(qp.host);
}

void Simulation::engine_goes_on(HostId host) {
  Nic& nic = nic_of(host);
  while (nic.request_count > 0 && !nic.engine_busy) {
    if (nic.engine_free > s_.now) {
      nic.engine_busy = true;
      return s_.events.push(nic.engine_free, event::kEngineStep, host);
    }
    Qp* qp = qps_.find(nic.pop_request());
    if (qp != nullptr && !qp->gone && qp->state == QpState::kReadyToSend) begin_request(*qp);
  }
}

bool Simulation::has_wqe(const Qp& qp, std::uint32_t number) {
  const Cache& wqes = nic_of(qp.host).wqes;
  return wqes.never_misses() || wqes.contains(qp.first_wqe + number % qp.spec.send_depth);
}

void Simulation::bring_wqe(const Qp& qp, std::uint32_t number) {
  Cache& wqes = nic_of(qp.host).wqes;
  if (!wqes.never_misses()) (void)wqes.touch(qp.first_wqe + number % qp.spec.send_depth);
}

Time Simulation::begin_read(Nic& nic, const Parameters& p, Time t) {
  const Time start = nic.read_slots.admit(t);
  nic.counters.pcie_back_pressure += start - t;
  nic.read_slots.enter(start + p.pcie_read_latency_ns);
  ++nic.counters.pcie_read_tlps;
  return start;
}

Time Simulation::begin_payload(Nic& nic, const Parameters& p, const MessageShape& shape, Time t) {
  ++nic.counters.payload_reads;
  for (std::uint32_t i = 0; i < shape.reads; ++i) t = begin_read(nic, p, t);
  return t;
}

Time Simulation::payload_latency(const Parameters& p, const MessageShape& shape) {
  return p.pcie_read_latency_ns + shape.first_read_ns() + s_.jitter();
}

bool Simulation::misses_translation(HostId host, std::uint32_t key, std::uint64_t address) {
  Nic& nic = nic_of(host);
  if (nic.translations.never_misses()) return false;
  const Memory* memory = memory_.find(key >> 8);
  if (memory == nullptr) return false;
  if (memory->is_window) memory = memory_.find(memory->region);
  if (memory == nullptr) return false;
  const std::uint64_t start = memory->begin / memory->page_bytes;
  const std::uint64_t page = memory->first_page + (address / memory->page_bytes - start);
  if (nic.translations.touch(page)) return false;
  ++nic.counters.translation_misses;
  return true;
}

/// What the RNIC finds out before it sends anything (InfiniBand specification, 9.9.2).
WcStatus Simulation::check_locally(const Qp& qp, const Work& work) const {
  if (qp.spec.transport == Transport::kUD) {
    const AddressHandle* handle = handles_.find(work.to_handle);
    if (handle == nullptr || handle->domain != qp.spec.domain.id) {
      return WcStatus::kLocalQpOperation;
    }
    if (work.bytes > qp.attributes.mtu_bytes) return WcStatus::kLocalLength;
  }
  if (work.bytes > kMostBytesOfMessage) return WcStatus::kLocalLength;
  if (work.is_local() || work.inlined) return WcStatus::kSuccess;
  const bool atomic = work.kind == WorkKind::kCompareSwap || work.kind == WorkKind::kFetchAdd;
  if (atomic && work.bytes < sizeof(std::uint64_t)) return WcStatus::kLocalLength;
  return holds_all(qp.spec.domain.id, work.elements, work.asks()) ? WcStatus::kSuccess
                                                                  : WcStatus::kLocalProtection;
}

void Simulation::begin_request(Qp& qp) {
  Nic& nic = nic_of(qp.host);
  const RnicType& type = *hosts_[qp.host].type;
  const Parameters& p = type.p;
  const std::uint32_t number = qp.handled++;
  Work& work = qp.work(number);
  const MessageShape& shape = shapes_[work.shape].message;
  work.psn = qp.psn;
  qp.psn += work.is_local() ? 0 : shape.packets;
  const bool write = !work.asks();
  nic.engine_free = s_.now + (write ? type.write_request_ns : type.read_request_ns);
  work.status = check_locally(qp, work);
  if (work.status != WcStatus::kSuccess) {
    return s_.events.push(nic.engine_free, event::kDataReady, qp.id);
  }
  int reads_before = 0;
  if (!has_wqe(qp, number)) {
    // A WQE that has left the chip is read again, with its neighbour (parts/request_engine.cc).
    for (std::uint32_t i = 0; write && i < kBlock; ++i) {
      bring_wqe(qp, number / kBlock * kBlock + i);
      if (i > 0) (void)begin_read(nic, p, nic.engine_free);
    }
    ++nic.counters.wqe_cache_misses;
    ++reads_before;
  }
  if (!work.inlined && work.elements.count > 0 &&
      misses_translation(qp.host, work.elements.first.lkey, work.elements.first.address)) {
    ++reads_before;
  }
  Time ready = nic.engine_free;
  for (int i = 0; i < reads_before; ++i) {
    nic.engine_free = begin_read(nic, p, nic.engine_free);
    ready = std::max(ready, nic.engine_free) + p.pcie_read_latency_ns;
  }
  if (!write || shape.inlined || work.is_local()) {
    s_.events.push(ready, event::kDataReady, qp.id);
  } else if (reads_before > 0) {
    s_.events.push(ready, event::kPayloadWanted, qp.id, number);
  } else {
    nic.engine_free = begin_payload(nic, p, shape, ready);
    s_.events.push(nic.engine_free + payload_latency(p, shape), event::kDataReady, qp.id);
  }
}

void Simulation::payload_wanted(Qp& qp, std::uint32_t number) {
  Nic& nic = nic_of(qp.host);
  const Parameters& p = hosts_[qp.host].type->p;
  const MessageShape& shape = shapes_[qp.work(number).shape].message;
  const Time start = begin_payload(nic, p, shape, s_.now);
  s_.events.push(start + payload_latency(p, shape), event::kDataReady, qp.id);
}

/// Binds a window, or makes a key invalid.
void Simulation::run_local(Qp& qp, Work& work) {
  work.answered = true;
  const std::uint32_t domain = qp.spec.domain.id;
  if (work.kind == WorkKind::kLocalInvalidate) {
    Memory* window = memory_.find(work.rkey >> 8);
    const bool fits = window != nullptr && window->is_window && window->bound &&
                      window->tag == (work.rkey & 0xff) && window->domain == domain;
    if (!fits) {
      work.status = WcStatus::kWindowBind;
      return;
    }
    window->bound = false;
    --memory_.find(window->region)->windows;
    return;
  }
  const SendRequest::Bind& bind = work.details->bind;
  Memory* window = memory_.find(bind.window.id);
  Memory* region = memory_.find(bind.region.id);
  const bool fits = window != nullptr && window->is_window && region != nullptr &&
                    !region->is_window && window->domain == domain && region->domain == domain &&
                    region->holds(bind.address, bind.bytes);
  constexpr std::uint8_t kWrites = access::kRemoteWrite | access::kRemoteAtomic;
  if (!fits || window->bound ||
      ((bind.access & kWrites) != 0 && (region->access & access::kLocalWrite) == 0)) {
    work.status = WcStatus::kWindowBind;
    return;
  }
  ++region->windows;
  window->bound = true;
  window->region = bind.region.id;
  window->begin = bind.address;
  window->bytes = bind.bytes;
  window->access = bind.access;
  window->tag = bind.key_tag;
}

/// Completes what is done, in the order in which it was posted.
void Simulation::finish_requests(Qp& qp) {
  if (qp.state != QpState::kReadyToSend) return;
  const RnicType& type = *hosts_[qp.host].type;
  Nic& nic = nic_of(qp.host);
  bool any = false;
  while (qp.done != qp.posted) {
    const Work& work = qp.work(qp.done);
    if (work.status != WcStatus::kSuccess) return fail_request(qp, qp.done, work.status);
    const bool there =
        work.answered || (!work.asks() && !work.is_local() && qp.done < qp.acknowledged);
    if (!there) break;
    ++qp.done;
    any = true;
    if (!work.signaled) continue;
    ++nic.counters.completions;
    ++nic.counters.pcie_write_tlps;
    nic.receive_path.pass(s_.now, type.write_completion_ns);
    complete(*qp.send_cq, {.id = work.id, .kind = work.kind, .qp = qp.number, .bytes = work.bytes});
  }
  if (any) qp.rnr_tries = 0;
}

}  // namespace greynic::twin::fabric
