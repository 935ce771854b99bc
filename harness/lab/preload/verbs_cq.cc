// Completion queues.

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>

#include "preload/calls.h"
#include "preload/nic.h"
#include "preload/time/turns.h"

namespace greynic::lab {
namespace {

constexpr std::uint32_t kMostEntries = 1U << 22;

Cq* make(ibv_context* context, std::uint32_t entries, void* cq_context, ibv_comp_channel* channel,
         std::uint32_t vector) {
  if (entries == 0 || entries > kMostEntries ||
      vector >= static_cast<std::uint32_t>(context->num_comp_vectors)) {
    errno = EINVAL;
    return nullptr;
  }
  static std::atomic<std::uint32_t> handles{0};
  auto* const cq = new Cq;
  cq->seen.context = context;
  cq->seen.channel = channel;
  cq->seen.cq_context = cq_context;
  cq->seen.handle = ++handles;
  cq->seen.cqe = static_cast<int>(entries);
  cq->capacity = entries;
  if (const int error = turns::taken() ? turns::create_cq(*cq) : 0) {
    delete cq;
    errno = error;
    return nullptr;
  }
  pthread_mutex_init(&cq->seen.mutex, nullptr);
  pthread_cond_init(&cq->seen.cond, nullptr);
  if (channel) {
    const Hold hold(Nic::instance());
    ++channel->refcnt;
  }
  return cq;
}

/// What lies in the queue, after a look at the rings when it is empty.
bool look(Cq& cq) {
  if (cq.count.load(std::memory_order_acquire) > 0) return true;
  Nic::instance().help();
  if (cq.count.load(std::memory_order_acquire) > 0) return true;
  sched_yield();  // the other side may need this core
  return false;
}

int take_next(Cq& cq) {
  const Hold hold(Nic::instance());
  if (cq.entries.empty()) return ENOENT;
  cq.current = cq.entries.front();
  cq.entries.pop_front();
  cq.count.store(cq.entries.size(), std::memory_order_release);
  cq.unannounced = true;
  cq.seen.status = cq.current.wc.status;
  cq.seen.wr_id = cq.current.wc.wr_id;
  return 0;
}

const CompletionEntry& current(ibv_cq_ex* cq) { return object_of<Cq>(cq).current; }

}  // namespace

int poll_cq(ibv_cq* cq, int most, ibv_wc* out) {
  Cq& own = object_of<Cq>(cq);
  if (turns::taken()) return turns::poll(own, most, out);
  if (!look(own)) return own.overrun ? -1 : 0;
  const Hold hold(Nic::instance());
  int count = 0;
  for (; count < most && !own.entries.empty(); ++count) {
    out[count] = own.entries.front().wc;
    own.entries.pop_front();
  }
  own.count.store(own.entries.size(), std::memory_order_release);
  own.unannounced = own.unannounced || count > 0;
  return count;
}

int req_notify_cq(ibv_cq* cq, int solicited_only) {
  if (turns::taken()) {
    return solicited_only != 0 ? not_offered("ibv_req_notify_cq for solicited ones in virtual time")
                               : turns::arm(object_of<Cq>(cq));
  }
  const Hold hold(Nic::instance());
  Cq& own = object_of<Cq>(cq);
  own.armed = true;
  own.armed_solicited_only = solicited_only != 0;
  // What no event tells of is an event at once: what came since the last one, and what was left by
  // a program that polls a few completions for each event.
  if (own.unannounced && !own.entries.empty() && !own.armed_solicited_only) Nic::fire(own);
  return 0;
}

int modify_cq(ibv_cq*, ibv_modify_cq_attr* attributes) {
  return (attributes->attr_mask & ~static_cast<unsigned>(IBV_CQ_ATTR_MODERATE)) != 0 ? EINVAL : 0;
}

ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* attributes) {
  if (turns::taken()) {
    not_offered("ibv_create_cq_ex in virtual time");
    return nullptr;
  }
  const unsigned known = IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD;
  const std::uint64_t fields = std::uint64_t{IBV_WC_STANDARD_FLAGS} |
                               IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
                               IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
  if ((attributes->comp_mask & ~known) != 0 || (attributes->wc_flags & ~fields) != 0) {
    errno = EOPNOTSUPP;
    return nullptr;
  }
  Cq* const cq = make(context, attributes->cqe, attributes->cq_context, attributes->channel,
                      attributes->comp_vector);
  if (!cq) return nullptr;
  fill_poll(cq->seen);
  return &cq->seen;
}

