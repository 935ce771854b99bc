#include <utility>

#include "engine/engine.h"

/// What a receiver says: acknowledgements, NAKs and congestion notifications, and what becomes of
/// those that the wire corrupts. An acknowledgement speaks for all messages before it, so one that
/// is lost costs nothing while others follow. When none does, the requester's timer runs out and it
/// sends the oldest message that it knows nothing of once more; the receiver has it, throws it away
/// and acknowledges again. Word of that is back before a second packet of it would matter, so only
/// its first packet is sent. A NAK is sent once: when it is lost, the requester's timer heals the
/// gap (engine_recovery.cc). A lost notification slows nobody down.

namespace greynic::twin {

/// Like send_control; kNever: the wire has corrupted it.
Time Engine::send_word(std::uint8_t from, std::uint8_t to, double bytes, Time t) {
  const Time there = send_control(from, to, bytes, t);
  if (w_.loss <= 0 || from == to || random_.uniform() >= w_.loss) return there;
  NicCounters& receiver = nics_[to].counters;
  --receiver.rx_packets;
  ++receiver.dropped_packets;
  return kNever;
}

/// The receiver has `count` messages more than when it spoke last.
void Engine::acknowledge(std::uint32_t id, std::uint32_t count, Time t) {
  const Stream& s = streams_[id];
  ++nics_[s.to].counters.acks;
  const Time there = send_word(s.to, s.nic, header::kAeth, t);
  if (w_.loss > 0) [[unlikely]] {
    Recovery& recovery = recoveries_[id];
    if (there >= kNever) {
      if (recovery.unacknowledged == 0) watch_for_answer(id, t);
      recovery.unacknowledged += count;
      return;
    }
    count += std::exchange(recovery.unacknowledged, 0);
    recovery.acknowledged += count;
    recovery.tries = 0;
    ++recovery.answers;
    if (count == 0) return;  // it has been told in the meantime
  }
  events_.push(there + p_.ack_ns + p_.pcie_post_ns + jitter(kPcieJitterNs), kCompleted, id, count);
}

void Engine::watch_for_answer(std::uint32_t id, Time t) {
  const Time timeout = w_.retries.ack_timeout_ns();
  if (timeout < kNever) events_.push(t + timeout, kUnanswered, id, recoveries_[id].answers);
}

/// Nothing was heard since the watch began.
void Engine::unanswered(std::uint32_t id, std::uint32_t answers, Time t) {
  Recovery& recovery = recoveries_[id];
  if (recovery.answers != answers || recovery.stopped) return;
  if (!recovery.behind_gap) {  // or what heals the gap is answered
    ++nics_[streams_[id].nic].counters.timeouts;
    recovery.message = recovery.acknowledged + recovery.unacknowledged;
    if (recovery.tries == w_.retries.retry_count) return fail_qp(id, Exhausted::kRetries);
    ++recovery.tries;
    send_again(id, t);
  }
  watch_for_answer(id, t);
}

}  // namespace greynic::twin
