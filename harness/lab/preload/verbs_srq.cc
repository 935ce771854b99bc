// Shared receive queues, and the domains of XRC.

#include <pthread.h>

#include <algorithm>
#include <cerrno>

#include "preload/calls.h"
#include "preload/nic.h"
#include "preload/time/turns.h"

namespace greynic::lab {
namespace {

constexpr std::uint32_t kMostWork = (1U << 15) - 1, kMostElements = 30;

Srq* make(ibv_context* context, ibv_pd* pd, void* srq_context, ibv_srq_attr& attributes) {
  if (attributes.max_wr > kMostWork || attributes.max_sge > kMostElements) {
    errno = EINVAL;
    return nullptr;
  }
  static std::atomic<std::uint32_t> handles{0};
  auto* const srq = new Srq;
  srq->seen.context = context;
  srq->seen.srq_context = srq_context;
  srq->seen.pd = pd;
  srq->seen.handle = ++handles;
  srq->depth = attributes.max_wr = std::max(1U, attributes.max_wr);
  srq->most_elements = attributes.max_sge = std::max(1U, attributes.max_sge);
  if (const int error = turns::taken() ? turns::create_srq(*srq) : 0) {
    delete srq;
    errno = error;
    return nullptr;
  }
  pthread_mutex_init(&srq->seen.mutex, nullptr);
  pthread_cond_init(&srq->seen.cond, nullptr);
  ++object_of<Pd>(pd).users;
  return srq;
}

}  // namespace

bool to_work(const ibv_recv_wr& request, std::uint32_t most_elements, ReceiveWork& work) {
  if (request.num_sge < 0 || static_cast<std::uint32_t>(request.num_sge) > most_elements) {
    return false;
  }
  work.id = request.wr_id;
  work.elements.assign(request.sg_list, request.sg_list + request.num_sge);
  return true;
}

ibv_srq* create_srq_ex(ibv_context* context, ibv_srq_init_attr_ex* attributes) {
  const bool xrc = (attributes->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) != 0 &&
                   attributes->srq_type == IBV_SRQT_XRC;
  const bool other = (attributes->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) != 0 && !xrc &&
                     attributes->srq_type != IBV_SRQT_BASIC;
  if (other) {
    not_offered("ibv_create_srq_ex with tag matching");
    return nullptr;
  }
  if ((attributes->comp_mask & IBV_SRQ_INIT_ATTR_PD) == 0 || !attributes->pd ||
      (xrc && (!attributes->xrcd || !attributes->cq))) {
    errno = EINVAL;
    return nullptr;
  }
  if (xrc && turns::taken()) {
    not_offered("ibv_create_srq_ex for XRC in virtual time");
    return nullptr;
  }
  Nic& nic = Nic::instance();
  const Hold hold(nic);
  Srq* const srq = make(context, attributes->pd, attributes->srq_context, attributes->attr);
  if (!srq || !xrc) return srq ? &srq->seen : nullptr;
  srq->type = IBV_SRQT_XRC;
  srq->domain = &object_of<Xrcd>(attributes->xrcd);
  srq->cq = &object_of<Cq>(attributes->cq);
  srq->number = nic.new_number();
  ++srq->domain->users;
  ++srq->cq->users;
  nic.srqs[srq->number] = srq;
  return &srq->seen;
}

int get_srq_num(ibv_srq* srq, std::uint32_t* number) {
  const Srq& own = object_of<Srq>(srq);
  if (own.type != IBV_SRQT_XRC) return EINVAL;
  *number = own.number;
  return 0;
}

int post_srq_recv(ibv_srq* srq, ibv_recv_wr* list, ibv_recv_wr** bad) {
  const Hold hold(Nic::instance());
  Srq& own = object_of<Srq>(srq);
  for (ibv_recv_wr* request = list; request; request = request->next) {
    ReceiveWork work;
    int error = to_work(*request, own.most_elements, work) ? 0 : EINVAL;
    if (error == 0 && turns::taken()) {
      error = turns::post_receive(own, work);
    } else if (error == 0 && own.work.size() >= own.depth) {
      error = ENOMEM;
    } else if (error == 0) {
      own.work.push_back(std::move(work));
    }
    if (error == 0) continue;
    if (bad) *bad = request;
    return error;
  }
  return 0;
}

ibv_xrcd* open_xrcd(ibv_context* context, ibv_xrcd_init_attr*) {
  auto* const domain = new Xrcd;
  domain->seen.context = context;
  return &domain->seen;
}

int close_xrcd(ibv_xrcd* domain) {
  {
    const Hold hold(Nic::instance());
    if (object_of<Xrcd>(domain).users > 0) return EBUSY;
  }
  delete &object_of<Xrcd>(domain);
  return 0;
}

}  // namespace greynic::lab

using namespace greynic::lab;

extern "C" {

ibv_srq* ibv_create_srq(ibv_pd* pd, ibv_srq_init_attr* attributes) {
  const Hold hold(Nic::instance());
  Srq* const srq = make(pd->context, pd, attributes->srq_context, attributes->attr);
  return srq ? &srq->seen : nullptr;
}

int ibv_modify_srq(ibv_srq* srq, ibv_srq_attr* attributes, int mask) {
  if (turns::taken()) return not_offered("ibv_modify_srq in virtual time");
  Nic& nic = Nic::instance();
  const Hold hold(nic);
  Srq& own = object_of<Srq>(srq);
  if (mask & IBV_SRQ_MAX_WR) {
    if (attributes->max_wr == 0 || attributes->max_wr > kMostWork ||
        attributes->max_wr < own.work.size()) {
      return EINVAL;
    }
    own.depth = attributes->max_wr;
  }
  if (mask & IBV_SRQ_LIMIT) {
    if (attributes->srq_limit > own.depth) return EINVAL;
    own.limit = attributes->srq_limit;
    if (own.limit > 0 && own.work.size() < own.limit) {
      own.limit = 0;
      nic.tell(IBV_EVENT_SRQ_LIMIT_REACHED, context_of(srq->context), srq);
    }
  }
  return 0;
}

int ibv_query_srq(ibv_srq* srq, ibv_srq_attr* attributes) {
  const Hold hold(Nic::instance());
  const Srq& own = object_of<Srq>(srq);
  *attributes = {own.depth, own.most_elements, own.limit};
  return 0;
}

int ibv_destroy_srq(ibv_srq* srq) {
  Srq& own = object_of<Srq>(srq);
  {
    Nic& nic = Nic::instance();
    const Hold hold(nic);
    if (own.users > 0) return EBUSY;
    if (turns::taken()) turns::destroy_srq(own);
    if (own.type == IBV_SRQT_XRC) {
      nic.srqs.erase(own.number);
      --own.domain->users;
      --own.cq->users;
    }
    --object_of<Pd>(srq->pd).users;
    std::erase_if(context_of(srq->context).events, [&](const ibv_async_event& event) {
      return event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED && event.element.srq == srq;
    });
  }
  pthread_mutex_lock(&srq->mutex);
  while (srq->events_completed != own.async_given) pthread_cond_wait(&srq->cond, &srq->mutex);
  pthread_mutex_unlock(&srq->mutex);
  delete &own;
  return 0;
}

}  // extern "C"
