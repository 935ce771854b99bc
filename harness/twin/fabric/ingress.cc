#include <algorithm>
#include <cstring>

#include "fabric/simulation.h"

/// The way into an RNIC: a packet walks through the eSwitch, is looked at, and goes to memory, to
/// the requester or to the responder.

namespace greynic::twin::fabric {

void Simulation::at_host(std::uint32_t id) {
  Packet& packet = s_.packets[id];
  HostPart& host = hosts_[packet.to];
  Nic& nic = nic_of(packet.to);
  const bool looped = packet.from == packet.to;
  const bool data = carries_payload(packet.kind);
  ++packet_count_;
  if (spec_.loss > 0 && !looped && s_.random.uniform() < spec_.loss) {
    ++nic.counters.dropped_packets;
    if (data) nic.counters.dropped_bytes += packet.payload_bytes;
    leave_loop(packet.from, s_.now);
    return s_.packets.give_back(id);
  }
  ++nic.counters.rx_packets;
  nic.counters.rx_bytes += data ? packet.payload_bytes : 0;
  const Crossing& decap = host.decap[static_cast<std::size_t>(packet.form->operation)];
  nic.counters.rx_hops += decap.hops;
  Time end = nic.receive_walk.pass(s_.now, decap.latency, decap.occupancy, data);
  Qp* qp = qp_numbered(packet.to_qp);
  const bool ours =
      qp != nullptr && qp->host == packet.to && qp->spec.transport == packet.transport &&
      (packet.transport == Transport::kUD ||
       (qp->attributes.peer_host == packet.from && qp->attributes.peer_qp == packet.from_qp));
  if (!ours) qp = nullptr;
  if (packet.marked && qp != nullptr) marked(*qp, end);
  if (data) {
    if (!looped) end += packet.form->stored_ns;
    return take_data(qp, id, end);
  }
  if (qp != nullptr) take_word(*qp, packet, end);
  s_.packets.give_back(id);
}

/// The receiver is through with the headers at t.
void Simulation::take_data(Qp* qp, std::uint32_t id, Time t) {
  Packet& packet = s_.packets[id];
  HostPart& host = hosts_[packet.to];
  Nic& nic = *host.nic;
  const Parameters& p = host.type->p;
  const bool answers = goes_to_requester(packet.kind);
  if (qp != nullptr && packet.turn_begins && !nic.contexts.never_misses() &&
      !nic.contexts.touch(qp->ordinal)) {
    ++nic.counters.context_misses;
    t = nic.fetch_slots.pass(t, p.context_fetch_ns);
  }
  const bool taken =
      qp != nullptr && (answers ? answer_arrives(*qp, packet) : request_arrives(*qp, packet));
  const PacketForm& form = *packet.form;
  const Time end = nic.receive_path.pass(t, taken ? form.write_ns : 0);
  nic.receive_buffer.enter(end - (packet.from == packet.to ? 0 : form.stored_ns));
  if (const HostPart& sender = hosts_[packet.from]; sender.type->loop_window > 0) {
    // The place in the closed loop is free once word of it is back.
    const auto operation = static_cast<std::size_t>(form.operation);
    const Time rest = sender.type->loop_ns - form.full_ns + host.encap[operation].latency +
                      sender.decap[operation].latency;
    leave_loop(packet.from, std::max(s_.now, end + rest));
  }
  if (!taken) {
    nic.counters.thrown_bytes += packet.payload_bytes;
    return s_.packets.give_back(id);
  }
  if (!packet.last) return s_.packets.give_back(id);
  if (!answers) return s_.events.push(end, event::kDelivered, id);
  answer_is_whole(*qp, packet, end);
  s_.packets.give_back(id);
}

/// Is it the next packet of the next request? What is missing is asked for once; what has come
/// before is acknowledged again.
bool Simulation::in_order(Qp& qp, const Packet& packet) {
  const bool asks = !carries_payload(packet.kind);
  const std::uint32_t index = asks ? 0 : packet.index;
  if (packet.message == qp.expected_message && index == qp.expected_index) {
    qp.nak_sent = false;
    return true;
  }
  const auto ahead = static_cast<std::int32_t>(packet.message - qp.expected_message);
  if (ahead < 0 || (ahead == 0 && index < qp.expected_index)) {
    if (asks) {
      respond(qp, packet, true, s_.now);
    } else if (packet.last) {
      answer(qp, PacketKind::kAck, qp.expected_message, 0);
    }
    return false;
  }
  ++nic_of(qp.host).counters.out_of_sequence;
  if (qp.nak_sent) return false;
  qp.nak_sent = true;
  ++nic_of(qp.host).counters.naks_sent;
  answer(qp, PacketKind::kNak, qp.expected_message, qp.expected_index);
  return false;
}

/// False: it is thrown away.
bool Simulation::request_arrives(Qp& qp, Packet& packet) {
  if (!qp.receives_packets() || qp.refusing) return false;
  place(qp);
  if (qp.spec.transport == Transport::kRC) {
    if (!in_order(qp, packet)) return false;
  } else if (packet.first) {
    qp.discarding = false;
    qp.expected_index = 0;
  } else if (qp.discarding || packet.index != qp.expected_index) {
    qp.discarding = true;
    return false;
  }
  if (packet.first && !begin_message(qp, packet)) {
    qp.discarding = true;
    return false;
  }
  const std::uint64_t at = packet.index == 0 ? 0 : qp.message_at;
  if (packet.kind == PacketKind::kSendData) {
    const std::uint64_t header = packet.transport == Transport::kUD ? kRoutingHeader : 0;
    (void)scatter(qp.spec.domain.id, qp.taken->elements, at + header, packet);
  } else if (packet.payload_bytes > 0) {
    const Sge to{qp.write_address + at, packet.payload_bytes, qp.write_key};
    if (remote_memory(qp, to.lkey, to.address, to.bytes, access::kRemoteWrite) == nullptr) {
      refuse(qp, packet, WcStatus::kRemoteAccess);
      return false;
    }
    if (real() && packet.last) {
      qp.unplaced = &packet;
      ++unplaced_;
    } else if (real()) {
      std::memcpy(reinterpret_cast<std::byte*>(to.address), packet.payload.data(), to.bytes);
    }
  }
  qp.message_at = at + packet.payload_bytes;
  qp.operation = packet.form->operation;
  ++qp.expected_index;
  if (packet.last) {
    ++qp.expected_message;
    qp.expected_index = 0;
    if (qp.taken) {
      packet.receives = true;
      note_received(qp, packet);
    }
    packet.remote_address = qp.write_address;
    packet.rkey = qp.write_key;
  }
  return true;
}

/// What carries no payload: requests for some, and what a responder says.
void Simulation::take_word(Qp& qp, const Packet& packet, Time t) {
  if (!goes_to_requester(packet.kind)) {
    place(qp);
    if (!qp.receives_packets() || qp.refusing || !in_order(qp, packet)) return;
    return respond(qp, packet, false, t);
  }
  if (packet.kind == PacketKind::kCongested) {
    if (!qp.pace) qp.pace = std::make_unique<Pace>();
    ++nic_of(qp.host).counters.cnps_handled;
    return qp.pace->limiter.cut(hosts_[qp.host].type->dcqcn, t);
  }
  if (qp.state != QpState::kReadyToSend) return;
  const Parameters& p = hosts_[qp.host].type->p;
  ++qp.hearings;
  const Time seen = t + p.ack_ns + p.pcie_post_ns + s_.jitter();
  if (packet.message - qp.done <= qp.posted - qp.done) {
    if (packet.message != qp.done) qp.tries = 0;
    s_.events.push(seen, event::kAcknowledged, qp.id, packet.message);
  }
  switch (packet.kind) {
    case PacketKind::kNak:
      if (packet.message - qp.done >= qp.posted - qp.done) return;
      ++nic_of(qp.host).counters.sequence_naks;
      if (const std::uint64_t at = std::uint64_t{packet.message} << 32 | packet.index;
          at > qp.farthest) {
        qp.farthest = at;
        qp.tries = 0;
      }
      if (may_try_again(qp, packet.message)) go_back(qp, packet.message, packet.index);
      return;
    case PacketKind::kNotReady:
      return not_ready(qp, packet, t);
    case PacketKind::kErrorNak:
      if (packet.message - qp.done >= qp.posted - qp.done) return;
      qp.work(packet.message).status = packet.status;
      return;
    default:
      return;
  }
}

/// The data of a READ, or the result of an atomic, in the order in which they were asked for.
bool Simulation::answer_arrives(Qp& qp, const Packet& packet) {
  if (qp.state != QpState::kReadyToSend) return false;
  while (qp.answer_message != qp.posted && (qp.answer_message - qp.done > qp.posted - qp.done ||
                                            !qp.work(qp.answer_message).asks())) {
    ++qp.answer_message;
  }
  if (packet.message != qp.answer_message || packet.index != qp.answer_index) {
    const auto ahead = static_cast<std::int32_t>(packet.message - qp.answer_message);
    const bool later = ahead > 0 || (ahead == 0 && packet.index > qp.answer_index);
    if (!later || qp.answer_gap || qp.answer_message == qp.posted) return false;
    qp.answer_gap = true;
    if (may_try_again(qp, qp.answer_message)) go_back(qp, qp.answer_message, 0);
    return false;
  }
  qp.answer_gap = false;
  qp.tries = 0;
  ++qp.hearings;
  Work& work = qp.work(packet.message);
  const std::uint64_t at = std::uint64_t{packet.index} * qp.attributes.mtu_bytes;
  if (!scatter(qp.spec.domain.id, work.elements, at, packet)) {
    work.status = WcStatus::kLocalProtection;
  }
  ++qp.answer_index;
  return true;
}

void Simulation::answer_is_whole(Qp& qp, const Packet& packet, Time t) {
  qp.answer_index = 0;
  ++qp.answer_message;
  if (qp.reads_open > 0) --qp.reads_open;  // it may be about to ask once more
  if (nic_of(qp.host).wqes.never_misses()) {
    see_answer(qp, packet.message, t);
  } else {
    s_.events.push(t, event::kAnswerWritten, qp.id, packet.message);
  }
  activate(qp, false, s_.now);
}

/// A READ that is answered needs its WQE once more. It is read when that time has come, and takes no
/// read slot before: contexts may keep an answer waiting for long.
void Simulation::recall_wqe(Qp& qp, std::uint32_t message) {
  Time t = s_.now;
  if (!has_wqe(qp, message)) {
    Nic& nic = nic_of(qp.host);
    const Parameters& p = hosts_[qp.host].type->p;
    ++nic.counters.wqe_cache_misses;
    t = begin_read(nic, p, t) + p.pcie_read_latency_ns;
  }
  see_answer(qp, message, t);
}

/// The completion of an answered request is written at t.
void Simulation::see_answer(const Qp& qp, std::uint32_t message, Time t) {
  const Parameters& p = hosts_[qp.host].type->p;
  s_.events.push(t + p.pcie_post_ns + s_.jitter(), event::kAnswered, qp.id, message);
}

/// A mark of congestion: the receiver tells the sender, when it has not done so of late.
void Simulation::marked(Qp& qp, Time t) {
  Nic& nic = nic_of(qp.host);
  ++nic.counters.ecn_marked;
  if (!qp.pace) qp.pace = std::make_unique<Pace>();
  if (t < qp.pace->next_cnp || qp.spec.transport == Transport::kUD) return;
  qp.pace->next_cnp = t + hosts_[qp.host].type->dcqcn.cnp_ns;
  ++nic.counters.cnps_sent;
  send_word(qp, PacketKind::kCongested, 0, 0, WcStatus::kSuccess);
}

}  // namespace greynic::twin::fabric
