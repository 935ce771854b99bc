#pragma once

/// What the fabric's parts share: time, the events to come, the packets under way, chance.

#include <cmath>

#include "fabric/packet.h"
#include "greynic/statistics/random.h"
#include "parts/world.h"
#include "stages/calendar_queue.h"

namespace greynic::twin::fabric {

namespace event {

/// What can happen. `Event::subject` is a QP, a packet, a host, a port or a call; `count` the rest.
enum Kind : std::uint8_t {
  kDoorbell,       ///< the RNIC of a QP is told of `count` WQEs
  kWqesArrive,     ///< `count` WQEs are on chip
  kPayloadWanted,  ///< of the message `count` of a QP
  kEngineStep,     ///< the request engine of a host goes on
  kDataReady,      ///< the payload of a QP's next message is on chip
  kAnswerWanted,   ///< an atomic's turn has come; `count`: the shape of its answer
  kResponseReady,  ///< the payload of a QP's next answer is on chip
  kUnitDone,       ///< of a host; `count`: which unit
  kAtSwitch,       ///< a packet is at a switch
  kPortFree,       ///< a port may send its next packet
  kPausePort,      ///< a port is told to pause (`count` 1), or to go on (0)
  kPauseHost,      ///< so is a host
  kAtHost,         ///< a packet is at its receiver
  kDelivered,      ///< its message is whole in memory
  kReceived,       ///< the completion of a receive can be seen
  kAcknowledged,   ///< a QP knows that its first `count` messages are there
  kAnswerWritten,  ///< the response of a QP's message `count` is whole in memory
  kAnswered,       ///< the response of its message `count` is there
  kSentOff,        ///< UC and UD: its message `count` has left
  kTimer,          ///< a QP may have heard nothing for too long
  kRested,         ///< a QP has waited for a receiver long enough
  kReleased,       ///< the rate of a QP allows the next packet
  kPlaceFree,      ///< in the closed loop of a host, for a packet that waits
  kDropped,        ///< the network has dropped a packet of a host
  kSeen,           ///< a program sees what was written; a call
  kThread,         ///< a thread of a host has something to do
  kCall,           ///< a timer of the program
};

}  // namespace event

/// An object that will be needed soon, into the CPU's caches.
template <typename T>
void prefetch(const T* object, std::size_t bytes = sizeof(T)) {
  const auto* at = reinterpret_cast<const char*>(object);
  for (std::size_t line = 0; line < bytes; line += 64) __builtin_prefetch(at + line, 1);
}

struct Shared {
  explicit Shared(std::uint64_t seed) : random(seed) {}
  CalendarQueue events;
  PacketPool packets;
  statistics::Random random;
  Time now = 0;

  /// Of a transfer over PCIe. 1 - uniform() is exact, so this is random.exponential(), in half the
  /// time.
  [[nodiscard]] Time jitter() { return -kPcieJitterNs * std::log(1 - random.uniform()); }
};

}  // namespace greynic::twin::fabric
