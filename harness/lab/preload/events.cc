#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "preload/nic.h"
#include "preload/time/turns.h"

namespace greynic::lab {

Bell::Bell(bool by_count) : fd_(eventfd(0, EFD_CLOEXEC | (by_count ? EFD_SEMAPHORE : 0))) {}
Bell::~Bell() { close(fd_); }

void Bell::ring() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(fd_, &one, sizeof one);
}

bool Bell::take() const {
  std::uint64_t one = 0;
  return read(fd_, &one, sizeof one) == sizeof one;
}

std::uint64_t now_ns() {
  return static_cast<std::uint64_t>(
      std::chrono::nanoseconds(Clock::now().time_since_epoch()).count());
}

void Nic::complete(Cq& cq, const ibv_wc& wc, bool solicited) {
  if (cq.entries.size() >= cq.capacity) {
    if (!cq.overrun) tell(IBV_EVENT_CQ_ERR, context_of(cq.seen.context), &cq);
    cq.overrun = true;
    return;
  }
  cq.entries.push_back({wc, now_ns()});
  cq.count.store(cq.entries.size(), std::memory_order_release);
  cq.unannounced = cq.unannounced || !cq.armed;
  if (!cq.armed) return;
  if (cq.armed_solicited_only && !solicited && wc.status == IBV_WC_SUCCESS) return;
  fire(cq);
}

void Nic::fire(Cq& cq) {
  if (!cq.seen.channel) return;
  cq.armed = cq.unannounced = false;
  auto& channel = object_of<EventChannel>(cq.seen.channel);
  channel.events.push_back(&cq);
  channel.bell.ring();
}

void Nic::drop_completions(Cq& cq, std::uint32_t qp_number) {
  std::erase_if(cq.entries,
                [&](const CompletionEntry& entry) { return entry.wc.qp_num == qp_number; });
  cq.count.store(cq.entries.size(), std::memory_order_release);
}

void Nic::tell(ibv_event_type type, Context& context, void* object) {
  ibv_async_event event{};
  event.event_type = type;
  switch (type) {
    case IBV_EVENT_CQ_ERR:
      event.element.cq = static_cast<ibv_cq*>(object);
      break;
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
      event.element.srq = static_cast<ibv_srq*>(object);
      break;
    default:
      event.element.qp = static_cast<ibv_qp*>(object);
  }
  context.events.push_back(event);
  context.bell.ring();
}

}  // namespace greynic::lab

using namespace greynic::lab;

extern "C" {

ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  static std::atomic<std::uint32_t> numbers{0};
  auto* const channel = new EventChannel;
  channel->number = ++numbers;
  channel->seen.context = context;
  channel->seen.fd = channel->bell.fd();
  return &channel->seen;
}

int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
  Nic& nic = Nic::instance();
  {
    const Hold hold(nic);
    if (channel->refcnt > 0) return EBUSY;
  }
  delete &object_of<EventChannel>(channel);
  return 0;
}

int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq** cq, void** cq_context) {
  auto& own = object_of<EventChannel>(channel);
  const auto give = [&](Cq& of) {
    ++of.events_given;
    *cq = ibv_cq_ex_to_cq(&of.seen);
    *cq_context = of.seen.cq_context;
    return 0;
  };
  if (turns::taken()) return give(turns::wait_event(own));
  for (;;) {
    if (!own.bell.take()) return -1;
    const Hold hold(Nic::instance());
    if (own.events.empty()) continue;  // its CQ was destroyed
    Cq* const of = own.events.front();
    own.events.pop_front();
    return give(*of);
  }
}

void ibv_ack_cq_events(ibv_cq* cq, unsigned count) {
  pthread_mutex_lock(&cq->mutex);
  cq->comp_events_completed += count;
  pthread_cond_broadcast(&cq->cond);
  pthread_mutex_unlock(&cq->mutex);
}

int ibv_get_async_event(ibv_context* context, ibv_async_event* event) {
  Context& own = context_of(context);
  for (;;) {
    if (!own.bell.take()) return -1;
    const Hold hold(Nic::instance());
    if (own.events.empty()) continue;  // its object was destroyed
    *event = own.events.front();
    own.events.pop_front();
    switch (event->event_type) {
      case IBV_EVENT_CQ_ERR:
        ++object_of<Cq>(event->element.cq).async_given;
        break;
      case IBV_EVENT_SRQ_ERR:
      case IBV_EVENT_SRQ_LIMIT_REACHED:
        ++object_of<Srq>(event->element.srq).async_given;
        break;
      default:
        ++object_of<Qp>(event->element.qp).async_given;
    }
    return 0;
  }
}

void ibv_ack_async_event(ibv_async_event* event) {
  const auto acknowledge = [](pthread_mutex_t& mutex, pthread_cond_t& condition,
                              std::uint32_t& count) {
    pthread_mutex_lock(&mutex);
    ++count;
    pthread_cond_broadcast(&condition);
    pthread_mutex_unlock(&mutex);
  };
  switch (event->event_type) {
    case IBV_EVENT_CQ_ERR: {
      ibv_cq& cq = *event->element.cq;
      return acknowledge(cq.mutex, cq.cond, cq.async_events_completed);
    }
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED: {
      ibv_srq& srq = *event->element.srq;
      return acknowledge(srq.mutex, srq.cond, srq.events_completed);
    }
    default: {
      ibv_qp& qp = *event->element.qp;
      return acknowledge(qp.mutex, qp.cond, qp.events_completed);
    }
  }
}

}  // extern "C"
