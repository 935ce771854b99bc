#pragma once

/// From the doorbell to the message that is ready to be sent: an RNIC reads WQEs, and its request
/// engine takes them one after another, with the reads of WQEs, translations and payload that each
/// needs.
///
/// Needs: the world and host memory. Gives: kDataReady events.

#include <cstdint>

#include "parts/host_memory.h"
#include "parts/world.h"

namespace greynic::twin {

class RequestEngine {
 public:
  RequestEngine(World& world, HostMemory& memory) : world_(world), memory_(memory) {}
  void lay_out();

  // Events, by their names.

  /// The RNIC reads what was posted. Such reads are small and go before payload, but they take
  /// slots.
  void doorbell(std::uint32_t stream, std::uint32_t count, Time t);
  void wqes_arrive(std::uint32_t stream, std::uint32_t count, Time t);
  void payload_wanted(std::uint32_t stream, std::uint32_t message, Time t);
  void engine_step(std::uint8_t nic, Time t) {
    world_.nics[nic].engine_busy = false;
    go_on(nic, t);
  }
  /// A READ or ATOMIC has arrived, which its receiver answers by itself.
  void respond(std::uint32_t stream, std::uint32_t message, Time t);

 private:
  void go_on(std::uint8_t nic, Time t);
  void begin_request(std::uint8_t nic, std::uint32_t stream, Time t);

  World& world_;
  HostMemory& memory_;
  std::uint32_t wqe_blocks_ = 1;  ///< of 64 bytes
};

}  // namespace greynic::twin
