#include "engine.h"

/// Packets that are corrupted on the wire, and what RC does about it: go back N. The receiver
/// throws away what follows the gap and sends one negative acknowledgement; the sender starts again
/// at the missing packet when it hears of it, or when its timer runs out because nothing followed.
/// UC and UD lose the message. Acknowledgements and requests without data are not lost.

namespace greynic::twin {
namespace {

/// perftest's timeout of 14: 4.096 us x 2^14 (InfiniBand specification, local ACK timeout).
constexpr Time kAckTimeoutNs = 4096.0 * (1 << 14);

}  // namespace

/// Called before the packet is counted as sent.
Engine::Fate Engine::fate_of_packet(std::uint32_t id, Time t) {
  const Stream& s = streams_[id];
  if (s.nic == s.to) return Fate::kWritten;  // loopback does not reach the wire
  Recovery& recovery = recoveries_[id];
  const bool corrupted = random_.uniform() < w_.loss;
  if (recovery.behind_gap) {
    ++recovery.sent_behind;
    return corrupted ? Fate::kCorrupted : Fate::kOutOfSequence;
  }
  if (!corrupted) return recovery.broken ? Fate::kOutOfSequence : Fate::kWritten;
  if (w_.transport == Transport::kRc) {
    recovery.behind_gap = true;
    recovery.nak_sent = false;
    recovery.message = s.sent;
    recovery.packets_left = s.packets_left;
    recovery.sent_behind = 1;
    recovery.bytes_behind = 0;
    events_.push(t + kAckTimeoutNs, kTimeout, id, recovery.gap);
  } else {
    recovery.broken = true;
  }
  return Fate::kCorrupted;
}

/// The packet is not written: it was corrupted, or something before it is missing.
void Engine::throw_away(std::uint32_t id, Fate fate, const Freight& freight, Time t) {
  nics_[streams_[id].to].counters.thrown_bytes += freight.payload;
  if (recoveries_[id].behind_gap) recoveries_[id].bytes_behind += freight.payload;
  if (fate == Fate::kOutOfSequence) tell_of_gap(id, t);
}

/// The receiver finds a packet behind a gap at t. The first one makes it speak.
void Engine::tell_of_gap(std::uint32_t id, Time t) {
  ++nics_[streams_[id].to].counters.out_of_sequence;
  Recovery& recovery = recoveries_[id];
  if (!recovery.behind_gap || recovery.nak_sent) return;
  recovery.nak_sent = true;
  events_.push(t, kGapSeen, id, recovery.gap);
}

void Engine::gap_seen(std::uint32_t id, std::uint32_t gap, Time t) {
  const Stream& s = streams_[id];
  ++nics_[s.to].counters.naks_sent;
  const Time back = send_control(s.to, s.nic, header::kAeth, t) + p_.ack_ns;
  events_.push(back, kGoBack, id, gap);
}

void Engine::go_back(std::uint32_t id, std::uint32_t gap, bool timed_out, Time t) {
  Stream& s = streams_[id];
  Recovery& recovery = recoveries_[id];
  if (!recovery.behind_gap || recovery.gap != gap) return;
  NicCounters& counters = nics_[s.nic].counters;
  ++(timed_out ? counters.timeouts : counters.sequence_naks);
  counters.retransmitted_packets += recovery.sent_behind;
  counters.retransmitted_bytes += recovery.bytes_behind;
  // Messages that were begun since are ready to be sent once more.
  const std::uint32_t begun = s.sent + (s.packets_left > 0 ? 1 : 0);
  s.ready += begun - (recovery.message + 1);
  s.sent = recovery.message;
  s.packets_left = recovery.packets_left;
  recovery.behind_gap = false;
  ++recovery.gap;
  activate(id, t);
}

/// The last packet of a message has left. RC delivers it unless a packet of it or before it is
/// missing; it will come again. UC and UD deliver it when it is whole.
bool Engine::message_survives(std::uint32_t id) {
  Recovery& recovery = recoveries_[id];
  if (recovery.behind_gap) return false;
  if (!recovery.broken) return true;
  recovery.broken = false;
  ++messages_lost_;
  return false;
}

}  // namespace greynic::twin
