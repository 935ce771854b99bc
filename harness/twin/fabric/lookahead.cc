#include <algorithm>
#include <array>
#include <span>

#include "fabric/simulation.h"

/// With many hosts, little of what an event looks at is in the CPU's caches, and each step from object
/// to object waits for memory. So the next events are prepared together: each step is made for all of
/// them, and their memory comes at the same time. Nothing here changes anything but the time that a
/// run takes.

namespace greynic::twin::fabric {
namespace {

constexpr std::size_t kTogether = 32;     ///< events
constexpr std::size_t kFewEvents = 4000;  ///< under way, whose hosts stay in the caches
constexpr std::uint32_t kLookAgain = 4096;

}  // namespace

struct Simulation::Ahead {
  Event event;
  Packet* packet = nullptr;
  HostPart* host = nullptr;
  Qp* qp = nullptr;
};

void Simulation::look_ahead() {
  ahead_ = kLookAgain;
  if (s_.events.size() < kFewEvents) return;
  ahead_ = kTogether - 1;
  std::array<Ahead, kTogether> all;
  std::size_t count = 0;
  s_.events.look_ahead(kTogether, [&](const Event& event) { all[count++] = {.event = event}; });
  const std::span ahead(all.data(), count);
  for (Ahead& a : ahead) prefetch_subject(a);
  for (Ahead& a : ahead) prefetch_next(a);
  for (Ahead& a : ahead) prefetch_nic(a);
  for (Ahead& a : ahead) prefetch_work(a);
  for (Ahead& a : ahead) prefetch_bytes(a, false);
  for (Ahead& a : ahead) prefetch_bytes(a, true);
}

void Simulation::prefetch_subject(Ahead& a) {
  const std::uint32_t id = a.event.subject;
  switch (a.event.kind) {
    case event::kAtSwitch:
    case event::kAtHost:
    case event::kDelivered:
      a.packet = &s_.packets[id];
      return prefetch(a.packet);
    case event::kUnitDone:
    case event::kEngineStep:
    case event::kPlaceFree:
    case event::kThread:
      a.host = &hosts_[id];
      prefetch(a.host, 64);
      return prefetch(&a.host->threads);
    case event::kPortFree:
    case event::kPausePort:
    case event::kPauseHost:
    case event::kDropped:
    case event::kCall:
    case event::kSeen:
      return;
    default:
      a.qp = qps_.find(id);
      if (a.qp != nullptr) prefetch(a.qp, 256);
  }
}

/// From the subject to its host, and from a packet to its QP.
void Simulation::prefetch_next(Ahead& a) {
  if (a.packet != nullptr && a.event.kind == event::kAtSwitch) {
    return network_.prefetch_at_switch(*a.packet, 0);
  }
  if (a.packet != nullptr) {
    a.host = &hosts_[a.packet->to];
    a.qp = qp_numbered(a.packet->to_qp);
    if (a.qp != nullptr) prefetch(a.qp, 320);
    if (a.event.kind == event::kAtHost && carries_payload(a.packet->kind)) {
      prefetch(&hosts_[a.packet->from], 128);
      if (a.packet->rkey != 0 && real()) {
        prefetch(reinterpret_cast<const std::byte*>(a.packet->remote_address),
                 std::min<std::size_t>(a.packet->payload_bytes, 256));
      }
    }
    return prefetch(a.host, 320);
  }
  if (a.qp != nullptr) {
    a.host = &hosts_[a.qp->host];
    prefetch(a.host, 64);
    if (a.qp->ring.empty()) return;
    const std::uint32_t number = a.event.kind == event::kDataReady      ? a.qp->requests.sent
                                 : a.event.kind == event::kAcknowledged ? a.qp->done
                                                                        : a.qp->fetched;
    prefetch(&a.qp->work(number));
    if (a.event.kind == event::kAcknowledged) prefetch(a.qp->send_cq);
    return;
  }
  if (a.host != nullptr && a.event.kind == event::kThread &&
      a.event.count < a.host->threads.size()) {
    prefetch(&a.host->threads[a.event.count]);
  }
  if (a.host != nullptr && a.host->nic) prefetch(&a.host->nic->units);
}

void Simulation::prefetch_nic(Ahead& a) {
  if (a.packet != nullptr && a.event.kind == event::kAtSwitch) {
    return network_.prefetch_at_switch(*a.packet, 1);
  }
  if (a.host == nullptr || !a.host->nic) return;
  Nic& nic = *a.host->nic;
  prefetch(&nic.counters, 64);
  switch (a.event.kind) {
    case event::kUnitDone:
      prefetch(&nic.units[a.event.count]);
      prefetch(&nic.transmit_walk);
      prefetch(&nic.wire, sizeof nic.wire + sizeof nic.transmit_buffer);
      prefetch(&nic.receive_path);
      prefetch(&nic.read_link);
      return prefetch(&nic.counters.tx_hops);
    case event::kAtHost:
      prefetch(&nic.receive_walk);
      prefetch(&nic.receive_path, sizeof nic.receive_path + sizeof nic.receive_buffer);
      prefetch(&nic.contexts, 64);
      return prefetch(&nic.counters.rx_hops);
    case event::kDelivered:
      prefetch(&nic.transmit_walk);
      prefetch(&nic.wire, sizeof nic.wire + sizeof nic.transmit_buffer);
      return prefetch(&nic.counters.tx_hops);
    case event::kThread: {
      const HostThread& thread = a.host->threads[a.event.count];
      if (!thread.work.empty()) prefetch(&thread.work.front());
      return prefetch(&nic.counters.doorbells);
    }
    case event::kDoorbell:
      return prefetch(&nic.read_slots);
    case event::kWqesArrive:
      prefetch(&nic.requests, 64);
      prefetch(&nic.translations, 64);
      prefetch(&nic.wqes, 64);
      return prefetch(&nic.read_slots);
    case event::kDataReady:
      prefetch(&nic.units, 64);
      return prefetch(&nic.contexts, 64);
    case event::kAcknowledged:
      return prefetch(&nic.receive_path);
    default:
      return;
  }
}

/// What a unit sends, whom a thread calls, and where stages stand.
void Simulation::prefetch_work(Ahead& a) {
  if (a.event.kind == event::kAtSwitch) return network_.prefetch_at_switch(*a.packet, 2);
  if (a.host == nullptr || !a.host->nic) return;
  const Nic& nic = *a.host->nic;
  switch (a.event.kind) {
    case event::kUnitDone: {
      prefetch(nic.transmit_buffer.next());
      const std::uint32_t head = nic.units[a.event.count].head;
      a.qp = head != kNone ? qps_.find(head >> 1) : nullptr;
      if (a.qp != nullptr) prefetch(a.qp, 256);
      return;
    }
    case event::kThread: {
      const Fifo<ThreadWork>& work = a.host->threads[a.event.count].work;
      const Cq* cq = work.empty() ? nullptr : cqs_.find(work.front().cq);
      if (cq != nullptr) prefetch(cq);
      return;
    }
    case event::kDelivered:
      return prefetch(nic.transmit_buffer.next());
    case event::kAtHost:
      prefetch(nic.receive_buffer.next());
      if (const Memory* memory = memory_.find(a.packet->rkey >> 8)) prefetch(memory);
      return;
    case event::kWqesArrive:
      if (nic.request_count == 0 && !nic.requests.empty()) {
        prefetch(&nic.requests[nic.request_head]);
      }
      [[fallthrough]];
    case event::kDoorbell:
      prefetch(nic.read_slots.next());
      if (a.qp != nullptr && !a.qp->ring.empty()) prefetch_memory(a.qp->work(a.qp->fetched));
      return;
    default:
      return;
  }
}

/// A unit's request, and then where its bytes lie.
void Simulation::prefetch_bytes(Ahead& a, bool deep) {
  if (a.event.kind != event::kUnitDone || a.qp == nullptr || a.qp->ring.empty()) return;
  const Work& work = a.qp->work(a.qp->requests.sent);
  if (!deep) return prefetch(&work);
  prefetch_memory(work);
  if (real() && work.elements.count > 0 && !work.asks()) {
    prefetch(reinterpret_cast<const std::byte*>(work.elements.first.address),
             std::min<std::size_t>(work.elements.first.bytes, 256));
  }
}

void Simulation::prefetch_memory(const Work& work) const {
  const Memory* memory =
      work.elements.count > 0 ? memory_.find(work.elements.first.lkey >> 8) : nullptr;
  if (memory != nullptr) prefetch(memory);
}

}  // namespace greynic::twin::fabric
