#pragma once

/// The way of a packet from one RNIC to another: eSwitch, wire, the switch port towards a server
/// that several clients share, eSwitch, and for data the write to memory.
///
/// Needs: the world's RNICs, whose stages a packet passes, and its load and effects. It is handed
/// the world in each call, since this is the innermost loop of a simulation.
/// Gives: when a packet arrives, and what became of it. It pushes no events, and knows nothing of
/// who sends a packet again, or more slowly.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "parts/world.h"
#include "stages/switch_port.h"

namespace greynic::twin {

/// What becomes of a data packet. kAnnounced: written, and the first of a message that needs a
/// receive WQE.
enum class Fate : std::uint8_t { kWritten, kAnnounced, kCorrupted, kOutOfSequence };

struct Arrival {
  Time wire_end, at_memory;
  Fate fate;
};

/// Of one packet through one eSwitch.
struct Crossing {
  Time latency = 0;
  double hops = 0;
  Time occupancy = 0;  ///< of the direction's pipes
};
/// Groups are walked `in_sequence`, or looked up at once.
[[nodiscard]] Crossing cross_groups(const Parameters& parameters, double groups, Time per_group_ns,
                                    bool in_sequence);

/// From one RNIC's wire to the other's eSwitch, without queues.
[[nodiscard]] Time one_way(const Parameters& parameters, bool overlay);

class Path {
 public:
  /// Sets up walks and closed loops of all RNICs, and the port where there is one.
  void lay_out(World& world);
  [[nodiscard]] SwitchPort& port() { return port_; }
  [[nodiscard]] const SwitchPort& port() const { return port_; }

  /// A data packet of a stream goes from one RNIC to another at t. `at_port(start, there, fate)` is
  /// called where the path has a switch port, once the packet is through it: it was put on the wire
  /// at `start`, the receiver is through with its headers at `there`, and port() says whether it
  /// was marked or dropped. It returns the packet's fate.
  template <typename AtPort>
  Arrival travel(World& world, std::uint32_t from, std::uint32_t to, std::uint32_t stream,
                 const Freight& freight, Time t, Fate fate, bool turn_begins,
                 const AtPort& at_port);
  /// A packet without payload. Returns when the receiver is through with its headers.
  Time send_control(World& world, std::uint32_t from, std::uint32_t to, double bytes, Time t);
  /// The same; kNever: the wire has corrupted it.
  Time send_word(World& world, std::uint32_t from, std::uint32_t to, double bytes, Time t);
  /// A frozen device sends in what is left of each 100 us: outages of seconds, at the pace of a
  /// run.
  [[nodiscard]] static Time thaw(const Effects& effects, Time t) {
    constexpr Time kPeriodNs = 100e3;
    const Time began = std::floor(t / kPeriodNs) * kPeriodNs;
    return std::max(t, began + effects.frozen_share * kPeriodNs);
  }

 private:
  struct Steering {  ///< what one direction of one eSwitch costs
    const GroupWalk* walk = nullptr;
    Time per_group_ns = 0;
    bool varies = false;  ///< not every packet walks as far; else `current` holds for all
    Crossing current;
  };
  struct Passage {  ///< one direction of the wire
    Steering encap, decap;
  };

  void lay_out_loops(World& world);
  void lay_out_port(const World& world);
  [[nodiscard]] static Crossing crossing_of(const World& world, const Steering& steering,
                                            double groups);
  static void draw_crossing(World& world, Steering& steering);
  /// Of the next packet.
  [[nodiscard]] static const Crossing& crossing(World& world, Steering& steering) {
    if (steering.varies) draw_crossing(world, steering);
    return steering.current;
  }
  Time cross(World& world, Nic& sender, Nic& receiver, std::size_t direction, double wire_ns,
             Time t, bool looped, bool data, Time& wire_end);
  [[nodiscard]] static Time recall_flow(World& world, Nic& nic, std::uint32_t stream, Time t);

