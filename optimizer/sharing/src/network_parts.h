#pragma once

/// What a network of stations is made of (network.h): messages, ends of QPs, hosts, and the switch's ports
/// in front of them.

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "store.h"

namespace greynic::sharing {

/// Units that hand packets to the wire, each with turns of its own; QPs are dealt out to them.
constexpr std::uint32_t kUnits = 2;

struct Message {
  std::uint32_t demand = 0, end = 0;  ///< the end of the QP that asks
  std::uint32_t turns_left = 0;
  double fetched_at = 0;  ///< when its request is on the chip
  bool posted = false;    ///< by a broker
  bool answered = false;  ///< but what was posted before it may not be
  bool told = true;       ///< when it completes; else with the next that is
};

/// What an end sends in order: what it asks, or what it answers.
struct Lane {
  std::deque<std::uint32_t> messages;
  double context_at = 0;
  bool in_ring = false;
};

/// One end of a QP.
struct End {
  std::uint32_t host = 0, far = 0, thread = 0, place = 0;  ///< `place`: among those of its host
  Lane asks, answers;
  std::uint32_t reads_open = 0;
  std::deque<std::uint32_t> order;  ///< messages in the order in which they complete
  std::size_t unrung = 0;           ///< the last of them, whose doorbell is still to be rung
  // Shared QPs only: what waits for a place in the queue, by demand, and whose turn it is.
  std::uint64_t in_flight = 0;
  std::uint32_t posted = 0;
  struct Waiting {
    std::deque<std::uint32_t> messages;
    double credit = 0;
  };
  std::map<std::uint32_t, Waiting> waiting;
  std::deque<std::uint32_t> turns;
};

/// Hands packets of one QP after the other to the wire.
struct Unit {
  std::deque<std::uint32_t> ring;  ///< lanes: end x 2, + 1 for answers
  bool busy = false;
};

enum class Kind : std::uint8_t {
  kRung,      ///< an end: the doorbell of so many requests
  kFetched,   ///< the request that an end sends next
  kServed,    ///< a host: its broker has worked off what was done
  kTurnDone,  ///< host x kUnits + unit
  kAsked,     ///< a READ's request has come to the port
  kArrived,   ///< a turn of payload
  kWord,      ///< word of a WRITE
  kLeft,      ///< a host: the first that waited at its port has come through
  kTaken      ///< a turn of payload is in memory
};
struct Event {
  double time;
  Kind kind;
  std::uint32_t what, turns_left;  ///< of the message, after this turn; requests of a doorbell
  bool operator>(const Event& other) const { return time > other.time; }
};

struct Host {
  std::vector<double> thread_free;
  std::vector<std::uint32_t> inbox;  ///< of a broker: messages that are done
  bool broker_busy = false;
  std::array<Unit, kUnits> units;
  double fetcher_free = 0, wire_until = 0, taken_until = 0;
  std::deque<double> ready;  ///< when packets that are ready will have left
  std::uint32_t held = 0;    ///< packets that have come and are not taken yet
  // The switch's port in front of it.
  std::deque<Event> port;
  double port_until = 0;
  bool port_busy = false, port_paused = false;
  // What the switch holds of it.
  double in_switch = 0;
  bool stopped = false;
  std::vector<std::uint32_t> waiting_units;
  std::uint32_t ends = 0;
  std::optional<Store> contexts;
};

}  // namespace greynic::sharing
