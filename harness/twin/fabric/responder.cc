#include <algorithm>
#include <cstring>
#include <utility>

#include "fabric/simulation.h"

/// The responder: what it checks (InfiniBand specification, 9.7.4.1), receives, memory, answers.

namespace greynic::twin::fabric {
namespace {

constexpr std::size_t kMostResults = 256;  ///< of atomics, kept for those that are sent again

}  // namespace

// ---- memory

const Memory* Simulation::memory_by_key(std::uint32_t key) const {
  const Memory* memory = memory_.find(key >> 8);
  return memory != nullptr && memory->bound && memory->tag == (key & 0xff) ? memory : nullptr;
}

const Memory* Simulation::remote_memory(const Qp& qp, std::uint32_t key, std::uint64_t address,
                                        std::uint64_t bytes, std::uint8_t access) const {
  const Memory* memory = memory_by_key(key);
  const bool allowed = memory != nullptr && memory->domain == qp.spec.domain.id &&
                       (memory->access & access) == access && memory->holds(address, bytes);
  return allowed ? memory : nullptr;
}

const Memory* Simulation::local_memory(std::uint32_t domain, const Sge& sge, bool write) const {
  const Memory* memory = memory_by_key(sge.lkey);
  const bool allowed = memory != nullptr && !memory->is_window && memory->domain == domain &&
                       (!write || (memory->access & access::kLocalWrite) != 0) &&
                       memory->holds(sge.address, sge.bytes);
  return allowed ? memory : nullptr;
}

bool Simulation::holds_all(std::uint32_t domain, const Elements& elements, bool write) const {
  for (std::uint32_t i = 0; i < elements.count; ++i) {
    if (elements[i].bytes > 0 && local_memory(domain, elements[i], write) == nullptr) return false;
  }
  return true;
}

bool Simulation::gather(std::uint32_t domain, const Elements& elements, std::uint64_t at,
                        Packet& packet) const {
  packet.payload.resize(real() ? packet.payload_bytes : 0);
  std::uint64_t begin = 0, done = 0;
  for (std::uint32_t i = 0; i < elements.count && done < packet.payload_bytes; ++i) {
    const Sge& sge = elements[i];
    if (at + done < begin + sge.bytes) {
      if (local_memory(domain, sge, false) == nullptr) return false;
      const std::uint64_t offset = at + done - begin;
      const std::uint64_t part =
          std::min<std::uint64_t>(sge.bytes - offset, packet.payload_bytes - done);
      if (real()) {
        std::memcpy(packet.payload.data() + done,
                    reinterpret_cast<const std::byte*>(sge.address + offset), part);
      }
      done += part;
    }
    begin += sge.bytes;
  }
  return true;
}

bool Simulation::scatter(std::uint32_t domain, const Elements& elements, std::uint64_t at,
                         const Packet& packet) const {
  std::uint64_t begin = 0, done = 0;
  for (std::uint32_t i = 0; i < elements.count && done < packet.payload_bytes; ++i) {
    const Sge& sge = elements[i];
    if (at + done < begin + sge.bytes) {
      if (local_memory(domain, sge, true) == nullptr) return false;
      const std::uint64_t offset = at + done - begin;
      const std::uint64_t part =
          std::min<std::uint64_t>(sge.bytes - offset, packet.payload_bytes - done);
      if (real()) {
        std::memcpy(reinterpret_cast<std::byte*>(sge.address + offset),
                    packet.payload.data() + done, part);
      }
      done += part;
    }
    begin += sge.bytes;
  }
  return true;
}

void Simulation::tell_watcher(const Memory& memory, std::uint64_t address, Time t) {
  const Memory* region = memory.is_window ? memory_.find(memory.region) : &memory;
  if (region == nullptr || !region->watch) return;
  const Watch& watch = *region->watch;
  const Parameters& p = hosts_[region->host].type->p;
  const Time seen = t + p.pcie_post_ns + s_.jitter();
  const std::uint32_t call = keep([call = watch.call, address] { call(address); });
  s_.events.push(seen, event::kCall, keep([this, host = region->host, thread = watch.thread, call] {
                   give_thread(host, thread, {.call = call}, s_.now);
                 }));
}

// ---- messages

bool Simulation::take_receive(Qp& qp) {
  if (qp.taken) return true;  // of a message that never became whole
  Fifo<Receive>& queue = qp.srq != nullptr ? qp.srq->queue : qp.receives;
  if (queue.empty()) return false;
  qp.taken = queue.pop();
  if (qp.srq != nullptr && qp.srq->limit > 0 && queue.size() < qp.srq->limit) {
    qp.srq->limit = 0;
    report(AsyncKind::kSrqLimit, qp.host, qp.srq->id);
  }
  return true;
}

/// The first packet of a message: does the receiver take it?
bool Simulation::begin_message(Qp& qp, Packet& packet) {
  const bool reliable = qp.spec.transport == Transport::kRC;
  const bool sends = packet.kind == PacketKind::kSendData;
  qp.message_at = 0;
  qp.write_key = 0;
  if (!sends && (qp.attributes.access & access::kRemoteWrite) == 0) {
    if (reliable) refuse(qp, packet, WcStatus::kRemoteInvalidRequest);
    return false;
  }
  if (!sends && packet.bytes > 0) {
    if (remote_memory(qp, packet.rkey, packet.remote_address, packet.bytes, access::kRemoteWrite) ==
        nullptr) {
      if (reliable) refuse(qp, packet, WcStatus::kRemoteAccess);
      return false;
    }
    qp.write_address = packet.remote_address;
    qp.write_key = packet.rkey;
  }
  if (!sends && !packet.has_immediate) return true;
  if (!take_receive(qp)) {
    if (!reliable) {
      ++nic_of(qp.host).counters.out_of_buffer;
      return false;
    }
    ++nic_of(qp.host).counters.rnr_naks;
    qp.nak_sent = true;  // what follows is out of sequence
    answer(qp, PacketKind::kNotReady, packet.message, 0);
    return false;
  }
  if (!sends) return true;
  const std::uint64_t header = packet.transport == Transport::kUD ? kRoutingHeader : 0;
  const Elements& elements = qp.taken->elements;
  WcStatus own = WcStatus::kSuccess;
  if (elements.bytes() < packet.bytes + header) own = WcStatus::kLocalLength;
  if (own == WcStatus::kSuccess && !holds_all(qp.spec.domain.id, elements, true)) {
    own = WcStatus::kLocalProtection;
  }
  const bool invalidated = packet.invalidates && reliable;
  if (own == WcStatus::kSuccess && invalidated) {
    Memory* window = memory_.find(packet.rkey >> 8);
    if (memory_by_key(packet.rkey) == nullptr || !window->is_window ||
        window->domain != qp.spec.domain.id) {
      qp.taken.reset();
      refuse(qp, packet, WcStatus::kRemoteAccess);
      return false;
    }
    window->bound = false;
    --memory_.find(window->region)->windows;
  }
  if (own == WcStatus::kSuccess) return true;
  fail_receive(qp, qp.taken->id, own);
  qp.taken.reset();
  if (reliable) {
    refuse(qp, packet,
           own == WcStatus::kLocalLength ? WcStatus::kRemoteInvalidRequest
                                         : WcStatus::kRemoteOperation);
  } else {
    to_error(qp);
  }
  return false;
}

/// The end of a WRITE goes to memory when the message is delivered, so that who polls memory sees it no earlier; and
/// before anything else that the QP takes, whose order to it is promised.
void Simulation::place(Qp& qp) {
  if (qp.unplaced == nullptr) return;
  const Packet& packet = *std::exchange(qp.unplaced, nullptr);
  --unplaced_;
  const std::uint64_t end = packet.remote_address + packet.bytes;
  std::memcpy(reinterpret_cast<std::byte*>(end - packet.payload_bytes), packet.payload.data(),
              packet.payload_bytes);
}

/// A message is whole in memory.
void Simulation::delivered(Qp& qp, std::uint32_t id) {
  Packet& packet = s_.packets[id];
  Nic& nic = nic_of(qp.host);
  const RnicType& type = *hosts_[qp.host].type;
  const bool sends = packet.kind == PacketKind::kSendData;
  if (qp.unplaced == &packet) place(qp);
  ++(sends ? nic.counters.send_messages : nic.counters.write_requests);
  if (!sends && packet.rkey != 0) {
    if (const Memory* memory = memory_by_key(packet.rkey)) {
      tell_watcher(*memory, packet.remote_address, s_.now);
    }
  }
  if (packet.transport == Transport::kRC && qp.receives_packets()) {
    answer(qp, PacketKind::kAck, packet.message + 1, 0);
  }
  const bool receives = packet.receives;
  s_.packets.give_back(id);
  if (!receives) return;
  ++nic.counters.completions;
  nic.receive_path.pass(s_.now, type.write_completion_ns);
  const Time seen = s_.now + type.p.pcie_post_ns + s_.jitter();
  qp.received_at = std::max(qp.received_at, seen);
  s_.events.push(qp.received_at, event::kReceived, qp.id);
}

/// The last packet of a message that took a receive is there.
void Simulation::note_received(Qp& qp, const Packet& packet) {
  const bool sends = packet.kind == PacketKind::kSendData;
  const bool datagram = packet.transport == Transport::kUD;
  qp.received.push({.id = qp.taken->id,
                    .kind = sends ? WorkKind::kReceive : WorkKind::kReceiveWriteImm,
                    .has_immediate = packet.has_immediate,
                    .immediate = packet.immediate,
                    .qp = qp.number,
                    .from_qp = datagram ? packet.from_qp : 0,
                    .from_host = datagram ? packet.from : 0,
                    .bytes = packet.bytes + (datagram ? kRoutingHeader : 0)});
  qp.taken.reset();
}

/// A receive fails; what came before it is told first.
void Simulation::fail_receive(Qp& qp, std::uint64_t id, WcStatus status) {
  while (!qp.received.empty()) complete(*qp.receive_cq, qp.received.pop());
  complete(*qp.receive_cq,
           {.id = id, .status = status, .kind = WorkKind::kReceive, .qp = qp.number});
}

// ---- answers

/// A READ or an atomic. `again`: the requester has asked for it before.
void Simulation::respond(Qp& qp, const Packet& packet, bool again, Time t) {
  Nic& nic = nic_of(qp.host);
  const RnicType& type = *hosts_[qp.host].type;
  const bool atomic = packet.kind == PacketKind::kAtomicRequest;
  const std::uint8_t needed = atomic ? access::kRemoteAtomic : access::kRemoteRead;
  const bool aligned = !atomic || packet.remote_address % sizeof(std::uint64_t) == 0;
  if ((qp.attributes.access & needed) == 0 || !aligned ||
      (atomic && type.p.atomic_rate_mops <= 0)) {
    return refuse(qp, packet, WcStatus::kRemoteInvalidRequest);
  }
  if (packet.bytes > 0 &&
      remote_memory(qp, packet.rkey, packet.remote_address, packet.bytes, needed) == nullptr) {
    return refuse(qp, packet, WcStatus::kRemoteAccess);
  }
  Response response{.kind = atomic ? PacketKind::kAtomicResponse : PacketKind::kReadResponse,
                    .message = packet.message,
                    .index = atomic ? 0 : packet.index,
                    .psn = packet.psn,
                    .address = packet.remote_address,
                    .bytes = packet.bytes,
                    .key = packet.rkey};
  if (atomic) {
    ++nic.counters.atomic_requests;
    t = nic.atomics.pass(t, 1e3 / type.p.atomic_rate_mops);
    if (!run_atomic(qp, packet, again, response.value)) return;
  } else {
    ++nic.counters.read_requests;
  }
  if (!again) ++qp.expected_message;
  qp.operation = packet.form->operation;
  response.shape = shape_for(qp, atomic ? Operation::kAtomic : Operation::kRead, packet.bytes, 1,
                             packet.bytes == 0);
  if (misses_translation(qp.host, packet.rkey, packet.remote_address)) {
    t += type.p.pcie_read_latency_ns;
  }
  qp.responses.push(response);
  // An atomic may wait long for its turn, and holds no read slot meanwhile.
  if (atomic) return s_.events.push(t, event::kAnswerWanted, qp.id, response.shape);
  answer_wanted(qp, response.shape, t);
}

/// The memory of an answer is read from t on.
void Simulation::answer_wanted(Qp& qp, std::uint32_t shape_id, Time t) {
  const Parameters& p = hosts_[qp.host].type->p;
  const MessageShape& shape = shapes_[shape_id].message;
  const Time start = begin_payload(nic_of(qp.host), p, shape, t);
  s_.events.push(start + payload_latency(p, shape), event::kResponseReady, qp.id);
}

/// False: its result is not kept any more.
bool Simulation::run_atomic(Qp& qp, const Packet& packet, bool again, std::uint64_t& result) {
  if (again) {
    for (const auto& [message, value] : qp.atomic_results) {
      if (message != packet.message) continue;
      result = value;
      return true;
    }
    return false;
  }
  std::uint64_t before = 0;
  if (real()) {
    auto* place = reinterpret_cast<std::byte*>(packet.remote_address);
    std::memcpy(&before, place, sizeof before);
    AtomicOperands operands;
    std::memcpy(&operands, packet.payload.data(), sizeof operands);
    std::uint64_t after = before + operands.compare_add;
    const bool swaps = packet.has_immediate;  // compare and swap
    if (swaps) after = before == operands.compare_add ? operands.swap : before;
    std::memcpy(place, &after, sizeof after);
  }
  result = before;
  if (qp.atomic_results.size() == kMostResults) qp.atomic_results.erase(qp.atomic_results.begin());
  qp.atomic_results.emplace_back(packet.message, before);
  if (const Memory* memory = memory_by_key(packet.rkey)) {
    tell_watcher(*memory, packet.remote_address, s_.now);
  }
  return true;
}

/// The request is not carried out, and the QP is of no use any more.
void Simulation::refuse(Qp& qp, const Packet& packet, WcStatus status) {
  qp.refusing = true;
  answer(qp, PacketKind::kErrorNak, packet.message, 0, status);
}

/// Words do not overtake the data of READs that were asked for before, and do not wait for that of
/// READs that came after.
void Simulation::answer(Qp& qp, PacketKind kind, std::uint32_t message, std::uint32_t index,
                        WcStatus status) {
  const auto came_after = [message](const Response& other) {
    return static_cast<std::int32_t>(other.message - message) >= 0;
  };
  Fifo<Response>& responses = qp.responses;
  if (responses.empty() || came_after(responses.front())) {
    return send_word(qp, kind, message, index, status);
  }
  responses.push({.kind = kind,
                  .message = message,
                  .index = index,
                  .value = static_cast<std::uint64_t>(status)});
  for (std::size_t i = responses.size() - 1; came_after(responses[i - 1]); --i) {
    std::swap(responses[i - 1], responses[i]);
  }
}

void Simulation::send_word(Qp& qp, PacketKind kind, std::uint32_t message, std::uint32_t index,
                           WcStatus status) {
  const std::uint32_t id = s_.packets.take();
  Packet& packet = s_.packets[id];
  packet.kind = kind;
  packet.transport = qp.spec.transport;
  packet.first = packet.last = true;
  packet.from = qp.host;
  packet.from_qp = qp.number;
  packet.to = qp.attributes.peer_host;
  packet.to_qp = qp.attributes.peer_qp;
  packet.message = message;
  packet.index = index;
  packet.psn = message;
  packet.status = status;
  const auto operation = static_cast<std::size_t>(qp.operation);
  const RnicType& type = *hosts_[qp.host].type;
  packet.form =
      kind == PacketKind::kCongested ? &type.notifications[operation] : &type.words[operation];
  packet.immediate = static_cast<std::uint32_t>(qp.attributes.min_rnr_timer);
  ++nic_of(qp.host).counters.acks;
  (void)transmit(qp.host, id);
  if (kind != PacketKind::kErrorNak) return;
  report(status == WcStatus::kRemoteAccess ? AsyncKind::kQpAccessError : AsyncKind::kQpRequestError,
         qp.host, qp.number);
  to_error(qp);
}

}  // namespace greynic::twin::fabric
