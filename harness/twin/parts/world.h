#pragma once

/// What all parts of one run act on: the RNICs and the streams between them, the messages, the
/// events to come, the source of chance, and what has been moved so far. A part keeps only what is
/// its own. None of them knows the engine that strings them together, so another engine can use
/// the same parts.

#include <cstdint>
#include <vector>

#include "greynic/statistics/random.h"
#include "parameters/host_load.h"
#include "parameters/parameters.h"
#include "parts/effects.h"
#include "parts/messages.h"
#include "parts/nic.h"
#include "parts/stream.h"
#include "stages/event_queue.h"
#include "stages/pcie.h"

namespace greynic::twin {

inline constexpr std::uint32_t kServer = 1;  ///< among the RNICs; all others are clients
inline constexpr Time kPcieJitterNs = 20;

namespace event {

/// What can happen. Unless it says otherwise, an event is about a stream (`Event::subject`), and
/// `Event::count` is how many messages it concerns.
enum Kind : std::uint8_t {
  kThreadStep,     ///< a thread posts, if it can
  kDoorbell,       ///< the RNIC is told of WQEs
  kWqeArrives,     ///< WQEs are on chip
  kPayloadWanted,  ///< of the message number `count`
  kEngineStep,     ///< the request engine of an RNIC goes on
  kDataReady,      ///< the payload is on chip
  kDelivered,      ///< a message is whole; `count`: see Engine::delivered
  kCompleted,      ///< the requester's thread can see it
  kPeerAnswers,    ///< the other side posts its half of a round trip
  kUnanswered,     ///< the requester's timer ran out; `count`: answers it had heard when it began
  kDuplicate,      ///< a packet has come again that the receiver has
  kGapSeen,        ///< the receiver misses a packet; `count` here and in the next: the gap's number
  kGoBack,         ///< the sender is told so
  kTimeout,        ///< or finds out by its timer
  kAnnounced,      ///< the first packet of a SEND is there; `count`: refusals before it was sent
  kNotReady,       ///< the sender is told that there was no receive WQE; `count`: the gap's number
  kRested,         ///< it has waited for one long enough
  kMarked,         ///< the receiver finds a mark of congestion
  kNotified,       ///< the sender is told of it
  kReleased,       ///< its rate allows the next packet
  kDeregister,     ///< a control verb on an RNIC
};

}  // namespace event

/// What is in the memory of a receiver, or never will be.
struct Moved {
  std::uint64_t data_packets = 0, messages = 0, messages_lost = 0;
  double payload = 0;  ///< bytes
};

struct World {
  World(const Parameters& parameters, const HostLoad& host_load, const Effects& planted,
        std::uint64_t seed)
      : p(parameters),
        load(host_load),
        effects(planted),
        random(seed),
        pcie{static_cast<int>(p.pcie_generation), static_cast<int>(p.pcie_lanes),
             static_cast<int>(p.pcie_max_payload_bytes),
             static_cast<int>(p.pcie_max_read_request_bytes)},
        nics(1 + load.sender_count, Nic(p)),
        packet_ns(1e3 / p.qp_packet_rate_cap_mpps) {}

  Parameters p;
  HostLoad load;
  Effects effects;
  statistics::Random random;
  PcieLink pcie;
  std::vector<Nic> nics;
  std::vector<Stream> streams;
  MessageCycle messages;
  EventQueue events;
  Moved moved;
  Time packet_ns;                          ///< that a processing unit takes for a packet
  std::uint32_t lanes = 2, lane_bits = 1;  ///< streams of one QP: 1, 2 or 4
  bool ping_pong = false, loopback = false;
  bool unusual = false;  ///< streams may rest, or give way to others

  [[nodiscard]] std::size_t number_of(const Nic& nic) const {
    return static_cast<std::size_t>(&nic - nics.data());
  }
  [[nodiscard]] std::uint32_t qp_of(std::uint32_t stream) const { return stream >> lane_bits; }
  [[nodiscard]] static std::uint32_t peer_of(std::uint32_t stream) { return stream ^ 1U; }
  /// 0 from a client to the server, 1 back.
  [[nodiscard]] static std::size_t direction_from(std::uint32_t nic) {
    return nic == kServer ? 1 : 0;
  }
  [[nodiscard]] Time jitter(Time mean) { return random.exponential(mean); }
};

}  // namespace greynic::twin