void fill_poll(ibv_cq_ex& cq) {
  cq.start_poll = [](ibv_cq_ex* of, ibv_poll_cq_attr* attributes) {
    if (attributes && attributes->comp_mask) return EINVAL;
    return look(object_of<Cq>(of)) ? take_next(object_of<Cq>(of)) : ENOENT;
  };
  cq.next_poll = [](ibv_cq_ex* of) { return take_next(object_of<Cq>(of)); };
  cq.end_poll = [](ibv_cq_ex*) {};
  cq.read_opcode = [](ibv_cq_ex* of) { return current(of).wc.opcode; };
  cq.read_vendor_err = [](ibv_cq_ex* of) { return current(of).wc.vendor_err; };
  cq.read_byte_len = [](ibv_cq_ex* of) { return current(of).wc.byte_len; };
  cq.read_imm_data = [](ibv_cq_ex* of) -> __be32 { return current(of).wc.imm_data; };
  cq.read_qp_num = [](ibv_cq_ex* of) { return current(of).wc.qp_num; };
  cq.read_src_qp = [](ibv_cq_ex* of) { return current(of).wc.src_qp; };
  cq.read_wc_flags = [](ibv_cq_ex* of) { return current(of).wc.wc_flags; };
  cq.read_slid = [](ibv_cq_ex* of) -> std::uint32_t { return current(of).wc.slid; };
  cq.read_sl = [](ibv_cq_ex* of) { return current(of).wc.sl; };
  cq.read_dlid_path_bits = [](ibv_cq_ex* of) { return current(of).wc.dlid_path_bits; };
  cq.read_completion_ts = [](ibv_cq_ex* of) { return current(of).time_ns; };
  cq.read_completion_wallclock_ns = [](ibv_cq_ex* of) {
    const auto shift =
        std::chrono::system_clock::now().time_since_epoch() - std::chrono::nanoseconds(now_ns());
    return current(of).time_ns +
           static_cast<std::uint64_t>(
               std::chrono::duration_cast<std::chrono::nanoseconds>(shift).count());
  };
  cq.read_cvlan = [](ibv_cq_ex*) -> std::uint16_t { return 0; };
  cq.read_flow_tag = [](ibv_cq_ex*) -> std::uint32_t { return 0; };
  cq.read_tm_info = [](ibv_cq_ex*, ibv_wc_tm_info* info) { *info = {}; };
}

}  // namespace greynic::lab

using namespace greynic::lab;

extern "C" {

ibv_cq* ibv_create_cq(ibv_context* context, int entries, void* cq_context,
                      ibv_comp_channel* channel, int vector) {
  Cq* const cq = make(context, entries < 0 ? 0 : static_cast<std::uint32_t>(entries), cq_context,
                      channel, static_cast<std::uint32_t>(vector));
  return cq ? ibv_cq_ex_to_cq(&cq->seen) : nullptr;
}

int ibv_resize_cq(ibv_cq* cq, int entries) {
  if (turns::taken()) return not_offered("ibv_resize_cq in virtual time");
  const Hold hold(Nic::instance());
  Cq& own = object_of<Cq>(cq);
  if (entries <= 0 || static_cast<std::uint32_t>(entries) > kMostEntries ||
      own.entries.size() > static_cast<std::size_t>(entries)) {
    return EINVAL;
  }
  own.capacity = static_cast<std::size_t>(entries);
  cq->cqe = entries;
  return 0;
}

int ibv_destroy_cq(ibv_cq* cq) {
  Cq& own = object_of<Cq>(cq);
  {
    const Hold hold(Nic::instance());
    if (own.users > 0) return EBUSY;
    if (turns::taken()) turns::destroy_cq(own);
    if (cq->channel) {
      std::erase(object_of<EventChannel>(cq->channel).events, &own);
      --cq->channel->refcnt;
    }
    std::erase_if(context_of(cq->context).events, [&](const ibv_async_event& event) {
      return event.event_type == IBV_EVENT_CQ_ERR && event.element.cq == cq;
    });
  }
  pthread_mutex_lock(&cq->mutex);
  while (cq->comp_events_completed != own.events_given ||
         cq->async_events_completed != own.async_given) {
    pthread_cond_wait(&cq->cond, &cq->mutex);
  }
  pthread_mutex_unlock(&cq->mutex);
  delete &own;
  return 0;
}

}  // extern "C"
