#include <algorithm>
#include <cerrno>

#include "preload/nic.h"
#include "preload/time/turns.h"

namespace greynic::lab {

void Nic::activate(Qp& qp) {
  if (qp.queued) return;
  qp.queued = true;
  active_.push_back(&qp);
}

std::uint32_t Nic::new_number() {
  static constexpr std::uint32_t kMask = (1U << kIndexBits) - 1;
  for (std::uint32_t tries = 0; tries <= kMask; ++tries) {
    last_index_ = (last_index_ + 1) & kMask;
    if (last_index_ < 16) last_index_ = 16;
    const std::uint32_t number = slot << kIndexBits | last_index_;
    if (!qps.contains(number) && !srqs.contains(number)) return number;
  }
  return 0;
}

int Nic::post(Qp& qp, SendWork&& work) {
  if (turns::taken()) return turns::post_send(qp, work);
  const ibv_qp_state state = qp.base().state;
  if (state == IBV_QPS_ERR || state == IBV_QPS_SQE) {
    ibv_wc wc{};
    wc.wr_id = work.id;
    wc.status = IBV_WC_WR_FLUSH_ERR;
    wc.qp_num = qp.number();
    complete(object_of<Cq>(qp.base().send_cq), wc, true);
    return 0;
  }
  if (state != IBV_QPS_RTS && state != IBV_QPS_SQD) return EINVAL;
  if (qp.sends.size() >= qp.asked.cap.max_send_wr) return ENOMEM;
  if (work.elements.size() > qp.asked.cap.max_send_sge) return EINVAL;
  if (work.is_inline && work.inlined.size() > qp.asked.cap.max_inline_data) return EINVAL;
  work.length = work.inlined.size();
  for (const ibv_sge& element : work.elements) work.length += element.length;
  qp.sends.push_back(std::move(work));
  activate(qp);
  return 0;
}

bool Nic::take_receive(Qp& qp, Srq* srq, ReceiveWork& into) {
  std::deque<ReceiveWork>& queue = srq ? srq->work : qp.receives;
  if (queue.empty()) return false;
  into = std::move(queue.front());
  queue.pop_front();
  if (srq && srq->limit > 0 && srq->work.size() < srq->limit) {
    srq->limit = 0;
    tell(IBV_EVENT_SRQ_LIMIT_REACHED, context_of(srq->seen.context), &srq->seen);
  }
  return true;
}

void Nic::clear(Qp& qp) {
  qp.sends.clear();
  qp.receives.clear();
  qp.answers.clear();
  qp.next = 0;
  qp.offset = qp.in_offset = 0;
  qp.next_message = qp.expected = 0;
  qp.open_reads = 0;
  qp.halted = qp.waiting = qp.discarding = qp.has_receive = false;
  qp.fail_on_resume = false;
  waiting_.erase(&qp);
  std::erase(active_, &qp);
  qp.queued = false;
}

void Nic::forget(Qp& qp) {
  clear(qp);
  for (ibv_cq* const cq : {qp.base().send_cq, qp.base().recv_cq}) {
    if (cq) drop_completions(object_of<Cq>(cq), qp.number());
  }
}

void Nic::fail(Qp& qp) {
  if (qp.base().state == IBV_QPS_ERR) return;
  qp.base().state = IBV_QPS_ERR;
  ibv_wc wc{};
  wc.status = IBV_WC_WR_FLUSH_ERR;
  wc.qp_num = qp.number();
  const std::deque<SendWork> sends = std::move(qp.sends);
  const std::deque<ReceiveWork> receives = std::move(qp.receives);
  const bool had_receive = qp.has_receive;
  std::deque<Answer> answers = std::move(qp.answers);  // the peer learns why
  Srq* const srq = qp.base().srq ? &object_of<Srq>(qp.base().srq) : nullptr;
  clear(qp);
  qp.answers = std::move(answers);
  if (!qp.answers.empty()) activate(qp);
  for (const SendWork& work : sends) {
    wc.wr_id = work.id;
    complete(object_of<Cq>(qp.base().send_cq), wc, true);
  }
  wc.opcode = IBV_WC_RECV;
  if (had_receive && qp.base().recv_cq) {
    wc.wr_id = qp.receive.id;
    complete(object_of<Cq>(qp.base().recv_cq), wc, true);
  }
  for (const ReceiveWork& work : receives) {
    wc.wr_id = work.id;
    complete(object_of<Cq>(qp.base().recv_cq), wc, true);
  }
  if (srq) tell(IBV_EVENT_QP_LAST_WQE_REACHED, context_of(qp.base().context), &qp.base());
}

}  // namespace greynic::lab
