#include "parts/recovery.h"

namespace greynic::twin {
namespace {

constexpr int kForever = 7;  ///< rnr_retry: tries without end

}  // namespace

void Recovery::lay_out() {
  streams_.resize(world_.streams.size());
  world_.unusual = true;
  for (std::uint32_t id = 0; id < streams_.size(); ++id) {
    streams_[id].delivered = world_.streams[id].sent;
  }
  for (const Event& event : world_.events.all()) {
    if (event.kind == event::kDelivered) --streams_[event.subject].delivered;
  }
}

Fate Recovery::fate_of_packet(std::uint32_t id, Time t) {
  Stream& s = world_.streams[id];
  StreamRecovery& recovery = streams_[id];
  // Loopback does not reach the wire.
  const double loss = world_.load.loss;
  const bool corrupted = s.nic != s.to && loss > 0 && world_.random.uniform() < loss;
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

void Recovery::open_gap(std::uint32_t id, std::uint32_t packets_left, Time t) {
  StreamRecovery& recovery = streams_[id];
  if (world_.load.transport != Transport::kRC) {
    recovery.broken = true;
    return;
  }
  // The receiver speaks once of a packet that it misses, even when that is lost once more.
  const std::uint32_t message = world_.streams[id].sent;
  const bool again = recovery.message == message && recovery.packets_left == packets_left;
  recovery.nak_sent = again && recovery.nak_sent;
  recovery.behind_gap = true;
  recovery.message = message;
  recovery.packets_left = packets_left;
  recovery.sent_behind = 1;
  recovery.bytes_behind = 0;
  watch_gap(id, t);
}

/// The sender's timer, should it not hear of the gap.
void Recovery::watch_gap(std::uint32_t id, Time t) {
  const Time timeout = world_.load.retries.ack_timeout_ns();
  if (timeout < kNever) world_.events.push(t + timeout, event::kTimeout, id, streams_[id].gap);
}

void Recovery::throw_away(std::uint32_t id, Fate fate, const Freight& freight, Time t) {
  NicCounters& receiver = world_.nics[world_.streams[id].to].counters;
  StreamRecovery& recovery = streams_[id];
  receiver.thrown_bytes += freight.payload;
  if (recovery.behind_gap) recovery.bytes_behind += freight.payload;
  if (fate != Fate::kOutOfSequence) return;
  // The first packet behind a gap makes the receiver speak.
  ++receiver.out_of_sequence;
  if (!recovery.behind_gap || recovery.nak_sent) return;
  recovery.nak_sent = true;
  world_.events.push(t, event::kGapSeen, id, recovery.gap);
}

void Recovery::gap_seen(std::uint32_t id, std::uint32_t gap, Time t) {
  const Stream& s = world_.streams[id];
  if (streams_[id].gap != gap) return;
  ++world_.nics[s.to].counters.naks_sent;
  const Time back = path_.send_word(world_, s.to, s.nic, header::kAeth, t);
  if (back < kNever) world_.events.push(back + world_.p.ack_ns, event::kGoBack, id, gap);
}

bool Recovery::go_back(std::uint32_t id, std::uint32_t gap, bool timed_out) {
  StreamRecovery& recovery = streams_[id];
  if (!recovery.behind_gap || recovery.gap != gap || recovery.stopped) return false;
  hear_again(id);
  NicCounters& counters = world_.nics[world_.streams[id].nic].counters;
  ++(timed_out ? counters.timeouts : counters.sequence_naks);
  if (recovery.tries == world_.load.retries.retry_count) {
    fail_qp(id, Exhausted::kRetries);
    return false;
  }
  ++recovery.tries;
  rewind(id);
  return true;
}

void Recovery::hear_again(std::uint32_t id) {
  StreamRecovery& recovery = streams_[id];
  if (!recovery.unheard) return;
  recovery.unheard = world_.streams[id].resting = false;
  --unheard_;
}

/// The sender starts again at the gap.
void Recovery::rewind(std::uint32_t id) {
  Stream& s = world_.streams[id];
  StreamRecovery& recovery = streams_[id];
  NicCounters& counters = world_.nics[s.nic].counters;
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

bool Recovery::message_survives(std::uint32_t id) {
  StreamRecovery& recovery = streams_[id];
  if (recovery.behind_gap) return false;
  if (!recovery.broken) return true;
  recovery.broken = false;
  ++world_.moved.messages_lost;
  return false;
}

/// A receive WQE belongs to a message from its first packet on. Runs in which no receiver was ever
/// short of them save that event: they look at the end of a message, and so does the first refusal
/// of a run. Where packets may overtake one another the end has to do as well.
bool Recovery::announces(const Stream& s) const {
  const HostLoad& load = world_.load;
  const std::uint32_t packets = world_.messages[s.sent].packets;
  return s.packets_left == packets && packets > 1 && load.operation == Operation::kSend &&
         load.transport == Transport::kRC && !world_.loopback &&
         world_.effects.slow_path_share <= 0;
}

void Recovery::announced(std::uint32_t id, std::uint32_t refusals, Time t) {
  StreamRecovery& recovery = streams_[id];
  if (is_void(id, refusals) || recovery.received) return;
  recovery.received = receives_.take(id, t);
  if (!recovery.received) refuse(id, t);
}

bool Recovery::is_void(std::uint32_t id, std::uint32_t refusals) const {
  return world_.load.operation == Operation::kSend && active() && refusals != streams_[id].refusals;
}

bool Recovery::find_receive(std::uint32_t id, Time t) {
  if (!active()) return receives_.take(id, t);
  StreamRecovery& recovery = streams_[id];
  if (!recovery.received && !receives_.take(id, t)) return false;
  recovery.received = false;
  recovery.rnr_tries = 0;
  ++recovery.delivered;
  return true;
}

void Recovery::refuse(std::uint32_t id, Time t) {
  if (!active()) {
    lay_out();
    --streams_[id].delivered;  // this one, whose event is not in the queue any more
  }
  const Stream& s = world_.streams[id];
  StreamRecovery& recovery = streams_[id];
  ++world_.nics[s.to].counters.rnr_naks;
  take_back(id);
  recovery.behind_gap = true;
  recovery.nak_sent = true;
  recovery.message = recovery.delivered;
  recovery.packets_left = world_.messages[recovery.message].packets;
  ++recovery.gap;
  ++recovery.refusals;
  const Time back = path_.send_word(world_, s.to, s.nic, header::kAeth, t);
  if (back < kNever) {
    world_.events.push(back + world_.p.ack_ns, event::kNotReady, id, recovery.gap);
  } else {
    watch_gap(id, t);
  }
}

/// What was counted as written since the last message that was delivered, up to where it was: a
/// gap, or what is being sent.
void Recovery::take_back(std::uint32_t id) {
  const Stream& s = world_.streams[id];
  StreamRecovery& recovery = streams_[id];
  const bool gap = recovery.behind_gap;
  const std::uint32_t end = gap ? recovery.message : s.sent;
  const std::uint32_t left = gap ? recovery.packets_left : s.packets_left;
  std::uint64_t packets = 0;
  std::uint64_t bytes = 0;
  for (std::uint32_t message = recovery.delivered; message < end; ++message) {
    packets += world_.messages[message].packets;
    bytes += world_.messages[message].bytes;
  }
  if (left > 0) {
    const std::uint64_t gone = world_.messages[end].packets - left;
    packets += gone;
    bytes += gone * world_.load.mtu_bytes;
  }
  world_.moved.data_packets -= packets;
  world_.moved.payload -= static_cast<double>(bytes);
  world_.nics[s.to].counters.thrown_bytes += bytes;
  recovery.sent_behind = packets + (gap ? recovery.sent_behind : 0);
  recovery.bytes_behind = bytes + (gap ? recovery.bytes_behind : 0);
}

void Recovery::not_ready(std::uint32_t id, std::uint32_t gap, Time t) {
  StreamRecovery& recovery = streams_[id];
  if (!recovery.behind_gap || recovery.gap != gap || recovery.stopped) return;
  Stream& s = world_.streams[id];
  ++world_.nics[s.nic].counters.rnr_naks_heard;
  const Retries& retries = world_.load.retries;
  if (retries.rnr_retry != kForever && recovery.rnr_tries == retries.rnr_retry) {
    return fail_qp(id, Exhausted::kRnrRetries);
  }
  if (retries.rnr_retry != kForever) ++recovery.rnr_tries;
  rewind(id);
  s.resting = true;
  world_.events.push(t + retries.rnr_timer_ns(), event::kRested, id);
}

bool Recovery::rested(std::uint32_t id) {
  if (streams_[id].stopped) return false;
  world_.streams[id].resting = false;
  return true;
}

void Recovery::fail_qp(std::uint32_t id, Exhausted what) {
  const std::uint32_t asked_by = world_.streams[id].responds ? World::peer_of(id) : id;
  const Stream& requests = world_.streams[asked_by];
  NicCounters& counters = world_.nics[requests.nic].counters;
  ++(what == Exhausted::kRetries ? counters.retries_exceeded : counters.rnr_retries_exceeded);
  const std::uint32_t first_open = streams_[id].message - streams_[id].unacknowledged;
  counters.flushed += requests.posted - first_open - 1;
  streams_[asked_by].flushes = true;
  const std::uint32_t first = world_.qp_of(id) << world_.lane_bits;
  for (std::uint32_t lane = first; lane < first + world_.lanes; ++lane) {
    hear_again(lane);
    world_.streams[lane].resting = true;
    streams_[lane].stopped = true;
  }
}

}  // namespace greynic::twin
