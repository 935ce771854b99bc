#include <algorithm>

#include "fabric/simulation.h"

/// What gets lost is sent again; what fails ends a QP and flushes what is open on it.

namespace greynic::twin::fabric {
namespace {

constexpr int kForever = 7;  ///< rnr_retry: tries without end

}  // namespace

/// One timer for a QP, not one for a message: it looks whether anything was heard meanwhile.
void Simulation::arm_timer(Qp& qp) {
  if (qp.timer_on || qp.attributes.ack_timeout == 0) return;
  qp.timer_on = true;
  qp.hearings_at_timer = qp.hearings;
  const Retries retries{.ack_timeout = qp.attributes.ack_timeout};
  s_.events.push(s_.now + retries.ack_timeout_ns(), event::kTimer, qp.id);
}

void Simulation::timer(Qp& qp) {
  qp.timer_on = false;
  if (qp.state != QpState::kReadyToSend || qp.done == qp.requests.sent) return;
  if (qp.hearings != qp.hearings_at_timer || qp.resting) return arm_timer(qp);
  std::uint32_t oldest = qp.done;
  while (oldest != qp.requests.sent &&
         (qp.work(oldest).answered ||
          (!qp.work(oldest).asks() && oldest - qp.done < qp.acknowledged - qp.done &&
           qp.acknowledged - qp.done <= qp.posted - qp.done))) {
    ++oldest;
  }
  if (oldest == qp.requests.sent) return;  // word of all is on its way to the program
  if (qp.work(oldest).status != WcStatus::kSuccess) return;
  ++nic_of(qp.host).counters.timeouts;
  if (may_try_again(qp, oldest)) go_back(qp, oldest, 0);
}

bool Simulation::may_try_again(Qp& qp, std::uint32_t message) {
  if (qp.tries++ < qp.attributes.retry_count) return true;
  ++nic_of(qp.host).counters.retries_exceeded;
  qp.work(message).status = WcStatus::kRetriesExceeded;
  finish_requests(qp);
  return false;
}

/// The requester starts again at a packet of a message.
void Simulation::go_back(Qp& qp, std::uint32_t message, std::uint32_t index) {
  Lane& lane = qp.requests;
  const auto behind = static_cast<std::int32_t>(lane.sent - message);
  if (behind < 0 || (behind == 0 && lane.packet <= index)) return;
  if (message - qp.done >= qp.posted - qp.done) return;
  nic_of(qp.host).counters.retransmitted_packets += static_cast<std::uint32_t>(behind) + 1;
  lane.sent = message;
  lane.packet = qp.work(message).asks() ? 0 : index;
  qp.reads_open = 0;
  for (std::uint32_t i = qp.done; i != message; ++i) {
    qp.reads_open += qp.work(i).asks() && !qp.work(i).answered ? 1 : 0;
  }
  arm_timer(qp);
  activate(qp, false, s_.now);
}

void Simulation::not_ready(Qp& qp, const Packet& packet, Time t) {
  if (packet.message - qp.done >= qp.posted - qp.done) return;
  ++nic_of(qp.host).counters.rnr_naks_heard;
  if (qp.attributes.rnr_retry != kForever && qp.rnr_tries++ >= qp.attributes.rnr_retry) {
    ++nic_of(qp.host).counters.rnr_retries_exceeded;
    qp.work(packet.message).status = WcStatus::kRnrRetriesExceeded;
    return;  // the acknowledgement of what came before finishes it
  }
  qp.resting = true;
  go_back(qp, packet.message, 0);
  const Retries retries{.min_rnr_timer = static_cast<int>(packet.immediate)};
  s_.events.push(t + retries.rnr_timer_ns(), event::kRested, qp.id);
}

/// A request fails, and with it the QP; all that was posted after it is flushed.
void Simulation::fail_request(Qp& qp, std::uint32_t message, WcStatus status) {
  const Work& work = qp.work(message);
  complete(*qp.send_cq, {.id = work.id, .status = status, .kind = work.kind, .qp = qp.number});
  ++qp.done;
  nic_of(qp.host).counters.flushed += qp.posted - qp.done;
  to_error(qp);
}

void Simulation::to_error(Qp& qp) {
  const bool fresh = qp.state != QpState::kError;
  qp.state = QpState::kError;
  for (; qp.done != qp.posted; ++qp.done) {
    const Work& work = qp.work(qp.done);
    complete(*qp.send_cq,
             {.id = work.id, .status = WcStatus::kFlushed, .kind = work.kind, .qp = qp.number});
  }
  if (qp.taken) fail_receive(qp, qp.taken->id, WcStatus::kFlushed);
  qp.taken.reset();
  while (!qp.receives.empty()) fail_receive(qp, qp.receives.pop().id, WcStatus::kFlushed);
  if (!fresh) return;
  qp.responses.clear();
  qp.answers.ready = qp.answers.sent;
  qp.answers.packet = 0;
  if (qp.srq != nullptr) report(AsyncKind::kLastReceive, qp.host, qp.number);
}

void Simulation::report(AsyncKind kind, HostId host, std::uint32_t object) {
  if (!hosts_[host].on_async) return;
  const AsyncEvent event{kind, host, object};
  s_.events.push(s_.now, event::kCall, keep([this, event] {
                   if (hosts_[event.host].on_async) hosts_[event.host].on_async(event);
                 }));
}

}  // namespace greynic::twin::fabric
