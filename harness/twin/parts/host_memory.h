#pragma once

/// Host memory as an RNIC sees it: reads over PCIe, which are bounded in number; the WQEs and the
/// address translations that it keeps on chip; and the control verbs that take translations away.
/// Who deregisters a memory region makes its RNIC forget the translations of its pages, lest they
/// be used once more; traffic that goes on with the region, registered anew, reads them over PCIe
/// again, page by page.
///
/// Needs: the world's RNICs (read slots, caches, counters). Gives: when a read is granted, and
/// whether what is asked for is on chip.

#include <cstdint>

#include "parts/world.h"

namespace greynic::twin {

class HostMemory {
 public:
  explicit HostMemory(World& world) : world_(world) {}
  /// Sizes of memory and buffers; before caches are set up.
  void lay_out();
  [[nodiscard]] std::uint64_t pages() const { return pages_; }
  /// Memory regions that are registered anew (mr_churn_rate); after caches are set up.
  void lay_out_regions();
  /// Event kDeregister: one region, any of them, and the next such verb at a random time.
  void deregister(std::uint8_t nic, Time t);

  /// What lies on the socket away from the RNIC takes so much longer to write.
  [[nodiscard]] Time write_latency(std::uint32_t nic) const {
    return nic != kServer ? far_memory_ns_ : 0.0;
  }
  /// One more read over PCIe, when a slot is free. Returns when it was granted.
  Time begin_read(Nic& nic, Time t) { return begin_read(nic, t, world_.p.pcie_read_latency_ns); }
  /// What of a message has to be there before it can be sent: a burst, in requests of the link's
  /// size. Returns when the last was granted.
  Time begin_payload(Nic& nic, const MessageShape& shape, Time t) {
    ++nic.counters.payload_reads;
    for (std::uint32_t i = 0; i < shape.reads; ++i) t = begin_read(nic, t, read_latency(nic));
    return t;
  }
  /// From the grant of the last read of a payload until its first packet is whole on chip.
  [[nodiscard]] Time payload_latency(const Nic& nic, const MessageShape& shape) {
    return read_latency(nic) + shape.first_read_ns() + world_.jitter(kPcieJitterNs);
  }
  /// The n-th WQE of a stream comes on chip.
  void bring_wqe(std::uint32_t stream, std::uint32_t index) {
    world_.nics[world_.streams[stream].nic].wqes.touch(wqe_slot(stream, index));
  }
  [[nodiscard]] bool has_wqe(std::uint32_t stream, std::uint32_t index) const {
    return world_.nics[world_.streams[stream].nic].wqes.contains(wqe_slot(stream, index));
  }
  /// A READ that is answered needs its WQE once more: where the data goes.
  Time recall_wqe(std::uint32_t stream, Time t) {
    const Stream& s = world_.streams[stream];
    if (has_wqe(stream, s.done)) return t;
    Nic& nic = world_.nics[s.nic];
    ++nic.counters.wqe_cache_misses;
    return begin_read(nic, t) + world_.p.pcie_read_latency_ns;
  }
  /// Looks for the translation of a page of a buffer; messages are dealt out to pages at random.
  [[nodiscard]] bool misses_translation(Nic& nic) {
    if (!translation_matters_ || nic.translations.touch(world_.random.next() % pages_)) {
      return false;
    }
    ++nic.counters.translation_misses;
    return true;
  }

 private:
  Time begin_read(Nic& nic, Time t, Time latency) {
    const Time start = nic.read_slots.admit(t);
    nic.counters.pcie_back_pressure += start - t;
    nic.read_slots.enter(start + latency);
    ++nic.counters.pcie_read_tlps;
    return start;
  }
  [[nodiscard]] Time read_latency(const Nic& nic) const {
    return world_.p.pcie_read_latency_ns +
           write_latency(static_cast<std::uint32_t>(world_.number_of(nic)));
  }
  /// Where in host memory the n-th WQE of a stream lies: what the WQE cache knows it by.
  [[nodiscard]] std::uint64_t wqe_slot(std::uint32_t stream, std::uint32_t index) const {
    const std::uint32_t depth = world_.load.send_depth;
    return static_cast<std::uint64_t>(stream) * depth + index % depth;
  }

  World& world_;
  std::uint64_t pages_ = 1;
  Time far_memory_ns_ = 0;  ///< to the client's buffers, beyond what near memory takes
  bool translation_matters_ = false;
};

}  // namespace greynic::twin