  std::array<Passage, 2> passages_;
  std::array<Serial, 2> software_;  ///< the slow path, by direction
  Time one_way_ns_ = 0;
  SwitchPort port_;  ///< towards the server
};

/// Steering, wire, steering: common to data and control packets. Returns when the receiving RNIC is
/// through with the headers.
[[gnu::always_inline]] inline Time Path::cross(World& world, Nic& sender, Nic& receiver,
                                               std::size_t direction, double wire_ns, Time t,
                                               bool looped, bool data, Time& wire_end) {
  Passage& passage = passages_[direction];
  const Crossing& encap = crossing(world, passage.encap);
  const Crossing& decap = crossing(world, passage.decap);
  sender.counters.tx_hops += encap.hops;
  receiver.counters.rx_hops += decap.hops;
  Time out = sender.transmit_walk.pass(t, encap.latency, encap.occupancy, data);
  const bool switched = port_.present() && direction == 0 && !looped;
  if (data) {
    const Time unhindered = looped ? out : std::max(out, sender.wire.free());
    Time allowed = out;
    if (switched) [[unlikely]] {
      allowed = port_.admit(world.number_of(sender), unhindered);
    } else {
      if (!looped || world.effects.loopback_unlimited)
        allowed = receiver.receive_buffer.admit(unhindered);
      if (!looped) receiver.counters.tx_pause += allowed - unhindered;
    }
    if (!looped) sender.counters.rx_pause += allowed - unhindered;
    out = world.effects.frozen_share > 0
              ? thaw(world.effects, std::max(allowed, sender.wire.free()))
              : allowed;
    wire_ns += world.effects.transmit_stall_ns;
  }
  // The server's own link is the narrow one.
  if (port_.present() && direction == 1) [[unlikely]]
    wire_ns *= port_.stretch();
  wire_end = looped ? out + wire_ns : sender.wire.pass(out, wire_ns);
  sender.transmit_buffer.enter(wire_end);
  Time arrival = wire_end + (looped ? 0.0 : one_way_ns_);
  if (switched) [[unlikely]] {
    if (data) {  // a receiver that is full pauses the port
      const Time unhindered = std::max(arrival, port_.free());
      const Time allowed = receiver.receive_buffer.admit(unhindered);
      receiver.counters.tx_pause += allowed - unhindered;
      port_.hold_until(allowed);
    }
    arrival = port_.pass(world.number_of(sender), arrival, wire_ns, data, world.random);
    if (port_.dropped()) return arrival;
  }
  return receiver.receive_walk.pass(arrival, decap.latency, decap.occupancy, data);
}

// A data packet's whole way is one piece of code: it is inlined where packets are sent.

template <typename AtPort>
[[gnu::always_inline]] inline Arrival Path::travel(World& world, std::uint32_t from,
                                                   std::uint32_t to, std::uint32_t stream,
                                                   const Freight& freight, Time t, Fate fate,
                                                   bool turn_begins, const AtPort& at_port) {
  Nic& sender = world.nics[from];
  Nic& receiver = world.nics[to];
  const bool looped = world.loopback && from == to;
  const std::size_t direction = World::direction_from(from);
  Time start = sender.loop.admit(t);
  // Payload comes over the sender's PCIe link; packets that follow one another share it.
  start = std::max(start, sender.read_link.free());
  sender.read_link.hold_until(start + freight.read_ns);
  ++sender.counters.tx_packets;
  sender.counters.tx_bytes += freight.payload;
  const bool flows_miss = !sender.steering.never_misses();
  if (flows_miss) [[unlikely]]
    start = recall_flow(world, sender, stream, start);
  Time wire_end = 0;
  Time end =
      cross(world, sender, receiver, direction, freight.wire_ns, start, looped, true, wire_end);
  // What stays on the chip meets none of the stages that store packets for the wire.
  if (!looped) end += freight.stored_ns;
  if (flows_miss) [[unlikely]]
    end = recall_flow(world, receiver, stream, end);
  if (port_.present()) [[unlikely]]
    fate = at_port(start, end, fate);
  // The receiver keeps the context while the packets of a turn come in.
  if (!receiver.contexts.never_misses() && turn_begins &&
      !receiver.contexts.touch(world.qp_of(stream))) {
    ++receiver.counters.context_misses;
    end = receiver.fetch_slots.pass(end, world.p.context_fetch_ns);
  }
  // What is corrupted or out of sequence is found out before it is written.
  Time write_ns = freight.write_ns + world.effects.receive_stall_ns;
  if (fate >= Fate::kCorrupted) [[unlikely]]
    write_ns = 0;
  if (looped && !world.effects.loopback_unlimited) [[unlikely]] {
    receiver.spare -= write_ns;
    end += write_ns;
  } else {
    if (world.loopback) [[unlikely]]
      receiver.save_spare(end);
    end = receiver.receive_path.pass(end, write_ns);
    // Stages that store packets hold them elsewhere: the buffer before memory knows nothing of it.
    receiver.receive_buffer.enter(end - freight.stored_ns);
  }
  // The place in the closed loop is free again when word of the packet is back.
  sender.loop.enter(end + sender.loop_rest_ns);
  if (world.effects.slow_path_share > 0 && world.random.uniform() < world.effects.slow_path_share) {
    end = software_[direction].pass(end, 1e3 / world.p.slow_path_mpps) + world.p.upcall_us * 1e3;
  }
  if (fate == Fate::kCorrupted) [[unlikely]] {
    ++receiver.counters.dropped_packets;
    receiver.counters.dropped_bytes += freight.payload;
    return {wire_end, end, fate};
  }
  ++receiver.counters.rx_packets;
  receiver.counters.rx_bytes += freight.payload;
  return {wire_end, end, fate};
}

}  // namespace greynic::twin
