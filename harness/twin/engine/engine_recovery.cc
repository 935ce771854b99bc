#include <algorithm>

#include "engine/engine.h"

/// Packets that are corrupted on the wire, messages that find no receive WQE, and what RC does
/// about both: go back N. The receiver throws away what follows the gap and sends one negative
/// acknowledgement; the sender starts again at the missing packet when it hears of it, or when its
/// timer runs out because nothing followed. Of a message without receive WQE that is its first
/// packet, and the sender rests before it comes again. After so many tries the QP fails. UC and UD
/// lose the message. Requests without data are not lost; answers are (engine_answers.cc).

namespace greynic::twin {
namespace {

constexpr int kForever = 7;  ///< rnr_retry: tries without end

}  // namespace

void Engine::lay_out_recoveries() {
  recoveries_.resize(streams_.size());
  unusual_ = true;
  for (std::uint32_t id = 0; id < streams_.size(); ++id) {
    recoveries_[id].delivered = streams_[id].sent;
  }
  for (const Event& event : events_.all()) {
    if (event.kind == kDelivered) --recoveries_[event.subject].delivered;
  }
}

/// Called before the packet is counted as sent.
Engine::Fate Engine::fate_of_packet(std::uint32_t id, Time t) {
  Stream& s = streams_[id];
  Recovery& recovery = recoveries_[id];
  // Loopback does not reach the wire.
  const bool corrupted = s.nic != s.to && w_.loss > 0 && random_.uniform() < w_.loss;
  const bool unheard = t >= outage_begins_ && t < outage_ends_;
  if (recovery.behind_gap) {
    ++recovery.sent_behind;
    return corrupted ? Fate::kCorrupted : Fate::kOutOfSequence;
  }
  if (!corrupted && !unheard) {
    recovery.tries = 0;
    if (recovery.broken) return Fate::kOutOfSequence;
    return announces(s) ? Fate::kAnnounced : Fate::kWritten;
  }
  open_gap(id, s.packets_left, t);
  if (unheard && recovery.behind_gap) {
    // It would send what else it has, and all of it in vain: nothing hangs on that.
    s.resting = recovery.unheard = true;
    ++unheard_;
  }
  return Fate::kCorrupted;
}

/// A packet is lost; `packets_left` of its message, itself among them.
void Engine::open_gap(std::uint32_t id, std::uint32_t packets_left, Time t) {
  Recovery& recovery = recoveries_[id];
  if (w_.transport != Transport::kRC) {
    recovery.broken = true;
    return;
  }
  // The receiver speaks once of a packet that it misses, even when that is lost once more.
  const bool again = recovery.message == streams_[id].sent && recovery.packets_left == packets_left;
  recovery.nak_sent = again && recovery.nak_sent;
  recovery.behind_gap = true;
  recovery.message = streams_[id].sent;
  recovery.packets_left = packets_left;
  recovery.sent_behind = 1;
  recovery.bytes_behind = 0;
  watch_gap(id, t);
}

/// The sender's timer, should it not hear of the gap.
void Engine::watch_gap(std::uint32_t id, Time t) {
  const Time timeout = w_.retries.ack_timeout_ns();
  if (timeout < kNever) events_.push(t + timeout, kTimeout, id, recoveries_[id].gap);
}

/// A packet that is not just written has arrived. Where it is not written at all it was corrupted,
/// or something before it is missing.
void Engine::settle(std::uint32_t id, Fate fate, const Freight& freight, Time t) {
  if (fate == Fate::kAnnounced) {
    record(t, freight.payload);
    return events_.push(t, kAnnounced, id, recoveries_[id].refusals);
  }
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
  if (recoveries_[id].gap != gap) return;
  ++nics_[s.to].counters.naks_sent;
  const Time back = send_word(s.to, s.nic, header::kAeth, t);
  if (back < kNever) events_.push(back + p_.ack_ns, kGoBack, id, gap);
}

void Engine::go_back(std::uint32_t id, std::uint32_t gap, bool timed_out, Time t) {
  Recovery& recovery = recoveries_[id];
  if (!recovery.behind_gap || recovery.gap != gap || recovery.stopped) return;
  hear_again(id);
  NicCounters& counters = nics_[streams_[id].nic].counters;
  ++(timed_out ? counters.timeouts : counters.sequence_naks);
  if (recovery.tries == w_.retries.retry_count) return fail_qp(id, Exhausted::kRetries);
  ++recovery.tries;
  rewind(id);
  activate(id, t);
}

void Engine::hear_again(std::uint32_t id) {
  Recovery& recovery = recoveries_[id];
  if (!recovery.unheard) return;
  recovery.unheard = streams_[id].resting = false;
  --unheard_;
}

/// The sender starts again at the gap.
void Engine::rewind(std::uint32_t id) {
  Stream& s = streams_[id];
  Recovery& recovery = recoveries_[id];
  NicCounters& counters = nics_[s.nic].counters;
  counters.retransmitted_packets += recovery.sent_behind;
  counters.retransmitted_bytes += recovery.bytes_behind;
  // Messages that were begun since are ready to be sent once more.
  const std::uint32_t begun = s.sent + (s.packets_left > 0 ? 1 : 0);
  s.ready += begun - (recovery.message + 1);
  s.sent = recovery.message;
  s.packets_left = recovery.packets_left;
  recovery.behind_gap = false;
  ++recovery.gap;
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

/// A receive WQE belongs to a message from its first packet on. Runs in which no receiver was ever
/// short of them save that event: they look at the end of a message, and so does the first refusal
/// of a run. Where packets may overtake one another the end has to do as well.
bool Engine::announces(const Stream& s) const {
  const std::uint32_t packets = shape_at(s.sent).packets;
  return s.packets_left == packets && packets > 1 && w_.operation == Operation::kSend &&
         w_.transport == Transport::kRC && !loopback_ && effects_.slow_path_share <= 0;
}

void Engine::announced(std::uint32_t id, std::uint32_t refusals, Time t) {
  Recovery& recovery = recoveries_[id];
  if (is_void(id, refusals) || recovery.received) return;
  recovery.received = take_receive(id, t);
  if (!recovery.received) refuse(id, t);
}

/// Was this sent before the receiver refused something, so that it counts as out of sequence?
bool Engine::is_void(std::uint32_t id, std::uint32_t refusals) const {
  return w_.operation == Operation::kSend && !recoveries_.empty() &&
         refusals != recoveries_[id].refusals;
}

/// For a SEND that is whole.
bool Engine::find_receive(std::uint32_t id, Time t) {
  if (recoveries_.empty()) return take_receive(id, t);
  Recovery& recovery = recoveries_[id];
  if (!recovery.received && !take_receive(id, t)) return false;
  recovery.received = false;
  recovery.rnr_tries = 0;
  ++recovery.delivered;
  return true;
}

/// The receiver is not ready for the message that comes next, and throws it away with all that
/// follows. It was counted as written when it was sent.
void Engine::refuse(std::uint32_t id, Time t) {
  if (recoveries_.empty()) {
    lay_out_recoveries();
    --recoveries_[id].delivered;  // this one, whose event is not in the queue any more
  }
  const Stream& s = streams_[id];
  Recovery& recovery = recoveries_[id];
  NicCounters& receiver = nics_[s.to].counters;
  ++receiver.rnr_naks;
  // Up to where it was: a gap, or what is being sent.
  const bool gap = recovery.behind_gap;
  const std::uint32_t end = gap ? recovery.message : s.sent;
  const std::uint32_t left = gap ? recovery.packets_left : s.packets_left;
  std::uint64_t packets = 0;
  std::uint64_t bytes = 0;
  for (std::uint32_t message = recovery.delivered; message < end; ++message) {
    packets += shape_at(message).packets;
    bytes += shape_at(message).bytes;
  }
  if (left > 0) {
    packets += shape_at(end).packets - left;
    bytes += static_cast<std::uint64_t>(shape_at(end).packets - left) * w_.mtu_bytes;
  }
  data_packets_ -= packets;
  payload_ -= static_cast<double>(bytes);
  receiver.thrown_bytes += bytes;

  recovery.sent_behind = packets + (gap ? recovery.sent_behind : 0);
  recovery.bytes_behind = bytes + (gap ? recovery.bytes_behind : 0);
  recovery.behind_gap = true;
  recovery.nak_sent = true;
  recovery.message = recovery.delivered;
  recovery.packets_left = shape_at(recovery.message).packets;
  ++recovery.gap;
  ++recovery.refusals;
  const Time back = send_word(s.to, s.nic, header::kAeth, t);
  if (back < kNever) {
    events_.push(back + p_.ack_ns, kNotReady, id, recovery.gap);
  } else {
    watch_gap(id, t);
  }
}

/// The sender hears of it.
void Engine::not_ready(std::uint32_t id, std::uint32_t gap, Time t) {
  Recovery& recovery = recoveries_[id];
  if (!recovery.behind_gap || recovery.gap != gap || recovery.stopped) return;
  Stream& s = streams_[id];
  ++nics_[s.nic].counters.rnr_naks_heard;
  const int most = w_.retries.rnr_retry;
  if (most != kForever && recovery.rnr_tries == most) {
    return fail_qp(id, Exhausted::kRnrRetries);
  }
  if (most != kForever) ++recovery.rnr_tries;
  rewind(id);
  s.resting = true;
  events_.push(t + w_.retries.rnr_timer_ns(), kRested, id);
}

void Engine::rested(std::uint32_t id, Time t) {
  if (recoveries_[id].stopped) return;
  streams_[id].resting = false;
  activate(id, t);
}

/// Whoever asked for what `id` sends has tried often enough: its QP goes to error, with it all that
/// is open on it, and nothing is sent on it any more, in either direction.
void Engine::fail_qp(std::uint32_t id, Exhausted what) {
  const std::uint32_t asked_by = streams_[id].responds ? peer_of(id) : id;
  const Stream& requests = streams_[asked_by];
  NicCounters& counters = nics_[requests.nic].counters;
  ++(what == Exhausted::kRetries ? counters.retries_exceeded : counters.rnr_retries_exceeded);
  const std::uint32_t first_open = recoveries_[id].message - recoveries_[id].unacknowledged;
  counters.flushed += requests.posted - first_open - 1;
  recoveries_[asked_by].flushes = true;
  const std::uint32_t first = qp_of(id) << lane_bits_;
  for (std::uint32_t lane = first; lane < first + lanes_; ++lane) {
    hear_again(lane);
    streams_[lane].resting = true;
    recoveries_[lane].stopped = true;
  }
}

}  // namespace greynic::twin
