#include "parts/threads.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "fabric/simulation.h"

/// Programs: threads with clocks of their own, what posting and polling costs them, and who is
/// called when.

namespace greynic::twin::fabric {

HostThread& Simulation::thread_of(HostId id, std::uint32_t index) {
  HostPart& host = hosts_[id];
  while (host.threads.size() <= index) {
    Thread placed;
    const auto number = static_cast<std::uint32_t>(host.threads.size());
    place_thread(placed, number, host.spec.thread_count, host.type->p);
    host.threads.push_back({.slowdown = placed.slowdown, .far_ns = placed.far_ns});
  }
  return host.threads[index];
}

std::uint32_t Simulation::keep(std::function<void()> call) {
  if (free_calls_.empty()) {
    calls_.push_back(std::move(call));
    return static_cast<std::uint32_t>(calls_.size()) - 1;
  }
  const std::uint32_t id = free_calls_.back();
  free_calls_.pop_back();
  calls_[id] = std::move(call);
  return id;
}

void Simulation::run_call(std::uint32_t id) {
  const std::function<void()> call = std::move(calls_[id]);
  calls_[id] = nullptr;
  free_calls_.push_back(id);
  call();
}

void Simulation::at(Time time, std::function<void()> call) {
  s_.events.push(std::max(s_.now, time), event::kCall, keep(std::move(call)));
}

void Simulation::on_thread(HostId host, std::uint32_t thread, std::function<void()> call,
                           Time earliest) {
  if (!is_host(host)) return;
  if (earliest > s_.now) {
    return at(earliest, [this, host, thread, call = std::move(call)]() mutable {
      on_thread(host, thread, std::move(call), 0);
    });
  }
  give_thread(host, thread, {.call = keep(std::move(call))}, s_.now);
}

void Simulation::give_thread(HostId host, std::uint32_t index, ThreadWork work, Time t) {
  HostThread& thread = thread_of(host, index);
  thread.work.push(work);
  if (thread.scheduled) return;
  thread.scheduled = true;
  s_.events.push(std::max(t, thread.free), event::kThread, host, index);
}

void Simulation::run_thread(HostId host, std::uint32_t index) {
  HostThread& thread = thread_of(host, index);
  if (thread.free > s_.now) {
    return s_.events.push(thread.free, event::kThread, host, index);
  }
  thread.free = s_.now;
  const ThreadWork work = thread.work.pop();
  current_host_ = host;
  current_thread_ = index;
  if (work.call != 0) {
    run_call(work.call);
  } else if (const Cq* cq = cqs_.find(work.cq); cq != nullptr && cq->spec.on_event) {
    const std::function<void()> call = cq->spec.on_event;  // it may destroy its CQ
    call();
  }
  current_host_ = kNone;
  HostThread& again = thread_of(host, index);  // threads may have been added
  again.scheduled = !again.work.empty();
  if (again.scheduled) {
    s_.events.push(std::max(s_.now, again.free), event::kThread, host, index);
  }
}

void Simulation::spend(HostId host, Time ns) {
  if (!is_host(host) || !(ns > 0)) return;
  HostThread& thread = thread_of(host, thread_now(host));
  thread.free = std::max(thread.free, s_.now) + ns * thread.slowdown;
}

Time Simulation::thread_time(HostId host, std::uint32_t thread) const {
  if (!is_host(host) || thread >= hosts_[host].threads.size()) return s_.now;
  return std::max(s_.now, hosts_[host].threads[thread].free);
}

/// An error number, or 0: what the call itself looks at (InfiniBand specification, 11.4.1.1).
int Simulation::refusal(const Qp& qp, const SendRequest& request) const {
  if (qp.state < QpState::kReadyToSend) return EINVAL;
  if (request.elements.size() > qp.spec.send_elements) return EINVAL;
  if (qp.posted - qp.done >= qp.spec.send_depth) return ENOMEM;
  const bool sends = request.kind == WorkKind::kSend;
  const bool writes = request.kind == WorkKind::kWrite;
  if (request.kind >= WorkKind::kReceive) return EINVAL;
  const Transport transport = qp.spec.transport;
  if (transport == Transport::kUD && !sends) return EINVAL;
  if (transport == Transport::kUC && !sends && !writes && request.kind < WorkKind::kBindWindow) {
    return EINVAL;
  }
  if (request.invalidate && (!sends || transport != Transport::kRC)) return EINVAL;
  const bool atomic = request.kind == WorkKind::kCompareSwap || request.kind == WorkKind::kFetchAdd;
  if (atomic && hosts_[qp.host].type->p.atomic_rate_mops <= 0) return EOPNOTSUPP;
  if (!request.inlined) return 0;
  std::uint64_t bytes = 0;
  for (const Sge& sge : request.elements) bytes += sge.bytes;
  return !(sends || writes) || bytes > qp.spec.inline_bytes ? EINVAL : 0;
}

Posted Simulation::post_send(QpId id, std::span<const SendRequest> list) {
  Qp* qp = qp_numbered(id.id);
  if (qp == nullptr) return {EINVAL, 0};
  Posted posted;
  const bool idle = qp->posted == qp->done;
  for (const SendRequest& request : list) {
    posted.error = refusal(*qp, request);
    if (posted.error != 0) break;
    take(*qp, request);
    ++posted.count;
  }
  if (posted.count == 0) return posted;
  const auto count = static_cast<std::uint32_t>(posted.count);
  const Parameters& p = hosts_[qp->host].type->p;
  const std::uint32_t index = thread_now(qp->host);
  HostThread& thread = thread_of(qp->host, index);
  const double spread = 1 + Threads::kJitter * (s_.random.uniform() - 0.5);
  thread.free =
      std::max(thread.free, s_.now) + count * p.post_request_ns * thread.slowdown * spread;
  if (qp->state == QpState::kError) {
    to_error(*qp);  // what is posted is flushed
    return posted;
  }
  NicCounters& counters = nic_of(qp->host).counters;
  thread.free = pass_locks(*qp, index, thread.free);
  counters.posted += count;
  ++counters.doorbells;
  const Time arrival = thread.free + p.pcie_post_ns + s_.jitter();
  if (idle && count == 1) {  // BlueFlame: the WQE travels with the doorbell
    ++counters.blueflame_doorbells;
    ++counters.pcie_write_tlps;
    s_.events.push(arrival, event::kWqesArrive, qp->id, count);
  } else {
    s_.events.push(arrival, event::kDoorbell, qp->id, count);
  }
  return posted;
}

/// The lock around a QP that threads share, or around a doorbell register that QPs share.
Time Simulation::pass_locks(Qp& qp, std::uint32_t thread, Time t) {
  HostPart& host = hosts_[qp.host];
  if (host.spec.thread_count == 1) return t;
  const Parameters& p = host.type->p;
  const auto most = static_cast<std::size_t>(p.contention_limit_threads);
  if (qp.thread == kNone) qp.thread = thread;
  if (qp.thread != thread && !qp.lock) qp.lock = std::make_unique<ContendedLock>();
  if (qp.lock) {
    return qp.lock->pass(t, thread, {p.lock_transfer_ns, p.qp_lock_ns, p.qp_contention_ns, most});
  }
  if (qp.spec.own_doorbell) return t;
  const std::uint32_t shared = shared_register_of(qp.ordinal, p);
  if (shared == kNone) return t;
  return host.registers[shared].pass(
      t, thread, {p.lock_transfer_ns, p.doorbell_lock_ns, p.doorbell_contention_ns, most});
}

void Simulation::take(Qp& qp, const SendRequest& request) {
  if (qp.posted - qp.done >= qp.ring.size()) {  // a ring as large as was ever needed
    std::vector<Work> larger(std::max<std::size_t>(4, 2 * qp.ring.size()));
    for (std::uint32_t i = qp.done; i != qp.posted; ++i) {
      larger[i & (larger.size() - 1)] = std::move(qp.work(i));
    }
    qp.ring.swap(larger);
  }
  Work& work = qp.work(qp.posted++);
  work.id = request.id;
  work.kind = request.kind;
  work.status = WcStatus::kSuccess;
  work.signaled = request.signaled;
  work.inlined = request.inlined;
  work.has_immediate = request.has_immediate;
  work.invalidate = request.invalidate;
  work.answered = false;
  work.immediate = request.immediate;
  work.rkey = request.rkey;
  work.remote_address = request.remote_address;
  work.to_handle = request.to.id;
  work.to_qp = request.to_qp;
  work.elements.assign(request.elements);
  work.bytes = work.elements.bytes();
  const bool atomic = work.kind == WorkKind::kCompareSwap || work.kind == WorkKind::kFetchAdd;
  const Operation operation = work.kind == WorkKind::kWrite  ? Operation::kWrite
                              : work.kind == WorkKind::kRead ? Operation::kRead
                              : atomic                       ? Operation::kAtomic
                                                             : Operation::kSend;
  work.shape = shape_for(qp, operation, atomic ? sizeof(std::uint64_t) : work.bytes,
                         std::max(1U, work.elements.count), work.inlined || work.bytes == 0);
  if (!atomic && !work.inlined && work.kind != WorkKind::kBindWindow) return;
  if (!work.details) work.details = std::make_unique<WorkDetails>();
  work.details->operands = {request.compare_add, request.swap};
  work.details->bind = request.bind;
  work.details->inline_bytes.clear();
  if (!work.inlined || !real()) return;
  for (const Sge& sge : request.elements) {
    const auto* from = reinterpret_cast<const std::byte*>(sge.address);
    work.details->inline_bytes.insert(work.details->inline_bytes.end(), from, from + sge.bytes);
  }
}

namespace {

/// What its packets are.
void fill_forms(Shape& shape) {
  const RnicType& type = *shape.type;
  shape.message = shape_of(type.p, type.pcie, shape.form);
  const MessageShape& message = shape.message;
  const auto form_of = [&](const Freight& freight) {
    PacketForm form;
    form.operation = shape.form.operation;
    form.payload_bytes = freight.payload;
    form.set_wire(freight.wire_ns * type.p.link_rate_gbps / 8, type.p.link_rate_gbps);
    form.read_ns = freight.read_ns;
    form.request_ns = message.inlined ? 0 : type.pcie.request_ns(freight.payload);
    form.write_ns = freight.write_ns;
    form.stored_ns = freight.stored_ns;
    form.full_ns = message.middle.wire_ns + message.middle.stored_ns +
                   type.pcie.write_ns(shape.form.mtu_bytes);
    return form;
  };
  shape.first = form_of(message.first);
  shape.middle = form_of(message.middle);
  shape.last = form_of(message.last);
  shape.request.operation = shape.form.operation;
  shape.request.set_wire(
      packet_overhead_bytes(shape.form.overlay) +
          (shape.form.operation == Operation::kAtomic ? header::kAtomicEth : header::kReth),
      type.p.link_rate_gbps);
}

}  // namespace

/// Messages that are alike have one shape.
std::uint32_t Simulation::shape_for(Qp& qp, Operation operation, std::uint64_t bytes,
                                    std::uint32_t elements, bool inlined) {
  const RnicType& type = *hosts_[qp.host].type;
  const auto matches = [&](std::uint32_t id) {
    const Shape& shape = shapes_[id];
    return shape.form.bytes == bytes && shape.form.operation == operation &&
           shape.form.sge_count == elements && shape.form.inlined == inlined &&
           shape.form.mtu_bytes == qp.attributes.mtu_bytes && shape.type == &type &&
           shape.form.transport == qp.spec.transport;
  };
  if (qp.last_shape != kNone && matches(qp.last_shape)) return qp.last_shape;
  const std::array<std::uint64_t, 4> key = {bytes, reinterpret_cast<std::uintptr_t>(&type),
                                            std::uint64_t{elements} << 32 | qp.attributes.mtu_bytes,
                                            static_cast<std::uint64_t>(operation) << 16 |
                                                static_cast<std::uint64_t>(qp.spec.transport) << 8 |
                                                (inlined ? 1U : 0U)};
  const auto [found, fresh] =
      shape_ids_.try_emplace(key, static_cast<std::uint32_t>(shapes_.size()));
  if (fresh) {
    const MessageForm form{.operation = operation,
                           .transport = qp.spec.transport,
                           .overlay = type.overlay,
                           .inlined = inlined,
                           .mtu_bytes = qp.attributes.mtu_bytes,
                           .sge_count = elements,
                           .bytes = bytes};
    shapes_.push_back({.form = form, .type = &type});
    fill_forms(shapes_.back());
  }
  qp.last_shape = found->second;
  return qp.last_shape;
}

Posted Simulation::post_receive(QpId id, std::span<const ReceiveRequest> list) {
  Qp* qp = qp_numbered(id.id);
  if (qp == nullptr || qp->srq != nullptr || qp->state == QpState::kReset) return {EINVAL, 0};
  Posted posted;
  for (const ReceiveRequest& request : list) {
    if (request.elements.size() > qp->spec.receive_elements) return {EINVAL, posted.count};
    if (qp->receives.size() >= qp->spec.receive_depth) return {ENOMEM, posted.count};
    Receive receive{request.id, {}};
    receive.elements.assign(request.elements);
    qp->receives.push(std::move(receive));
    ++posted.count;
  }
  if (qp->state == QpState::kError) to_error(*qp);
  return posted;
}

Posted Simulation::post_receive(SrqId id, std::span<const ReceiveRequest> list) {
  Srq* srq = srqs_.find(id.id);
  if (srq == nullptr) return {EINVAL, 0};
  Posted posted;
  for (const ReceiveRequest& request : list) {
    if (request.elements.size() > kMostSrqElements) return {EINVAL, posted.count};
    if (srq->queue.size() >= srq->depth) return {ENOMEM, posted.count};
    Receive receive{request.id, {}};
    receive.elements.assign(request.elements);
    srq->queue.push(std::move(receive));
    ++posted.count;
  }
  return posted;
}

int Simulation::poll(CqId id, std::span<Completion> out) {
  Cq* cq = cqs_.find(id.id);
  if (cq == nullptr || (cq->overrun && cq->entries.empty())) return -1;
  std::size_t count = 0;
  while (count < out.size() && !cq->entries.empty()) out[count++] = cq->entries.pop();
  if (count > 0) {
    HostThread& thread = thread_of(cq->host, thread_now(cq->host));
    thread.free = std::max(thread.free, s_.now) + static_cast<double>(count) *
                                                      hosts_[cq->host].type->p.completion_ns *
                                                      thread.slowdown;
  }
  return static_cast<int>(count);
}

std::size_t Simulation::completion_count(CqId id) const {
  const Cq* const cq = cqs_.find(id.id);
  return cq == nullptr ? 0 : cq->entries.size();
}

void Simulation::arm(CqId id) {
  if (Cq* cq = cqs_.find(id.id); cq != nullptr) cq->armed = true;
}

void Simulation::complete(Cq& cq, const Completion& completion) {
  if (cq.entries.size() >= cq.spec.depth) {
    if (!cq.overrun) report(AsyncKind::kCqOverrun, cq.host, cq.id);
    cq.overrun = true;
    return;
  }
  cq.entries.push(completion);
  if (!cq.armed) return;
  cq.armed = false;
  HostThread& thread = thread_of(cq.host, cq.spec.thread);
  give_thread(cq.host, cq.spec.thread, {.cq = cq.id}, s_.now + thread.far_ns);
}

}  // namespace greynic::twin::fabric
