#pragma once

/// One RNIC and its port: every serial resource and every bounded window that a packet or a request
/// meets there. The stages are closed forms (stage.h); path.h strings them together.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "parameters/parameters.h"
#include "stages/cache.h"
#include "stages/stage.h"
#include "stages/switch_port.h"
#include "stages/walk.h"

namespace greynic::twin {

/// Event counts of one RNIC. Names on the outside: counters.cc.
struct NicCounters {
  std::uint64_t tx_packets = 0, tx_bytes = 0;  ///< bytes: payload and headers of data packets
  std::uint64_t rx_packets = 0, rx_bytes = 0;
  std::uint64_t write_requests = 0, read_requests = 0, atomic_requests = 0, send_messages = 0;
  std::uint64_t doorbells = 0, blueflame_doorbells = 0, posted = 0, completions = 0;
  std::uint64_t wqe_reads = 0, wqe_cache_misses = 0, payload_reads = 0;
  std::uint64_t context_misses = 0, translation_misses = 0, steering_misses = 0;
  std::uint64_t pcie_read_tlps = 0, pcie_write_tlps = 0;
  std::uint64_t rnr_naks = 0, out_of_buffer = 0, acks = 0;
  std::uint64_t retransmitted_packets = 0, dropped_packets = 0;
  std::uint64_t retransmitted_bytes = 0, dropped_bytes = 0;
  std::uint64_t thrown_bytes = 0;     ///< that are not written: dropped, or out of sequence
  std::uint64_t out_of_sequence = 0;  ///< packets received behind a gap, and thrown away
  std::uint64_t ecn_marked = 0, cnps_sent = 0, cnps_handled = 0, cnps_lost = 0;
  std::uint64_t sequence_naks = 0, timeouts = 0;  ///< that made this RNIC go back
  std::uint64_t naks_sent = 0;                    ///< for packets behind a gap
  std::uint64_t port_discards = 0;                ///< of packets of this RNIC, by a full switch
  std::uint64_t rnr_naks_heard = 0;
  std::uint64_t retries_exceeded = 0, rnr_retries_exceeded = 0;  ///< QPs that failed
  std::uint64_t flushed = 0;  ///< requests that were open on them, but for the one that failed
  double tx_hops = 0, rx_hops = 0;  ///< steering hops in all pipes
  Time rx_pause = 0;                ///< time in which this RNIC was told to pause, ns
  Time tx_pause = 0;                ///< time in which this RNIC told its partner to pause, ns
  Time pcie_back_pressure = 0;      ///< time in which the engine waited for a read slot, ns
};

/// A processing unit: serves the QPs that are its own, in turns of a few packets.
struct Unit {
  Time free = 0;
  std::uint32_t head = ~0U;
  std::uint32_t tail = ~0U;
  std::uint32_t turn_left = 0;  ///< packets that the stream at the head may still send
};

struct Nic {
  explicit Nic(const Parameters& p)
      : units(static_cast<std::size_t>(p.processing_unit_count)),
        transmit_buffer(static_cast<std::size_t>(p.transmit_buffer_packets)),
        receive_buffer(static_cast<std::size_t>(p.receive_buffer_packets),
                       static_cast<std::size_t>(p.receive_resume_packets)),
        read_slots(static_cast<std::size_t>(p.pcie_read_slot_count)),
        fetch_slots(static_cast<std::size_t>(p.context_fetch_slot_count)) {}

  std::vector<Unit> units;
  // Way out.
  Time unit_ns = 0;       ///< that encapsulation takes of a processing unit
  Window loop;            ///< packets in the closed loop
  Time loop_rest_ns = 0;  ///< after a packet is in memory, until its place is free again
  Walk transmit_walk;
  Serial wire;
  Window transmit_buffer;
  // Way in.
  Walk receive_walk;
  Serial receive_path;  ///< DMA writes to host memory
  PauseBuffer receive_buffer;
  Time spare = 0;  ///< what the receive path did not need: loopback traffic may use it
  // Requests.
  ReadCredits read_slots;
  Window fetch_slots;
  Serial read_link;  ///< PCIe towards the device
  Serial atomics;
  std::vector<std::uint32_t> requests;  ///< ring of streams whose next WQE waits for the engine
  std::size_t request_head = 0, request_count = 0;
  Time engine_free = 0;
  bool engine_busy = false;
  Cache contexts, translations, wqes;
  Cache steering;  ///< flow rules
  NicCounters counters;

  /// The receive path was idle up to t; what it could have done until then is spare, for a while.
  [[gnu::noinline]] void save_spare(Time t) {  // seldom used, and not to burden who does not
    constexpr Time kMostSpareNs = 2000;
    spare = std::clamp(spare + t - receive_path.free(), spare, std::max(spare, kMostSpareNs));
    receive_path.hold_until(t);
  }

  void push_request(std::uint32_t stream) {
    if (request_count == requests.size()) grow_requests();
    std::size_t at = request_head + request_count++;
    if (at >= requests.size()) at -= requests.size();
    requests[at] = stream;
  }
  template <typename Call>
  void for_each_request(const Call& call) const {
    for (std::size_t i = 0; i < request_count; ++i) {
      call(requests[(request_head + i) % requests.size()]);
    }
  }
  std::uint32_t pop_request() {
    const std::uint32_t stream = requests[request_head];
    if (++request_head == requests.size()) request_head = 0;
    --request_count;
    return stream;
  }

 private:
  void grow_requests() {
    std::vector<std::uint32_t> larger(std::max<std::size_t>(64, 2 * requests.size()));
    for (std::size_t i = 0; i < request_count; ++i) {
      larger[i] = requests[(request_head + i) % requests.size()];
    }
    requests.swap(larger);
    request_head = 0;
  }
};

}  // namespace greynic::twin
