#include <algorithm>

#include "engine/engine.h"
#include "greynic/core/check.h"

/// What happens next, packet by packet and event by event. All that a packet meets is inlined here.

namespace greynic::twin {

void Engine::step() {
  const Time packet = units_.time();
  const Time event = world_.events.next_time();
  now_ = std::min(packet, event);
  if (now_ >= next_period_) pass_periods();
  if (event <= packet) return handle(world_.events.pop());
  units_.send_first(world_, [this](std::uint32_t nic, std::uint32_t stream, Time t,
                                   bool turn_begins) { send(nic, stream, t, turn_begins); });
}

void Engine::handle(const Event& event) {
  const auto& [t, order, id, count, kind] = event;
  switch (kind) {
    case event::kThreadStep:
      return threads_.step(id, t);
    case event::kDoorbell:
      return requests_.doorbell(id, count, t);
    case event::kPayloadWanted:
      return requests_.payload_wanted(id, count, t);
    case event::kWqeArrives:
      return requests_.wqes_arrive(id, count, t);
    case event::kEngineStep:
      return requests_.engine_step(static_cast<std::uint8_t>(id), t);
    case event::kDataReady:
      world_.streams[id].ready += count;
      return activate(id, t);
    case event::kUnanswered:
      return unanswered(id, count, t);
    case event::kDuplicate:
      return answers_.acknowledge(id, 0, t);
    case event::kGapSeen:
      return recovery_.gap_seen(id, count, t);
    case event::kGoBack:
    case event::kTimeout:
      if (recovery_.go_back(id, count, kind == event::kTimeout)) activate(id, t);
      return;
    case event::kAnnounced:
      return recovery_.announced(id, count, t);
    case event::kNotReady:
      return recovery_.not_ready(id, count, t);
    case event::kRested:
      if (recovery_.rested(id)) activate(id, t);
      return;
    case event::kDeregister:
      return memory_.deregister(static_cast<std::uint8_t>(id), t);
    case event::kMarked:
      return congestion_.marked(id, t);
    case event::kNotified:
      return congestion_.notified(id, t);
    case event::kReleased:
      congestion_.released(id);
      return activate(id, t);
    case event::kDelivered:
      return delivered(id, count, t);
    case event::kCompleted:
      for (std::uint32_t i = 0; i < count; ++i) complete_one(id, t);
      return;
    case event::kPeerAnswers:
      return post_round_trip(id, t);
    default:
      GREYNIC_CHECK(false);
  }
}

[[gnu::always_inline]] inline void Engine::send(std::uint32_t nic, std::uint32_t stream, Time t,
                                                bool turn_begins) {
  if (!world_.streams[stream].responds && !world_.load.carries_data_in_request()) {
    send_request(stream, t);
  } else {
    send_data(nic, stream, t, turn_begins);
  }
}

void Engine::send_request(std::uint32_t id, Time t) {
  Stream& s = world_.streams[id];
  --s.ready;
  const std::uint32_t message = s.sent++;
  const bool atomic = world_.load.operation == Operation::kAtomic;
  const double extra = atomic ? header::kAtomicEth : header::kReth;
  world_.events.push(path_.send_control(world_, s.nic, s.to, extra, t), event::kDelivered, id,
                     message);
}

/// A packet was put on the wire at `start`, and is through with the receiver's headers at `there`
/// unless the port dropped it.
Fate Engine::fate_behind_port(std::uint32_t id, Fate fate, Time wire_ns, Time start, Time there) {
  congestion_.sent(id, wire_ns, start, there);
  const Stream& s = world_.streams[id];
  if (s.to != kServer || s.nic == kServer || !path_.port().dropped()) return fate;
  ++world_.nics[s.nic].counters.port_discards;
  if (fate <= Fate::kAnnounced) recovery_.open_gap(id, s.packets_left + 1, start);
  return Fate::kCorrupted;
}

[[gnu::always_inline]] inline Arrival Engine::travel(std::uint32_t from, std::uint32_t to,
                                                     std::uint32_t id, const Freight& freight,
                                                     Time t, Fate fate, bool turn_begins) {
  return path_.travel(world_, from, to, id, freight, t, fate, turn_begins,
                      [&](Time start, Time there, Fate so_far) {
                        return fate_behind_port(id, so_far, freight.wire_ns, start, there);
                      });
}

[[gnu::always_inline]] inline void Engine::send_data(std::uint32_t from, std::uint32_t id, Time t,
                                                     bool turn_begins) {
  Stream& s = world_.streams[id];
  // Known without the stream, whose line may still be on its way from memory.
  const std::uint32_t to = routed_ ? s.to : from ^ 1U;
  const bool first = s.packets_left == 0;
  const MessageShape& shape = world_.messages[s.sent];
  if (first) {
    s.packets_left = shape.packets;
    if (shape.packets > kTurnPackets && !shape.inlined && s.ready == 1) {
      // The QP was idle. The second burst of the message is read from memory while the first is
      // sent, and that read takes longer than the first burst does.
      const Time read_ns = world_.p.pcie_read_latency_ns + shape.first_read_ns();
      s.not_before = std::max(s.not_before, t - world_.packet_ns + read_ns);
    }
    --s.ready;
  }
  const bool lossy = recovery_.active();
  Fate fate = Fate::kWritten;
  bool starts = first;
  if (lossy) [[unlikely]] {
    starts = s.packets_left == shape.packets;
    fate = recovery_.fate_of_packet(id, t);
  }
  const bool last = --s.packets_left == 0;
  const Freight& freight = last ? shape.last : starts ? shape.first : shape.middle;
  const Arrival arrival = travel(from, to, id, freight, t, fate, turn_begins);
  if (arrival.fate == Fate::kWritten) [[likely]] {
    meter_.record(world_, arrival.at_memory, freight.payload);
  } else if (arrival.fate == Fate::kAnnounced) {
    meter_.record(world_, arrival.at_memory, freight.payload);
    world_.events.push(arrival.at_memory, event::kAnnounced, id, recovery_[id].refusals);
  } else {
    recovery_.throw_away(id, arrival.fate, freight, arrival.at_memory);
  }
  if (!last) return;
  ++s.sent;
  if (!lossy || recovery_.message_survives(id)) {
    world_.events.push(arrival.at_memory + memory_.write_latency(to), event::kDelivered, id,
                       lossy ? recovery_[id].refusals : 0);
  }
  if (!s.responds && world_.load.transport != Transport::kRC) {
    world_.events.push(arrival.wire_end + world_.p.pcie_post_ns, event::kCompleted, id);
  }
}

/// A requester has heard nothing for as long as its timer runs.
void Engine::unanswered(std::uint32_t id, std::uint32_t answers, Time t) {
  const Answers::Silence silence = answers_.unanswered(id, answers);
  if (silence == Answers::Silence::kOver) return;
  if (silence == Answers::Silence::kSendAgain) {
    const Stream& s = world_.streams[id];
    const auto [freight, fate] = answers_.send_again(id);
    const Arrival arrival = travel(s.nic, s.to, id, *freight, t, fate, true);
    if (arrival.fate == Fate::kOutOfSequence) {
      world_.events.push(arrival.at_memory, event::kDuplicate, id);
    }
  }
  answers_.watch(id, t);
}

/// `number`: of a request without data, which it is; of a SEND, how often the stream had been
/// refused when it was sent.
void Engine::delivered(std::uint32_t id, std::uint32_t number, Time t) {
  const HostLoad& load = world_.load;
  Stream& s = world_.streams[id];
  Nic& receiver = world_.nics[s.to];
  const bool reliable = load.transport == Transport::kRC;
  const Time post_ns = world_.p.pcie_post_ns;
  if (s.responds) {  // a READ response or an atomic's answer: the request is done
    ++world_.moved.messages;
    const std::uint32_t request = World::peer_of(id);
    const Time seen = memory_.recall_wqe(request, t);
    return world_.events.push(seen + post_ns + world_.jitter(kPcieJitterNs), event::kCompleted,
                              request);
  }
  if (!load.carries_data_in_request()) return requests_.respond(id, number, t);
  if (load.operation == Operation::kSend) {
    if (recovery_.is_void(id, number)) return;
    if (!recovery_.find_receive(id, t)) {
      if (reliable) return recovery_.refuse(id, t);
      ++receiver.counters.out_of_buffer;
      ++world_.moved.messages_lost;
      return;
    }
    receives_.put_back(id, t);
    ++receiver.counters.send_messages;
    ++receiver.counters.completions;
    receiver.receive_path.pass(t, world_.pcie.write_ns(64));
  } else {
    ++receiver.counters.write_requests;
  }
  ++world_.moved.messages;
  if (world_.ping_pong) {
    world_.events.push(t + post_ns + world_.jitter(kPcieJitterNs) + world_.p.completion_ns,
                       event::kPeerAnswers, World::peer_of(id));
  }
  if (reliable) answers_.acknowledge(id, 1, t);
}

void Engine::complete_one(std::uint32_t id, Time t) {
  const std::uint32_t signal_every = world_.load.signal_every;
  Stream& s = world_.streams[id];
  ++s.done;
  if (arrivals_.open_loop()) meter_.record_trip(t - arrivals_.complete(id));
  if (s.done % signal_every == 0) {
    Nic& nic = world_.nics[s.nic];
    ++nic.counters.completions;
    ++nic.counters.pcie_write_tlps;
    nic.receive_path.pass(t, world_.pcie.write_ns(64));
    threads_.credit(id, signal_every, t);
  }
  if (world_.ping_pong && !world_.load.carries_data_in_request()) {
    post_round_trip(id, t + world_.p.completion_ns);
  }
}

/// One side of a ping-pong posts its half of a round trip; a READ or an atomic is a round trip by itself.
void Engine::post_round_trip(std::uint32_t id, Time t) {
  statistics::Random& random = world_.random;
  if (id == 0) {  // the client: a round trip is over
    const int ways = world_.load.carries_data_in_request() ? 2 : 1;
    if (world_.streams[0].posted > 0) meter_.record_trip((t - round_began_) / ways);
    round_began_ = t;
  }
  // One in a few hundred posts meets a timer or an interrupt.
  const double hiccup = random.uniform() < 0.003 ? world_.jitter(400) : 0.0;
  const double spread = 1 + Threads::kJitter * (random.uniform() - 0.5);
  threads_.post(id, 1, t + world_.p.post_request_ns * spread + hiccup);
}

}  // namespace greynic::twin
