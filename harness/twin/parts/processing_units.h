#pragma once

/// The processing units of all RNICs: each takes the streams that are its own in turn, and sends a
/// few packets of each. A stream that has something to send joins its unit's ring, asks for its QP
/// context at once, and leaves the ring when it has nothing left, rests, or is ahead of its rate.
///
/// Needs: the world, handed over in each call since this is the innermost loop of a simulation; the
/// rates of QPs (congestion.h); and from the caller, what sending a packet means.
/// Gives: when the next unit is done with a packet, and whose it is.

#include <algorithm>
#include <cstdint>

#include "parts/congestion.h"
#include "parts/path.h"
#include "parts/world.h"
#include "stages/unit_queue.h"

namespace greynic::twin {

class ProcessingUnits {
 public:
  explicit ProcessingUnits(Congestion& congestion) : congestion_(congestion) {}
  /// QPs are dealt out to units in turn, so units beyond the QPs have nothing to do; nor have those
  /// of RNICs from number `nic_count` on, which only acknowledge.
  void lay_out(std::uint32_t nic_count, std::uint32_t units_in_use) {
    queue_ = UnitQueue(nic_count, units_in_use);
  }
  /// When the first unit is done; kNever: none has anything to do.
  [[nodiscard]] Time time() const { return queue_.time(); }

  /// A stream may have something to send at t.
  void activate(World& world, std::uint32_t stream, Time t) {
    Stream& s = world.streams[stream];
    if (s.in_ring || s.resting || (s.ready == 0 && s.packets_left == 0) ||
        congestion_.hold_back(stream, t)) {
      return;
    }
    s.in_ring = true;
    s.next = kNone;
    Nic& nic = world.nics[s.nic];
    const auto index = static_cast<std::uint32_t>(world.qp_of(stream) % nic.units.size());
    Unit& unit = nic.units[index];
    call_context(world, nic, stream, t);
    if (unit.head == kNone) {
      unit.head = unit.tail = stream;
      queue_.push({s.nic, index}, begin_turn(world, s.nic, index, t));
    } else {
      world.streams[unit.tail].next = stream;
      unit.tail = stream;
    }
  }

  /// The first unit is done with a packet: `send(nic, stream, time, turn_begins)` sends it.
  template <typename Send>
  void send_first(World& world, const Send& send);

 private:
  static constexpr Time kLoopbackRetryNs = 500;
  static constexpr double kUnitJitter = 0.02;  ///< spread of a packet's time in the unit

  [[nodiscard]] static Time service_time(World& world, const Nic& nic) {
    return world.packet_ns * (1 + kUnitJitter * (world.random.uniform() - 0.5)) + nic.unit_ns;
  }
  /// The stream at the head goes.
  static void leave_ring(World& world, Unit& unit) {
    Stream& s = world.streams[unit.head];
    unit.head = s.next;
    if (unit.head == kNone) unit.tail = kNone;
    s.in_ring = false;
  }
  static void call_context(World& world, Nic& nic, std::uint32_t stream, Time t);
  [[nodiscard]] static Time begin_turn(World& world, std::size_t nic, std::uint32_t index, Time t);

  Congestion& congestion_;
  UnitQueue queue_;
};

/// A stream that joins its unit's ring asks for its QP context at once; by the time its turn comes
/// it may be on chip. Fetches are bounded in number, so with many missing the ring waits for them.
inline void ProcessingUnits::call_context(World& world, Nic& nic, std::uint32_t stream, Time t) {
  if (nic.contexts.never_misses() || nic.contexts.touch(world.qp_of(stream))) return;
  ++nic.counters.context_misses;
  // RC keeps requester and acknowledgement state, which are fetched one beside the other.
  const Time fetch_ns = world.p.context_fetch_ns;
  Time there = nic.fetch_slots.pass(t, fetch_ns);
  if (world.load.transport == Transport::kRC) there = nic.fetch_slots.pass(t, fetch_ns);
  Time& not_before = world.streams[stream].not_before;
  not_before = std::max(not_before, there);
}

/// Takes up the stream at the head of a unit's ring; returns when its first packet is out.
inline Time ProcessingUnits::begin_turn(World& world, std::size_t side, std::uint32_t index,
                                        Time t) {
  Unit& unit = world.nics[side].units[index];
  Stream& s = world.streams[unit.head];
  // The next turn's stream comes from memory while this one's packets are handled.
  if (s.next != kNone) __builtin_prefetch(&world.streams[s.next], 1);
  unit.turn_left = kTurnPackets;
  Time from = std::max({unit.free, t, s.not_before});
  if (world.effects.frozen_share > 0) [[unlikely]]
    from = Path::thaw(world.effects, from);
  return from + service_time(world, world.nics[side]);
}

template <typename Send>
inline void ProcessingUnits::send_first(World& world, const Send& send) {
  const Time t = queue_.time();
  const UnitQueue::Unit which = queue_.first();
  queue_.pop();
  const auto [side, index] = which;
  Nic& nic = world.nics[side];
  Unit& unit = nic.units[index];
  const std::uint32_t id = unit.head;
  Stream& s = world.streams[id];
  if (world.unusual) [[unlikely]] {
    if (s.resting) {
      leave_ring(world, unit);
      if (unit.head != kNone) queue_.push(which, begin_turn(world, side, index, t));
      return;
    }
    if (world.loopback && s.nic == s.to && !world.effects.loopback_unlimited) {
      // Loopback gives way to the wire: it takes what the receive path has to spare.
      nic.save_spare(t);
      if (nic.spare <= 0) return queue_.push(which, t + kLoopbackRetryNs);
    }
  }
  send(side, id, t, unit.turn_left == kTurnPackets);
  // A full transmit buffer holds the unit.
  unit.free = nic.transmit_buffer.admit(t);
  if (world.effects.frozen_share > 0) [[unlikely]]
    unit.free = Path::thaw(world.effects, unit.free);
  if (s.packets_left > 0 && --unit.turn_left > 0) {
    return queue_.push(which, unit.free + service_time(world, nic));
  }
  leave_ring(world, unit);
  if ((s.packets_left > 0 || s.ready > 0) && !s.resting && !congestion_.hold_back(id, t)) {
    s.in_ring = true;
    s.next = kNone;
    call_context(world, nic, id, t);
    if (unit.head == kNone) {
      unit.head = id;
    } else {
      world.streams[unit.tail].next = id;
    }
    unit.tail = id;
  }
  if (unit.head != kNone) queue_.push(which, begin_turn(world, side, index, t));
}

}  // namespace greynic::twin
