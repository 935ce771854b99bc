#include <algorithm>
#include <bit>
#include <cstring>

#include "fabric/simulation.h"

/// The way out of an RNIC: processing units take QPs in turn, and each packet walks through the
/// eSwitch to the wire. What parts/processing_units.h and parts/path.h do for one workload, up to
/// the wire's end.

namespace greynic::twin::fabric {
namespace {

constexpr double kUnitJitter = 0.02;  ///< spread of a packet's time in the unit

}  // namespace

bool Simulation::has_work(Qp& qp, bool answers) {
  if (qp.gone) return false;
  if (answers) return qp.answers.sent != qp.answers.ready;
  const Lane& lane = qp.requests;
  if (qp.state != QpState::kReadyToSend || qp.resting) return false;
  if (lane.ready - qp.done <= lane.sent - qp.done) return false;
  const Work& work = qp.work(lane.sent);
  if (work.status != WcStatus::kSuccess) return false;
  return lane.packet > 0 || !work.asks() || qp.reads_open < qp.attributes.most_reads;
}

void Simulation::activate(Qp& qp, bool answers, Time t) {
  Lane& lane = answers ? qp.answers : qp.requests;
  if (lane.in_ring || !has_work(qp, answers) || is_ahead(qp, lane)) return;
  Nic& nic = nic_of(qp.host);
  const auto index = static_cast<std::uint32_t>(qp.ordinal % nic.units.size());
  const std::uint32_t id = qp.id << 1 | (answers ? 1U : 0U);
  Unit& unit = nic.units[index];
  lane.in_ring = true;
  lane.next = kNone;
  call_context(qp, lane, t);
  if (unit.head == kNone) {
    unit.head = unit.tail = id;
    s_.events.push(begin_turn(qp.host, index, t), event::kUnitDone, qp.host, index);
  } else {
    lane_of(unit.tail).next = id;
    unit.tail = id;
  }
}

void Simulation::call_context(Qp& qp, Lane& lane, Time t) {
  Nic& nic = nic_of(qp.host);
  if (nic.contexts.never_misses() || nic.contexts.touch(qp.ordinal)) return;
  ++nic.counters.context_misses;
  // RC keeps requester and acknowledgement state, which are fetched one beside the other.
  const Time fetch_ns = hosts_[qp.host].type->p.context_fetch_ns;
  Time there = nic.fetch_slots.pass(t, fetch_ns);
  if (qp.spec.transport == Transport::kRC) there = nic.fetch_slots.pass(t, fetch_ns);
  lane.not_before = std::max(lane.not_before, there);
}

Time Simulation::service_time(const HostPart& host) {
  return host.type->packet_ns * (1 + kUnitJitter * (s_.random.uniform() - 0.5)) + host.unit_ns;
}

Time Simulation::begin_turn(HostId host, std::uint32_t index, Time t) {
  Unit& unit = hosts_[host].nic->units[index];
  unit.turn_left = kTurnPackets;
  return std::max({unit.free, t, lane_of(unit.head).not_before}) + service_time(hosts_[host]);
}

/// A unit is done with a packet of the lane at its head.
void Simulation::unit_done(HostId id, std::uint32_t index) {
  HostPart& host = hosts_[id];
  Nic& nic = nic_of(id);
  if (host.waiting.size() >= static_cast<std::size_t>(host.type->p.transmit_buffer_packets)) {
    return host.blocked.push(index);
  }
  Unit& unit = nic.units[index];
  const std::uint32_t lane_id = unit.head;
  Qp& qp = *qps_.find(lane_id >> 1);
  const bool answers = (lane_id & 1) != 0;
  Lane& lane = answers ? qp.answers : qp.requests;
  if (has_work(qp, answers)) {
    const bool begins = unit.turn_left == kTurnPackets;
    const bool sent = answers ? send_answer_packet(qp, begins) : send_request_packet(qp, begins);
    // A full transmit buffer holds the unit.
    if (sent) unit.free = nic.transmit_buffer.admit(s_.now);
    if (sent && lane.packet > 0 && --unit.turn_left > 0) {
      return s_.events.push(unit.free + service_time(host), event::kUnitDone, id, index);
    }
  }
  unit.head = lane.next;
  if (unit.head == kNone) unit.tail = kNone;
  lane.in_ring = false;
  if (has_work(qp, answers) && !is_ahead(qp, lane)) {
    lane.in_ring = true;
    lane.next = kNone;
    call_context(qp, lane, s_.now);
    if (unit.head == kNone) {
      unit.head = lane_id;
    } else {
      lane_of(unit.tail).next = lane_id;
    }
    unit.tail = lane_id;
  } else if (qp.gone && !qp.requests.in_ring && !qp.answers.in_ring) {
    qps_.remove(qp.id);
  }
  if (unit.head != kNone) {
    s_.events.push(begin_turn(id, index, s_.now), event::kUnitDone, id, index);
  }
}

/// DCQCN: is the QP ahead of its rate? Then it joins its unit's ring later.
bool Simulation::is_ahead(Qp& qp, Lane& lane) {
  if (!qp.pace) return false;
  const Time allowed = qp.pace->limiter.allowed_at();
  if (allowed <= s_.now) return false;
  if (!lane.held) {
    s_.events.push(allowed, event::kReleased, qp.id, &lane == &qp.answers ? 1 : 0);
  }
  lane.held = true;
  return true;
}

namespace {

/// Which packet of a message this is.
void load(Packet& packet, const Shape& shape, std::uint32_t index) {
  packet.index = index;
  packet.first = index == 0;
  packet.last = index + 1 == shape.message.packets;
  packet.form = &shape.form_of(index);
  packet.payload_bytes = packet.form->payload_bytes;
  packet.bytes = shape.message.bytes;
}

}  // namespace

/// The QP was idle: the second burst of a message is read while the first is sent, which takes
/// longer.
void Simulation::wait_for_burst(const Qp& qp, Lane& lane, const MessageShape& shape) {
  const RnicType& type = *hosts_[qp.host].type;
  lane.not_before =
      std::max(lane.not_before,
               s_.now - type.packet_ns + type.p.pcie_read_latency_ns + shape.first_read_ns());
}

/// False: there is nothing to send for now.
bool Simulation::send_request_packet(Qp& qp, bool turn_begins) {
  Lane& lane = qp.requests;
  Work& work = qp.work(lane.sent);
  if (work.asks() && static_cast<std::int32_t>(qp.answer_message - lane.sent) > 0) {
    ++lane.sent;  // the answer came while it was about to ask once more
    return true;
  }
  if (work.is_local()) {
    run_local(qp, work);
    ++lane.sent;
    finish_requests(qp);
    return true;
  }
  const Shape& shape = shapes_[work.shape];
  const std::uint32_t id = s_.packets.take();
  Packet& packet = s_.packets[id];
  packet.transport = qp.spec.transport;
  packet.from = qp.host;
  packet.from_qp = qp.number;
  packet.to = qp.attributes.peer_host;
  packet.to_qp = qp.attributes.peer_qp;
  if (qp.spec.transport == Transport::kUD) {
    const AddressHandle* handle = handles_.find(work.to_handle);
    packet.to = handle != nullptr ? handle->to : qp.host;
    packet.to_qp = work.to_qp;
  }
  packet.message = lane.sent;
  packet.remote_address = work.remote_address;
  packet.rkey = work.rkey;
  packet.has_immediate = work.has_immediate;
  packet.invalidates = work.invalidate;
  packet.immediate = work.immediate;
  packet.turn_begins = turn_begins;
  if (work.asks()) {
    packet.kind =
        work.kind == WorkKind::kRead ? PacketKind::kReadRequest : PacketKind::kAtomicRequest;
    packet.has_immediate = work.kind == WorkKind::kCompareSwap;
    packet.form = &shape.request;
    packet.first = packet.last = true;
    packet.index = lane.sent == qp.answer_message ? qp.answer_index : 0;
    packet.bytes = shape.message.bytes;
    if (work.kind != WorkKind::kRead) {
      const AtomicOperands& operands = work.details->operands;
      std::memcpy(packet.payload.resize(sizeof operands), &operands, sizeof operands);
    }
    packet.psn = work.psn + packet.index;
    ++lane.sent;
    ++qp.reads_open;
    leave(qp.host, id);
    arm_timer(qp);
    return true;
  }
  packet.kind = work.kind == WorkKind::kWrite ? PacketKind::kWriteData : PacketKind::kSendData;
  load(packet, shape, lane.packet);
  packet.psn = work.psn + packet.index;
  const std::uint64_t at = std::uint64_t{packet.index} * shape.form.mtu_bytes;
  if (real() && work.inlined) {
    packet.payload.assign(work.details->inline_bytes.data() + at, packet.payload_bytes);
  } else if (!gather(qp.spec.domain.id, work.elements, at, packet)) {
    s_.packets.give_back(id);
    work.status = WcStatus::kLocalProtection;
    finish_requests(qp);
    return false;
  }
  if (packet.first && shape.message.packets > kTurnPackets && !shape.message.inlined &&
      lane.ready - lane.sent == 1) {
    wait_for_burst(qp, lane, shape.message);
  }
  if (qp.pace) qp.pace->limiter.send(hosts_[qp.host].type->dcqcn, packet.form->wire_bytes, s_.now);
  lane.packet = packet.last ? 0 : lane.packet + 1;
  const bool last = packet.last;
  if (last) ++lane.sent;
  const Time wire_end = leave(qp.host, id);
  if (last && qp.spec.transport != Transport::kRC) {
    s_.events.push(wire_end + hosts_[qp.host].type->p.pcie_post_ns, event::kSentOff, qp.id,
                   lane.sent - 1);
  } else if (last) {
    arm_timer(qp);
  }
  return true;
}

bool Simulation::send_answer_packet(Qp& qp, bool turn_begins) {
  Lane& lane = qp.answers;
  Response& response = qp.responses.front();
  const Shape& shape = shapes_[response.shape];
  const std::uint32_t index = response.index + lane.packet;
  const std::uint32_t id = s_.packets.take();
  Packet& packet = s_.packets[id];
  packet.kind = response.kind;
  packet.from = qp.host;
  packet.from_qp = qp.number;
  packet.to = qp.attributes.peer_host;
  packet.to_qp = qp.attributes.peer_qp;
  packet.message = response.message;
  packet.turn_begins = turn_begins;
  load(packet, shape, index);
  packet.psn = response.psn + lane.packet;
  if (packet.first && shape.message.packets > kTurnPackets && lane.ready - lane.sent == 1) {
    wait_for_burst(qp, lane, shape.message);
  }
  bool there = true;
  if (response.kind == PacketKind::kAtomicResponse) {
    std::memcpy(packet.payload.resize(sizeof response.value), &response.value,
                sizeof response.value);
  } else {
    const std::uint64_t at = std::uint64_t{index} * shape.form.mtu_bytes;
    // No key is looked at for no bytes.
    there = response.bytes == 0 || remote_memory(qp, response.key, response.address, response.bytes,
                                                 access::kRemoteRead) != nullptr;
    if (there && real() && response.bytes > 0) {
      const auto* bytes = reinterpret_cast<const std::byte*>(response.address + at);
      packet.payload.assign(bytes, packet.payload_bytes);
    }
  }
  if (!there) {  // the region has gone while it was read
    s_.packets.give_back(id);
    const std::uint32_t message = response.message;
    qp.responses.clear();
    qp.answers.ready = qp.answers.sent;
    lane.packet = 0;
    answer(qp, PacketKind::kErrorNak, message, 0, WcStatus::kRemoteAccess);
    return false;
  }
  if (qp.pace) qp.pace->limiter.send(hosts_[qp.host].type->dcqcn, packet.form->wire_bytes, s_.now);
  const bool last = packet.last;
  lane.packet = last ? 0 : lane.packet + 1;
  (void)leave(qp.host, id);
  if (!last) return true;
  ++lane.sent;
  (void)qp.responses.pop();
  // Words that had to wait for it.
  while (!qp.responses.empty() && !carries_payload(qp.responses.front().kind)) {
    const Response word = qp.responses.pop();
    send_word(qp, word.kind, word.message, word.index, static_cast<WcStatus>(word.value));
  }
  return true;
}

/// A packet has left its unit. Returns when its last byte is on the wire; when it has to wait, that
/// is not known, and now is returned.
Time Simulation::leave(HostId id, std::uint32_t packet) {
  HostPart& host = hosts_[id];
  const bool data = carries_payload(s_.packets[packet].kind);
  const bool looped = s_.packets[packet].to == id;
  if (data && !looped && (host.paused || !host.waiting.empty() || loop_is_full(host))) {
    host.waiting.push(packet);
    await_place(host, id);
    return s_.now;
  }
  return transmit(id, packet);
}

/// Who has left the closed loop is only looked at when it seems to be full.
bool Simulation::loop_is_full(HostPart& host) {
  const std::size_t window = host.type->loop_window;
  if (window == 0 || host.in_loop < window) return false;
  while (!host.places.empty() && host.places.front() <= s_.now) {
    (void)host.places.pop();
    --host.in_loop;
  }
  return host.in_loop >= window;
}

/// A packet of the host leaves the closed loop at t, if it is in one.
void Simulation::leave_loop(HostId id, Time t) {
  HostPart& host = hosts_[id];
  if (host.places.size() >= host.in_loop) return;
  host.places.push(t);
  for (std::size_t i = host.places.size() - 1; i > 0 && host.places[i - 1] > t; --i) {
    std::swap(host.places[i - 1], host.places[i]);
  }
  if (!host.waiting.empty()) await_place(host, id);
}

/// Who waits goes on when the next packet leaves the loop.
void Simulation::await_place(HostPart& host, HostId id) {
  if (host.paused || host.places.empty() || host.places.front() >= host.place_awaited) return;
  host.place_awaited = host.places.front();
  s_.events.push(std::max(s_.now, host.place_awaited), event::kPlaceFree, id);
}

void Simulation::place_free(HostId id) {
  hosts_[id].place_awaited = kNever;
  drain_waiting(id);
}

Time Simulation::transmit(HostId id, std::uint32_t packet_id) {
  HostPart& host = hosts_[id];
  Nic& nic = nic_of(id);
  Packet& packet = s_.packets[packet_id];
  const bool data = carries_payload(packet.kind);
  const bool looped = packet.to == id;
  const PacketForm& form = *packet.form;
  Time start = s_.now;
  if (data) {
    // Payload comes over PCIe; packets that follow one another share the link.
    start = std::max(start, nic.read_link.free());
    nic.read_link.hold_until(start + form.read_ns);
    if (form.request_ns > 0) nic.receive_path.pass(start, form.request_ns);
    nic.counters.tx_bytes += packet.payload_bytes;
    if (host.type->loop_window > 0) {
      (void)loop_is_full(host);  // those who have left make room
      ++host.in_loop;
    }
  }
  ++nic.counters.tx_packets;
  const Crossing& encap = host.encap[static_cast<std::size_t>(form.operation)];
  nic.counters.tx_hops += encap.hops;
  const Time out = nic.transmit_walk.pass(start, encap.latency, encap.occupancy, data);
  const Time wire_ns = form.wire_ns * (looped ? 1 : host.stretch);
  const Time wire_end = looped ? out + wire_ns : nic.wire.pass(out, wire_ns);
  nic.transmit_buffer.enter(wire_end);
  if (looped) {
    s_.events.push(wire_end, event::kAtHost, packet_id);
    return wire_end;
  }
  if (host.observer != nullptr) [[unlikely]]
    note_egress(host, id, packet, out, wire_end - wire_ns);
  network_.send(packet_id, wire_end + host.type->one_way_ns / 2);
  return wire_end;
}

/// PFC: the switch tells a host to stop, or to go on. What is on its way to the wire still goes.
void Simulation::pause_host(HostId id, bool pause) {
  HostPart& host = hosts_[id];
  if (pause == host.paused) return;
  host.paused = pause;
  if (pause) {
    host.paused_since = s_.now;
    return;
  }
  nic_of(id).counters.rx_pause += s_.now - host.paused_since;
  drain_waiting(id);
}

void Simulation::drain_waiting(HostId id) {
  HostPart& host = hosts_[id];
  while (!host.waiting.empty() && !host.paused && !loop_is_full(host)) {
    (void)transmit(id, host.waiting.pop());
    if (!host.blocked.empty()) unit_done(id, host.blocked.pop());
  }
  if (!host.waiting.empty()) await_place(host, id);
}

/// The queue of a host's port is a closed form: what leaves it is known before it does. An observer
/// is told when nothing can come any more that belongs into the depth.
void Simulation::note_egress(HostPart& host, HostId id, const Packet& packet, Time enqueued,
                             Time dequeued) {
  PacketRecord record = record_of(packet, {.of_host = true, .device = id});
  if (!host.unreported.empty()) enqueued = std::max(enqueued, host.unreported.back().enqueued);
  report_egress(host, enqueued);
  record.enqueued = enqueued;
  record.dequeued = std::max(dequeued, enqueued);
  record.depth_at_enqueue = record.bytes;
  for (const PacketRecord& before : host.unreported) {
    if (before.dequeued > enqueued) record.depth_at_enqueue += before.bytes;
  }
  host.unreported.push_back(record);
}

void Simulation::report_egress(HostPart& host, Time until) {
  while (!host.unreported.empty() && host.unreported.front().dequeued < until) {
    PacketRecord record = host.unreported.front();
    host.unreported.pop_front();
    for (const PacketRecord& after : host.unreported) {
      if (after.enqueued < record.dequeued) record.depth_at_dequeue += after.bytes;
    }
    if (host.observer != nullptr) host.observer->on_packet(record);
  }
}

}  // namespace greynic::twin::fabric
