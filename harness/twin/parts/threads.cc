#include "parts/threads.h"

#include <algorithm>

namespace greynic::twin {

void Threads::lay_out() {
  const HostLoad& load = world_.load;
  hosts_.resize(world_.nics.size());
  if (load.thread_count > load.qp_count) owners_.resize(world_.streams.size());
  for (std::uint32_t side = 0; side < world_.nics.size(); ++side) {
    if (side == kServer && load.direction == Direction::kUnidirectional) continue;
    lay_out_host(side);
  }
  // Threads do not start in step.
  for (std::uint32_t i = 0; i < threads_.size(); ++i) {
    world_.events.push(world_.random.uniform() * world_.p.post_request_ns, event::kThreadStep, i);
  }
  arrivals_.lay_out(threads_);
}

void Threads::lay_out_host(std::uint32_t side) {
  const HostLoad& load = world_.load;
  const Parameters& p = world_.p;
  hosts_[side].registers.resize(
      static_cast<std::size_t>(p.doorbell_register_count - p.doorbell_dedicated_count));
  if (shared()) hosts_[side].qp_locks.resize(world_.streams.size() >> world_.lane_bits);
  const auto base = static_cast<std::uint32_t>(threads_.size());
  for (std::uint32_t i = 0; i < load.thread_count; ++i) {
    Thread& thread = threads_.emplace_back();
    thread.side = side;
    place_thread(thread, i, load.thread_count, p);
    thread.left_in_round = load.send_depth;
    if (!shared()) continue;
    const std::uint32_t users =
        (load.thread_count - i % load.qp_count + load.qp_count - 1) / load.qp_count;
    thread.quota =
        load.posting == Posting::kRound ? load.send_depth : std::max(1U, load.send_depth / users);
  }
  give_streams(side, base);
}

/// QPs are dealt out to the threads of a host in turn; `base` is its first thread.
void Threads::give_streams(std::uint32_t side, std::uint32_t base) {
  const HostLoad& load = world_.load;
  for (std::uint32_t id = 0; id < world_.streams.size(); ++id) {
    Stream& s = world_.streams[id];
    const std::uint32_t qp = world_.qp_of(id);
    if (s.responds || s.nic != side) continue;
    if (load.direction != Direction::kBidirectional && id % world_.lanes != 0) continue;
    if (shared()) {
      for (std::uint32_t i = qp % load.qp_count; i < load.thread_count; i += load.qp_count) {
        threads_[base + i].first_stream = id;
      }
    } else {
      s.thread = base + qp % load.thread_count;
      free_slot_in(id);
    }
  }
}

void Threads::free_slot_in(std::uint32_t stream) {
  Stream& s = world_.streams[stream];
  if (s.in_free_list || s.thread == kNone) return;
  s.in_free_list = true;
  s.next_free = kNone;
  Thread& thread = threads_[s.thread];
  if (thread.first_stream == kNone) {
    thread.first_stream = stream;
  } else {
    world_.streams[thread.last_stream].next_free = stream;
  }
  thread.last_stream = stream;
}

void Threads::step(std::uint32_t index, Time t) {
  const HostLoad& load = world_.load;
  Thread& thread = threads_[index];
  const bool rounds = load.posting == Posting::kRound;
  const std::uint32_t id = thread.first_stream;
  if (id == kNone || (rounds && thread.left_in_round == 0) ||
      (shared() && thread.outstanding >= thread.quota)) {
    thread.waiting = true;
    return;
  }
  Stream& s = world_.streams[id];
  std::uint32_t room =
      shared() ? thread.quota - thread.outstanding : load.send_depth - (s.posted - s.credited);
  if (rounds) room = std::min(room, thread.left_in_round);
  std::uint32_t batch = std::min(load.post_batch, room);
  if (arrivals_.open_loop()) {
    if (thread.next_due > t) {
      return world_.events.push(thread.next_due, event::kThreadStep, index);
    }
    batch = arrivals_.take_due(thread, id, batch, t);
  }
  if (!shared()) {  // to the end of the list, or out of it when its queue is full now
    thread.first_stream = s.next_free;
    s.in_free_list = false;
  }
  const double work = batch *
                      (world_.p.post_request_ns + world_.p.completion_ns / load.signal_every) *
                      thread.slowdown * (1 + kJitter * (world_.random.uniform() - 0.5));
  const Time end = pass_locks(index, id, batch, t + work);
  thread.outstanding += batch;
  if (rounds) thread.left_in_round -= batch;
  post(id, batch, end);
  if (!shared() && s.posted - s.credited < load.send_depth) free_slot_in(id);
  world_.events.push(end, event::kThreadStep, index);
}

/// The lock around a QP that threads share, or around a doorbell register that QPs share.
Time Threads::pass_locks(std::uint32_t index, std::uint32_t id, std::uint32_t count, Time t) {
  const HostLoad& load = world_.load;
  const Parameters& p = world_.p;
  Host& host = hosts_[threads_[index].side];
  const std::uint32_t qp = world_.qp_of(id);
  const auto most = static_cast<std::size_t>(p.contention_limit_threads);
  if (shared()) {
    for (std::uint32_t i = 0; i < count; ++i) owners_[id].push(index);
    return host.qp_locks[qp].pass(t, index,
                                  {p.lock_transfer_ns, p.qp_lock_ns, p.qp_contention_ns, most});
  }
  if (load.doorbells == Doorbells::kDriverDefault && load.thread_count > 1) {
    if (const std::uint32_t reg = shared_register_of(qp % load.qp_count, p); reg != kNone) {
      return host.registers[reg].pass(
          t, index, {p.lock_transfer_ns, p.doorbell_lock_ns, p.doorbell_contention_ns, most});
    }
  }
  return t;
}

void Threads::post(std::uint32_t id, std::uint32_t count, Time t) {
  Stream& s = world_.streams[id];
  NicCounters& counters = world_.nics[s.nic].counters;
  const bool idle = s.posted == s.done;
  s.posted += count;
  counters.posted += count;
  if (recovery_.active() && recovery_[id].flushes) counters.flushed += count;
  ++counters.doorbells;
  const Time arrival = t + world_.p.pcie_post_ns + world_.jitter(kPcieJitterNs);
  if (idle && count == 1) {
    // BlueFlame: the WQE travels with the doorbell.
    ++counters.blueflame_doorbells;
    ++counters.pcie_write_tlps;
    world_.events.push(arrival, event::kWqeArrives, id, count);
  } else {
    world_.events.push(arrival, event::kDoorbell, id, count);
  }
}

void Threads::credit(std::uint32_t id, std::uint32_t count, Time t) {
  Stream& s = world_.streams[id];
  s.credited += count;
  if (world_.ping_pong) return;
  if (!shared()) {
    free_slot_in(id);
    return wake(s.thread, count, t);
  }
  for (std::uint32_t i = 0; i < count; ++i) wake(owners_[id].pop(), 1, t);
}

void Threads::wake(std::uint32_t index, std::uint32_t returned, Time t) {
  Thread& thread = threads_[index];
  thread.outstanding -= returned;
  if (!thread.waiting) return;
  if (world_.load.posting == Posting::kRound) {
    if (thread.outstanding > 0) return;
    thread.left_in_round = world_.load.send_depth;
  }
  thread.waiting = false;
  world_.events.push(t + thread.far_ns, event::kThreadStep, index);
}

std::uint64_t Threads::held_count() const {
  std::uint64_t held = 0;
  for (const Thread& thread : threads_) held += thread.outstanding;
  return held;
}

}  // namespace greynic::twin
