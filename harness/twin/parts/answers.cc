#include "parts/answers.h"

#include <utility>

namespace greynic::twin {

void Answers::acknowledge(std::uint32_t id, std::uint32_t count, Time t) {
  const Stream& s = world_.streams[id];
  ++world_.nics[s.to].counters.acks;
  const Time there = path_.send_word(world_, s.to, s.nic, header::kAeth, t);
  if (world_.load.loss > 0) [[unlikely]] {
    StreamRecovery& recovery = recovery_[id];
    if (there >= kNever) {
      if (recovery.unacknowledged == 0) watch(id, t);
      recovery.unacknowledged += count;
      return;
    }
    count += std::exchange(recovery.unacknowledged, 0);
    recovery.acknowledged += count;
    recovery.tries = 0;
    ++recovery.answers;
    if (count == 0) return;  // it has been told in the meantime
  }
  const Parameters& p = world_.p;
  world_.events.push(there + p.ack_ns + p.pcie_post_ns + world_.jitter(kPcieJitterNs),
                     event::kCompleted, id, count);
}

void Answers::watch(std::uint32_t id, Time t) {
  const Time timeout = world_.load.retries.ack_timeout_ns();
  if (timeout < kNever) {
    world_.events.push(t + timeout, event::kUnanswered, id, recovery_[id].answers);
  }
}

Answers::Silence Answers::unanswered(std::uint32_t id, std::uint32_t answers) {
  StreamRecovery& recovery = recovery_[id];
  if (recovery.answers != answers || recovery.stopped) return Silence::kOver;
  if (recovery.behind_gap) return Silence::kGap;
  ++world_.nics[world_.streams[id].nic].counters.timeouts;
  recovery.message = recovery.acknowledged + recovery.unacknowledged;
  if (recovery.tries == world_.load.retries.retry_count) {
    recovery_.fail_qp(id, Recovery::Exhausted::kRetries);
    return Silence::kOver;
  }
  ++recovery.tries;
  return Silence::kSendAgain;
}

Answers::Again Answers::send_again(std::uint32_t id) {
  const Stream& s = world_.streams[id];
  const MessageShape& shape = world_.messages[recovery_[id].acknowledged];
  const Freight& freight = shape.packets > 1 ? shape.first : shape.last;
  NicCounters& counters = world_.nics[s.nic].counters;
  ++counters.retransmitted_packets;
  counters.retransmitted_bytes += freight.payload;
  world_.nics[s.to].counters.thrown_bytes += freight.payload;
  const bool corrupted = world_.random.uniform() < world_.load.loss;
  return {&freight, corrupted ? Fate::kCorrupted : Fate::kOutOfSequence};
}

}  // namespace greynic::twin
