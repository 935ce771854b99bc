#include <algorithm>

#include "engine/engine.h"

/// From the thread that posts to the message that is ready to be sent, and from its delivery back
/// to the thread that polls.

namespace greynic::twin {
namespace {

constexpr std::uint32_t kBlocksPerRead = 4;  ///< of WQEs, 64 bytes each, in one 256-byte read
constexpr std::uint32_t kBlock = 2;          ///< WQEs read again together
constexpr double kThreadJitter = 0.06;       ///< spread of a thread's work, as a share of it

}  // namespace

void Engine::free_slot_in(std::uint32_t stream) {
  Stream& s = streams_[stream];
  if (s.in_free_list || s.thread == kNone) return;
  s.in_free_list = true;
  s.next_free = kNone;
  Thread& thread = threads_[s.thread];
  if (thread.first_stream == kNone) {
    thread.first_stream = stream;
  } else {
    streams_[thread.last_stream].next_free = stream;
  }
  thread.last_stream = stream;
}

void Engine::thread_steps(std::uint32_t index, Time t) {
  Thread& thread = threads_[index];
  const bool shared = !owners_.empty();
  const bool rounds = w_.posting == Posting::kRound;
  const std::uint32_t id = thread.first_stream;
  if (id == kNone || (rounds && thread.left_in_round == 0) ||
      (shared && thread.outstanding >= thread.quota)) {
    thread.waiting = true;
    return;
  }
  Stream& s = streams_[id];
  std::uint32_t room =
      shared ? thread.quota - thread.outstanding : w_.send_depth - (s.posted - s.credited);
  if (rounds) room = std::min(room, thread.left_in_round);
  std::uint32_t batch = std::min(w_.post_batch, room);
  if (!dues_.empty()) {
    if (thread.next_due > t) return events_.push(thread.next_due, kThreadStep, index);
    batch = take_due(thread, id, batch, t);
  }
  if (!shared) {  // to the end of the list, or out of it when its queue is full now
    thread.first_stream = s.next_free;
    s.in_free_list = false;
  }
  const double work = batch * (p_.post_request_ns + p_.completion_ns / w_.signal_every) *
                      thread.slowdown * (1 + kThreadJitter * (random_.uniform() - 0.5));
  Time end = t + work;
  const std::uint32_t qp = qp_of(id);
  Host& host = hosts_[thread.side];
  const auto most = static_cast<std::size_t>(p_.contention_limit_threads);
  if (shared) {
    end = host.qp_locks[qp].pass(end, index,
                                 {p_.lock_transfer_ns, p_.qp_lock_ns, p_.qp_contention_ns, most});
    for (std::uint32_t i = 0; i < batch; ++i) owners_[id].push(index);
  }
  if (w_.doorbells == Doorbells::kDriverDefault && w_.thread_count > 1 && !shared) {
    if (const std::uint32_t reg = shared_register_of(qp % w_.qp_count, p_); reg != kNone) {
      end = host.registers[reg].pass(
          end, index, {p_.lock_transfer_ns, p_.doorbell_lock_ns, p_.doorbell_contention_ns, most});
    }
  }
  thread.outstanding += batch;
  if (rounds) thread.left_in_round -= batch;
  post(id, batch, end);
  if (!shared && s.posted - s.credited < w_.send_depth) free_slot_in(id);
  events_.push(end, kThreadStep, index);
}

void Engine::post(std::uint32_t id, std::uint32_t count, Time t) {
  Stream& s = streams_[id];
  Nic& nic = nics_[s.nic];
  const bool idle = s.posted == s.done;
  s.posted += count;
  nic.counters.posted += count;
  if (!recoveries_.empty() && recoveries_[id].flushes) nic.counters.flushed += count;
  ++nic.counters.doorbells;
  const Time arrival = t + p_.pcie_post_ns + jitter(kPcieJitterNs);
  if (idle && count == 1) {
    // BlueFlame: the WQE travels with the doorbell.
    ++nic.counters.blueflame_doorbells;
    ++nic.counters.pcie_write_tlps;
    events_.push(arrival, kWqeArrives, id, count);
  } else {
    events_.push(arrival, kDoorbell, id, count);
  }
}

/// The RNIC reads what was posted. Such reads are small and go before payload, but they take slots.
void Engine::doorbell_arrives(std::uint32_t id, std::uint32_t count, Time t) {
  Nic& nic = nics_[streams_[id].nic];
  const std::uint32_t reads = (count * wqe_blocks_ + kBlocksPerRead - 1) / kBlocksPerRead;
  for (std::uint32_t i = 0; i < reads; ++i) {
    nic.read_slots.enter(nic.read_slots.admit(t) + p_.pcie_read_latency_ns);
  }
  nic.counters.wqe_reads += reads;
  nic.counters.pcie_read_tlps += reads;
  events_.push(t + p_.pcie_read_latency_ns + jitter(kPcieJitterNs), kWqeArrives, id, count);
}

/// One more read over PCIe, when a slot is free. Returns when it was granted.
Time Engine::begin_read(Nic& nic, Time t, Time latency) {
  const Time start = nic.read_slots.admit(t);
  nic.counters.pcie_back_pressure += start - t;
  nic.read_slots.enter(start + latency);
  ++nic.counters.pcie_read_tlps;
  return start;
}

/// What of a message has to be there before it can be sent: a burst, in requests of the link's
/// size. Returns when the last was granted.
Time Engine::begin_payload(Nic& nic, const Shape& shape, Time t) {
  ++nic.counters.payload_reads;
  for (std::uint32_t i = 0; i < shape.reads; ++i) t = begin_read(nic, t, read_latency(nic));
  return t;
}

void Engine::wqe_arrives(std::uint32_t id) {
  Stream& s = streams_[id];
  Nic& nic = nics_[s.nic];
  nic.wqes.touch(wqe_slot(id, s.fetched));
  ++s.fetched;
  nic.push_request(id);
}

void Engine::engine_steps(std::uint8_t side, Time t) {
  Nic& nic = nics_[side];
  while (nic.request_count > 0 && !nic.engine_busy) {
    if (nic.engine_free > t) {
      nic.engine_busy = true;
      events_.push(nic.engine_free, kEngineStep, side);
      return;
    }
    const std::uint32_t id = nic.pop_request();
    Stream& s = streams_[id];
    const std::uint32_t index = s.handled++;
    const bool write = w_.carries_data_in_request();
    nic.engine_free = t + 1e3 / (write ? p_.peak_write_mops : p_.peak_read_mops);
    int reads_before = 0;
    if (!nic.wqes.contains(wqe_slot(id, index))) {
      // A WQE that has left the chip is read again. While its payload is read it has to stay, with
      // its neighbour in the same block of two, and others leave for them; a READ request needs it
      // no more.
      for (std::uint32_t i = 0; write && i < kBlock; ++i) {
        nic.wqes.touch(wqe_slot(id, index / kBlock * kBlock + i));
        if (i > 0) (void)begin_read(nic, nic.engine_free);
      }
      ++nic.counters.wqe_cache_misses;
      ++reads_before;
    }
    if (translation_matters_ && !nic.translations.touch(random_.next() % pages_)) {
      ++nic.counters.translation_misses;
      ++reads_before;
    }
    // Whoever needs a read holds the engine until a slot is free; what depends on its answer goes
    // on by itself.
    Time ready = nic.engine_free;
    for (int i = 0; i < reads_before; ++i) {
      nic.engine_free = begin_read(nic, nic.engine_free);
      ready = std::max(ready, nic.engine_free) + p_.pcie_read_latency_ns;
    }
    if (!write || shape_at(index).inlined) {
      events_.push(ready, kDataReady, id);
    } else if (reads_before > 0) {
      events_.push(ready, kPayloadWanted, id, index);
    } else {
      nic.engine_free = begin_payload(nic, shape_at(index), ready);
      events_.push(nic.engine_free + payload_latency(nic, shape_at(index)), kDataReady, id);
    }
  }
}

void Engine::payload_wanted(std::uint32_t id, std::uint32_t message, Time t) {
  Nic& nic = nics_[streams_[id].nic];
  const Shape& shape = shape_at(message);
  const Time start = begin_payload(nic, shape, t);
  events_.push(start + payload_latency(nic, shape), kDataReady, id);
}

bool Engine::take_receive(std::uint32_t id, Time t) {
  while (refill_head_ < refills_.size() && refills_[refill_head_].time <= t) {
    ++streams_[refills_[refill_head_++].stream].receives;
  }
  if (refill_head_ > 4096 && refill_head_ * 2 > refills_.size()) {
    refills_.erase(refills_.begin(), refills_.begin() + static_cast<std::ptrdiff_t>(refill_head_));
    refill_head_ = 0;
  }
  const std::uint32_t pool = w_.shared_receive_queue ? 0 : id;
  if (streams_[pool].receives == 0) return false;
  --streams_[pool].receives;
  return true;
}

/// The receiver's thread sees the message and posts its receive WQE once more.
void Engine::put_receive_back(std::uint32_t id, Time t) {
  const std::uint32_t pool = w_.shared_receive_queue ? 0 : id;
  Host& host = hosts_[streams_[id].to];
  const Time again = host.receiver.pass(t + p_.pcie_post_ns, p_.completion_ns / w_.thread_count);
  refills_.push_back({again, pool});
}

/// A READ that is answered needs its WQE once more: where the data goes.
Time Engine::recall_wqe(std::uint32_t id, Time t) {
  const Stream& s = streams_[id];
  Nic& nic = nics_[s.nic];
  if (nic.wqes.contains(wqe_slot(id, s.done))) return t;
  ++nic.counters.wqe_cache_misses;
  return begin_read(nic, t) + p_.pcie_read_latency_ns;
}

/// `number`: of a request without data, which it is; of a SEND, how often the stream had been
/// refused when it was sent.
void Engine::delivered(std::uint32_t id, std::uint32_t number, Time t) {
  Stream& s = streams_[id];
  Nic& receiver = nics_[s.to];
  const bool reliable = w_.transport == Transport::kRC;
  if (s.responds) {  // a READ response or an atomic's answer: the request is done
    ++messages_delivered_;
    const std::uint32_t request = peer_of(id);
    const Time seen = recall_wqe(request, t);
    events_.push(seen + p_.pcie_post_ns + jitter(kPcieJitterNs), kCompleted, request);
    return;
  }
  if (!w_.carries_data_in_request()) {  // a request that the other RNIC answers
    Time from = t;
    if (w_.operation == Operation::kAtomic) {
      ++receiver.counters.atomic_requests;
      from = receiver.atomics.pass(t, 1e3 / p_.atomic_rate_mops);
    } else {
      ++receiver.counters.read_requests;
    }
    if (translation_matters_ && !receiver.translations.touch(random_.next() % pages_)) {
      ++receiver.counters.translation_misses;
      from += p_.pcie_read_latency_ns;
    }
    const Shape& shape = shape_at(number);
    const Time start = begin_payload(receiver, shape, from);
    events_.push(start + payload_latency(receiver, shape), kDataReady, peer_of(id));
    return;
  }
  if (w_.operation == Operation::kSend) {
    if (is_void(id, number)) return;
    if (!find_receive(id, t)) {
      if (reliable) return refuse(id, t);
      ++receiver.counters.out_of_buffer;
      ++messages_lost_;
      return;
    }
    put_receive_back(id, t);
    ++receiver.counters.send_messages;
    ++receiver.counters.completions;
    receiver.receive_path.pass(t, pcie_.write_ns(64));
  } else {
    ++receiver.counters.write_requests;
  }
  ++messages_delivered_;
  if (ping_pong_) {
    events_.push(t + p_.pcie_post_ns + jitter(kPcieJitterNs) + p_.completion_ns, kPeerAnswers,
                 peer_of(id));
  }
  if (reliable) acknowledge(id, 1, t);
}

void Engine::complete(std::uint32_t id, std::uint32_t count, Time t) {
  for (std::uint32_t i = 0; i < count; ++i) complete_one(id, t);
}

void Engine::complete_one(std::uint32_t id, Time t) {
  Stream& s = streams_[id];
  Nic& nic = nics_[s.nic];
  ++s.done;
  if (!dues_.empty()) trips_.push_back(t - dues_[id].pop());
  if (s.done % w_.signal_every == 0) {
    ++nic.counters.completions;
    ++nic.counters.pcie_write_tlps;
    nic.receive_path.pass(t, pcie_.write_ns(64));
    credit(id, w_.signal_every, t);
  }
  if (ping_pong_ && !w_.carries_data_in_request()) answer(id, t + p_.completion_ns);
}

void Engine::credit(std::uint32_t id, std::uint32_t count, Time t) {
  Stream& s = streams_[id];
  s.credited += count;
  if (ping_pong_) return;
  const auto wake = [&](std::uint32_t index, std::uint32_t returned) {
    Thread& thread = threads_[index];
    thread.outstanding -= returned;
    if (!thread.waiting) return;
    if (w_.posting == Posting::kRound) {
      if (thread.outstanding > 0) return;
      thread.left_in_round = w_.send_depth;
    }
    thread.waiting = false;
    events_.push(t + thread.far_ns, kThreadStep, index);
  };
  if (owners_.empty()) {
    free_slot_in(id);
    wake(s.thread, count);
    return;
  }
  for (std::uint32_t i = 0; i < count; ++i) wake(owners_[id].pop(), 1);
}

void Engine::answer(std::uint32_t id, Time t) {
  if (id == 0) {  // the client: a round trip is over
    if (streams_[0].posted > 0) trips_.push_back((t - round_began_) / 2);
    round_began_ = t;
  }
  // One in a few hundred posts meets a timer or an interrupt.
  const double hiccup = random_.uniform() < 0.003 ? jitter(400) : 0.0;
  post(id, 1, t + p_.post_request_ns * (1 + kThreadJitter * (random_.uniform() - 0.5)) + hiccup);
}

}  // namespace greynic::twin
