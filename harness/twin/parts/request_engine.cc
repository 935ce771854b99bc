#include "parts/request_engine.h"

#include <algorithm>

namespace greynic::twin {
namespace {

constexpr std::uint32_t kBlocksPerRead = 4;  ///< of WQEs, 64 bytes each, in one 256-byte read
constexpr std::uint32_t kBlock = 2;          ///< WQEs read again together

}  // namespace

void RequestEngine::lay_out() {
  // 16 bytes each: what to do, where to (not of a SEND), and an element.
  const HostLoad& load = world_.load;
  const std::uint32_t segments = 1 + (load.operation == Operation::kSend ? 0 : 1) + load.sge_count;
  wqe_blocks_ = (segments + 3) / 4;
}

void RequestEngine::doorbell(std::uint32_t id, std::uint32_t count, Time t) {
  Nic& nic = world_.nics[world_.streams[id].nic];
  const Time latency = world_.p.pcie_read_latency_ns;
  const std::uint32_t reads = (count * wqe_blocks_ + kBlocksPerRead - 1) / kBlocksPerRead;
  for (std::uint32_t i = 0; i < reads; ++i) {
    nic.read_slots.enter(nic.read_slots.admit(t) + latency);
  }
  nic.counters.wqe_reads += reads;
  nic.counters.pcie_read_tlps += reads;
  world_.events.push(t + latency + world_.jitter(kPcieJitterNs), event::kWqeArrives, id, count);
}

void RequestEngine::wqes_arrive(std::uint32_t id, std::uint32_t count, Time t) {
  Stream& s = world_.streams[id];
  for (std::uint32_t i = 0; i < count; ++i) {
    memory_.bring_wqe(id, s.fetched);
    ++s.fetched;
    world_.nics[s.nic].push_request(id);
  }
  go_on(s.nic, t);
}

void RequestEngine::go_on(std::uint8_t side, Time t) {
  Nic& nic = world_.nics[side];
  while (nic.request_count > 0 && !nic.engine_busy) {
    if (nic.engine_free > t) {
      nic.engine_busy = true;
      world_.events.push(nic.engine_free, event::kEngineStep, side);
      return;
    }
    begin_request(side, nic.pop_request(), t);
  }
}

void RequestEngine::begin_request(std::uint8_t side, std::uint32_t id, Time t) {
  Nic& nic = world_.nics[side];
  const Parameters& p = world_.p;
  const std::uint32_t index = world_.streams[id].handled++;
  const bool write = world_.load.carries_data_in_request();
  nic.engine_free = t + 1e3 / (write ? p.peak_write_mops : p.peak_read_mops);
  int reads_before = 0;
  if (!memory_.has_wqe(id, index)) {
    // A WQE that has left the chip is read again. While its payload is read it has to stay, with
    // its neighbour in the same block of two, and others leave for them; a READ request needs it
    // no more.
    for (std::uint32_t i = 0; write && i < kBlock; ++i) {
      memory_.bring_wqe(id, index / kBlock * kBlock + i);
      if (i > 0) (void)memory_.begin_read(nic, nic.engine_free);
    }
    ++nic.counters.wqe_cache_misses;
    ++reads_before;
  }
  if (memory_.misses_translation(nic)) ++reads_before;
  // Whoever needs a read holds the engine until a slot is free; what depends on its answer goes on
  // by itself.
  Time ready = nic.engine_free;
  for (int i = 0; i < reads_before; ++i) {
    nic.engine_free = memory_.begin_read(nic, nic.engine_free);
    ready = std::max(ready, nic.engine_free) + p.pcie_read_latency_ns;
  }
  const MessageShape& shape = world_.messages[index];
  if (!write || shape.inlined) {
    world_.events.push(ready, event::kDataReady, id);
  } else if (reads_before > 0) {
    world_.events.push(ready, event::kPayloadWanted, id, index);
  } else {
    nic.engine_free = memory_.begin_payload(nic, shape, ready);
    world_.events.push(nic.engine_free + memory_.payload_latency(nic, shape), event::kDataReady,
                       id);
  }
}

void RequestEngine::payload_wanted(std::uint32_t id, std::uint32_t message, Time t) {
  Nic& nic = world_.nics[world_.streams[id].nic];
  const MessageShape& shape = world_.messages[message];
  const Time start = memory_.begin_payload(nic, shape, t);
  world_.events.push(start + memory_.payload_latency(nic, shape), event::kDataReady, id);
}

void RequestEngine::respond(std::uint32_t id, std::uint32_t message, Time t) {
  Nic& receiver = world_.nics[world_.streams[id].to];
  const bool atomic = world_.load.operation == Operation::kAtomic;
  if (atomic) {
    ++receiver.counters.atomic_requests;
    t = receiver.atomics.pass(t, 1e3 / world_.p.atomic_rate_mops);
  } else {
    ++receiver.counters.read_requests;
  }
  if (memory_.misses_translation(receiver)) t += world_.p.pcie_read_latency_ns;
  const std::uint32_t answers = World::peer_of(id);
  // An atomic may wait long for its turn, and holds no read slot meanwhile.
  if (atomic) return world_.events.push(t, event::kPayloadWanted, answers, message);
  const MessageShape& shape = world_.messages[message];
  const Time start = memory_.begin_payload(receiver, shape, t);
  world_.events.push(start + memory_.payload_latency(receiver, shape), event::kDataReady, answers);
}

}  // namespace greynic::twin
