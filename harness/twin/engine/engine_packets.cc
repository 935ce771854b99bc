#include <algorithm>
#include <cmath>

#include "engine/engine.h"

/// Processing units and the path of a packet: out of the RNIC, over the wire, into memory.

namespace greynic::twin {
namespace {

constexpr Time kLoopbackRetryNs = 500;
constexpr double kUnitJitter = 0.02;  ///< spread of a packet's time in the unit

}  // namespace

Engine::Crossing Engine::crossing_of(const Steering& steering, double groups) const {
  if (!effects_.masks_in_sequence) groups = std::min(groups, 1.0);
  const double hops = p_.base_hops_per_packet + groups * p_.hops_per_group;
  const double hop_ns = p_.cycle_ns() / p_.steering_pipe_count;
  return {.latency = groups * steering.per_group_ns, .hops = hops, .occupancy = hops * hop_ns};
}

void Engine::draw_crossing(Steering& steering) {
  const GroupWalk& walk = *steering.walk;
  const auto at = std::upper_bound(walk.shares.begin(), walk.shares.end(), random_.uniform());
  const auto index = std::min<std::size_t>(static_cast<std::size_t>(at - walk.shares.begin()),
                                           walk.share_groups.size() - 1);
  steering.current = crossing_of(steering, walk.share_groups[index]);
}

/// Steering, wire, steering: common to data and control packets. Returns when the receiving RNIC is
/// through with the headers.
[[gnu::always_inline]] inline Time Engine::cross(Nic& sender, Nic& receiver, std::size_t direction,
                                                 double wire_ns, Time t, bool looped, bool data,
                                                 Time& wire_end) {
  Passage& passage = passages_[direction];
  const Crossing& encap = crossing(passage.encap);
  const Crossing& decap = crossing(passage.decap);
  sender.counters.tx_hops += encap.hops;
  receiver.counters.rx_hops += decap.hops;
  Time out = sender.transmit_walk.pass(t, encap.latency, encap.occupancy, data);
  const bool switched = port_.present() && direction == 0 && !looped;
  if (data) {
    const Time unhindered = looped ? out : std::max(out, sender.wire.free());
    Time allowed = out;
    if (switched) [[unlikely]] {
      allowed = port_.admit(number_of(sender), unhindered);
    } else {
      if (!looped || effects_.loopback_unlimited)
        allowed = receiver.receive_buffer.admit(unhindered);
      if (!looped) receiver.counters.tx_pause += allowed - unhindered;
    }
    if (!looped) sender.counters.rx_pause += allowed - unhindered;
    out = effects_.frozen_share > 0 ? thaw(std::max(allowed, sender.wire.free())) : allowed;
    wire_ns += effects_.transmit_stall_ns;
  }
  // The server's own link is the narrow one.
  if (port_.present() && direction == 1) [[unlikely]]
    wire_ns *= port_.stretch();
  wire_end = looped ? out + wire_ns : sender.wire.pass(out, wire_ns);
  sender.transmit_buffer.enter(wire_end);
  Time arrival = wire_end + (looped ? 0.0 : one_way_ns_);
  if (switched) [[unlikely]] {
    if (data) {  // a receiver that is full pauses the port
      const Time unhindered = std::max(arrival, port_.free());
      const Time allowed = receiver.receive_buffer.admit(unhindered);
      receiver.counters.tx_pause += allowed - unhindered;
      port_.hold_until(allowed);
    }
    arrival = port_.pass(number_of(sender), arrival, wire_ns, data, random_);
    if (port_.dropped()) return arrival;
  }
  return receiver.receive_walk.pass(arrival, decap.latency, decap.occupancy, data);
}

/// A frozen device sends in what is left of each 100 us: outages of seconds, at the pace of a run.
Time Engine::thaw(Time t) const {
  constexpr Time kPeriodNs = 100e3;
  const Time began = std::floor(t / kPeriodNs) * kPeriodNs;
  return std::max(t, began + effects_.frozen_share * kPeriodNs);
}

void Engine::activate(std::uint32_t id, Time t) {
  Stream& s = streams_[id];
  if (s.in_ring || s.resting || (s.ready == 0 && s.packets_left == 0) || hold_back(id, t)) return;
  s.in_ring = true;
  s.next = kNone;
  Nic& nic = nics_[s.nic];
  const auto index = static_cast<std::uint32_t>(qp_of(id) % nic.units.size());
  Unit& unit = nic.units[index];
  call_context(nic, id, t);
  if (unit.head == kNone) {
    unit.head = unit.tail = id;
    units_.push({s.nic, index}, unit_begins(s.nic, index, t));
  } else {
    streams_[unit.tail].next = id;
    unit.tail = id;
  }
}

/// A stream that joins its unit's ring asks for its QP context at once; by the time its turn comes
/// it may be on chip. Fetches are bounded in number, so with many missing the ring waits for them.
void Engine::call_context(Nic& nic, std::uint32_t id, Time t) {
  if (nic.contexts.never_misses() || nic.contexts.touch(qp_of(id))) return;
  ++nic.counters.context_misses;
  // RC keeps requester and acknowledgement state, which are fetched one beside the other.
  Time there = nic.fetch_slots.pass(t, p_.context_fetch_ns);
  if (w_.transport == Transport::kRC) there = nic.fetch_slots.pass(t, p_.context_fetch_ns);
  Time& not_before = streams_[id].not_before;
  not_before = std::max(not_before, there);
}

Time Engine::service_time(const Nic& nic) {
  return packet_ns_ * (1 + kUnitJitter * (random_.uniform() - 0.5)) + nic.unit_ns;
}

/// Takes up the stream at the head of a unit's ring; returns when its first packet is out.
Time Engine::unit_begins(std::size_t side, std::uint32_t index, Time t) {
  Unit& unit = nics_[side].units[index];
  Stream& s = streams_[unit.head];
  // The next turn's stream comes from memory while this one's packets are handled.
  if (s.next != kNone) __builtin_prefetch(&streams_[s.next], 1);
  unit.turn_left = kTurnPackets;
  Time from = std::max({unit.free, t, s.not_before});
  if (effects_.frozen_share > 0) [[unlikely]]
    from = thaw(from);
  return from + service_time(nics_[side]);
}

/// The rule that a packet's flow hits is on chip, or is read over PCIe. Messages are dealt out to
/// flows at random. Returns when the packet goes on.
Time Engine::recall_flow(Nic& nic, std::uint32_t id, Time t) {
  const std::uint64_t message = static_cast<std::uint64_t>(id) << 32 | streams_[id].sent;
  if (nic.steering.touch(statistics::split_mix(message) % w_.flow_count)) return t;
  ++nic.counters.steering_misses;
  return nic.fetch_slots.pass(t, p_.context_fetch_ns);
}

// A data packet's whole way is one piece of code: what follows is inlined into unit_sends.

[[gnu::always_inline]] inline Engine::Arrival Engine::travel(std::uint32_t from, std::uint32_t to,
                                                             std::uint32_t id,
                                                             const Freight& freight, Time t,
                                                             Fate fate, bool turn_begins) {
  Nic& sender = nics_[from];
  Nic& receiver = nics_[to];
  const bool looped = loopback_ && from == to;
  const std::size_t direction = direction_from(from);
  Time start = sender.loop.admit(t);
  // Payload comes over the sender's PCIe link; packets that follow one another share it.
  start = std::max(start, sender.read_link.free());
  sender.read_link.hold_until(start + freight.read_ns);
  ++sender.counters.tx_packets;
  sender.counters.tx_bytes += freight.payload;
  const bool flows_miss = !sender.steering.never_misses();
  if (flows_miss) [[unlikely]]
    start = recall_flow(sender, id, start);
  Time wire_end = 0;
  Time end = cross(sender, receiver, direction, freight.wire_ns, start, looped, true, wire_end);
  // What stays on the chip meets none of the stages that store packets for the wire.
  if (!looped) end += freight.stored_ns;
  if (flows_miss) [[unlikely]]
    end = recall_flow(receiver, id, end);
  if (port_.present()) [[unlikely]]
    fate = fate_behind_port(id, fate, freight.wire_ns, start, end);
  // The receiver keeps the context while the packets of a turn come in.
  if (!receiver.contexts.never_misses() && turn_begins && !receiver.contexts.touch(qp_of(id))) {
    ++receiver.counters.context_misses;
    end = receiver.fetch_slots.pass(end, p_.context_fetch_ns);
  }
  // What is corrupted or out of sequence is found out before it is written.
  Time write_ns = freight.write_ns + effects_.receive_stall_ns;
  if (fate >= Fate::kCorrupted) [[unlikely]]
    write_ns = 0;
  if (looped && !effects_.loopback_unlimited) [[unlikely]] {
    receiver.spare -= write_ns;
    end += write_ns;
  } else {
    if (loopback_) [[unlikely]]
      receiver.save_spare(end);
    end = receiver.receive_path.pass(end, write_ns);
    // Stages that store packets hold them elsewhere: the buffer before memory knows nothing of it.
    receiver.receive_buffer.enter(end - freight.stored_ns);
  }
  // The place in the closed loop is free again when word of the packet is back.
  sender.loop.enter(end + sender.loop_rest_ns);
  if (effects_.slow_path_share > 0 && random_.uniform() < effects_.slow_path_share) {
    end = software_[direction].pass(end, 1e3 / p_.slow_path_mpps) + p_.upcall_us * 1e3;
  }
  if (fate == Fate::kCorrupted) [[unlikely]] {
    ++receiver.counters.dropped_packets;
    receiver.counters.dropped_bytes += freight.payload;
    return {wire_end, end, fate};
  }
  ++receiver.counters.rx_packets;
  receiver.counters.rx_bytes += freight.payload;
  return {wire_end, end, fate};
}

/// The first packet of the oldest message that the sender knows nothing of. The receiver has it.
void Engine::send_again(std::uint32_t id, Time t) {
  const Stream& s = streams_[id];
  const Shape& shape = shape_at(recoveries_[id].acknowledged);
  const Freight& freight = shape.packets > 1 ? shape.first : shape.last;
  NicCounters& counters = nics_[s.nic].counters;
  ++counters.retransmitted_packets;
  counters.retransmitted_bytes += freight.payload;
  nics_[s.to].counters.thrown_bytes += freight.payload;
  const bool corrupted = random_.uniform() < w_.loss;
  const Fate fate = corrupted ? Fate::kCorrupted : Fate::kOutOfSequence;
  const Arrival arrival = travel(s.nic, s.to, id, freight, t, fate, true);
  if (arrival.fate == Fate::kOutOfSequence) events_.push(arrival.at_memory, kDuplicate, id);
}

[[gnu::always_inline]] inline void Engine::send_data(std::uint32_t from, std::uint32_t id, Time t,
                                                     bool turn_begins) {
  Stream& s = streams_[id];
  // Known without the stream, whose line may still be on its way from memory.
  const std::uint32_t to = routed_ ? s.to : from ^ 1U;
  const bool first = s.packets_left == 0;
  const Shape& shape = shape_at(s.sent);
  if (first) {
    s.packets_left = shape.packets;
    if (shape.packets > kTurnPackets && !shape.inlined && s.ready == 1) {
      // The QP was idle. The second burst of the message is read from memory while the first is
      // sent, and that read takes longer than the first burst does.
      const Time read_ns = p_.pcie_read_latency_ns + shape.first_read_ns();
      s.not_before = std::max(s.not_before, t - packet_ns_ + read_ns);
    }
    --s.ready;
  }
  const bool lossy = !recoveries_.empty();
  Fate fate = Fate::kWritten;
  bool starts = first;
  if (lossy) [[unlikely]] {
    starts = s.packets_left == shape.packets;
    fate = fate_of_packet(id, t);
  }
  const bool last = --s.packets_left == 0;
  const Freight& freight = last ? shape.last : starts ? shape.first : shape.middle;
  const Arrival arrival = travel(from, to, id, freight, t, fate, turn_begins);
  if (arrival.fate == Fate::kWritten) [[likely]] {
    record(arrival.at_memory, freight.payload);
  } else {
    settle(id, arrival.fate, freight, arrival.at_memory);
  }
  if (!last) return;
  ++s.sent;
  if (!lossy || message_survives(id)) {
    events_.push(arrival.at_memory + (to != kServer ? far_memory_ns_ : 0.0), kDelivered, id,
                 lossy ? recoveries_[id].refusals : 0);
  }
  if (!s.responds && w_.transport != Transport::kRC) {
    events_.push(arrival.wire_end + p_.pcie_post_ns, kCompleted, id);
  }
}

/// The stream at the head goes.
[[gnu::always_inline]] inline void Engine::leave_ring(Unit& unit) {
  Stream& s = streams_[unit.head];
  unit.head = s.next;
  if (unit.head == kNone) unit.tail = kNone;
  s.in_ring = false;
}

void Engine::unit_sends(UnitQueue::Unit which, Time t) {
  const auto [side, index] = which;
  Nic& nic = nics_[side];
  Unit& unit = nic.units[index];
  const std::uint32_t id = unit.head;
  Stream& s = streams_[id];
  if (unusual_) [[unlikely]] {
    if (s.resting) {
      leave_ring(unit);
      if (unit.head != kNone) units_.push(which, unit_begins(side, index, t));
      return;
    }
    if (loopback_ && s.nic == s.to && !effects_.loopback_unlimited) {
      // Loopback gives way to the wire: it takes what the receive path has to spare.
      nic.save_spare(t);
      if (nic.spare <= 0) return units_.push(which, t + kLoopbackRetryNs);
    }
  }
  if (!s.responds && !w_.carries_data_in_request()) {
    send_request(id, t);
  } else {
    send_data(side, id, t, unit.turn_left == kTurnPackets);
  }
  // A full transmit buffer holds the unit.
  unit.free = nic.transmit_buffer.admit(t);
  if (effects_.frozen_share > 0) [[unlikely]]
    unit.free = thaw(unit.free);
  if (s.packets_left > 0 && --unit.turn_left > 0) {
    return units_.push(which, unit.free + service_time(nic));
  }
  leave_ring(unit);
  if ((s.packets_left > 0 || s.ready > 0) && !s.resting && !hold_back(id, t)) {
    s.in_ring = true;
    s.next = kNone;
    call_context(nic, id, t);
    if (unit.head == kNone) {
      unit.head = id;
    } else {
      streams_[unit.tail].next = id;
    }
    unit.tail = id;
  }
  if (unit.head != kNone) units_.push(which, unit_begins(side, index, t));
}

void Engine::send_request(std::uint32_t id, Time t) {
  Stream& s = streams_[id];
  --s.ready;
  const std::uint32_t message = s.sent++;
  const double extra = w_.operation == Operation::kAtomic ? header::kAtomicEth : header::kReth;
  events_.push(send_control(s.nic, s.to, extra, t), kDelivered, id, message);
}

Time Engine::send_control(std::uint8_t from, std::uint8_t to, double bytes, Time t) {
  Nic& sender = nics_[from];
  ++sender.counters.tx_packets;
  ++nics_[to].counters.rx_packets;
  const double wire_ns = (bytes + packet_overhead_bytes(w_.overlay)) * 8.0 / p_.link_rate_gbps;
  Time wire_end = 0;
  return cross(sender, nics_[to], direction_from(from), wire_ns, t, from == to, false, wire_end);
}

}  // namespace greynic::twin
