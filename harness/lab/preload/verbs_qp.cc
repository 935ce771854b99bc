// Queue pairs: their life and states.

#include <pthread.h>

#include <algorithm>
#include <cerrno>

#include "preload/calls.h"
#include "preload/gid.h"
#include "preload/nic.h"
#include "preload/time/turns.h"

namespace greynic::lab {
namespace {

constexpr std::uint32_t kMostWork = 1U << 15, kMostElements = 30, kMostInline = 1024;

bool known(ibv_qp_type type) {
  return type == IBV_QPT_RC || type == IBV_QPT_UC || type == IBV_QPT_UD ||
         type == IBV_QPT_XRC_SEND || type == IBV_QPT_XRC_RECV;
}

void use(Qp& qp, int change) {
  if (qp.base().pd) object_of<Pd>(qp.base().pd).users += change;
  if (qp.base().send_cq) object_of<Cq>(qp.base().send_cq).users += change;
  if (qp.base().recv_cq) object_of<Cq>(qp.base().recv_cq).users += change;
  if (qp.base().srq) object_of<Srq>(qp.base().srq).users += change;
  if (qp.domain) qp.domain->users += change;
}

/// 0, or why there is no such QP.
int check(const ibv_qp_init_attr_ex& asked) {
  const ibv_qp_cap& cap = asked.cap;
  if (asked.qp_type == IBV_QPT_RAW_PACKET || asked.qp_type == IBV_QPT_DRIVER) {
    return not_offered("ibv_create_qp with raw packets or a driver's own transport");
  }
  if (!known(asked.qp_type)) return EINVAL;
  if (turns::taken() && (asked.qp_type == IBV_QPT_XRC_SEND || asked.qp_type == IBV_QPT_XRC_RECV)) {
    return not_offered("ibv_create_qp for XRC in virtual time");
  }
  const unsigned fields = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD |
                          IBV_QP_INIT_ATTR_SEND_OPS_FLAGS | IBV_QP_INIT_ATTR_CREATE_FLAGS;
  if ((asked.comp_mask & ~fields) != 0) return EOPNOTSUPP;
  if ((asked.comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) != 0 &&
      (asked.create_flags & ~unsigned{IBV_QP_CREATE_BLOCK_SELF_MCAST_LB}) != 0) {
    return EOPNOTSUPP;
  }
  const std::uint64_t operations =
      std::uint64_t{IBV_QP_EX_WITH_RDMA_WRITE} | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
      IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_SEND_WITH_INV |
      IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
      IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW;
  if ((asked.comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0 &&
      (asked.send_ops_flags & ~operations) != 0) {
    return not_offered("ibv_create_qp_ex with these send_ops_flags");
  }
  if (asked.qp_type == IBV_QPT_XRC_RECV) {
    return (asked.comp_mask & IBV_QP_INIT_ATTR_XRCD) != 0 && asked.xrcd ? 0 : EINVAL;
  }
  if ((asked.comp_mask & IBV_QP_INIT_ATTR_PD) == 0 || !asked.pd || !asked.send_cq) return EINVAL;
  const bool receives = asked.qp_type != IBV_QPT_XRC_SEND;
  if (receives && !asked.recv_cq) return EINVAL;
  if (cap.max_send_wr > kMostWork || cap.max_send_sge > kMostElements ||
      cap.max_inline_data > kMostInline) {
    return EINVAL;
  }
  const bool own = receives && !asked.srq;
  return own && (cap.max_recv_wr > kMostWork || cap.max_recv_sge > kMostElements) ? EINVAL : 0;
}

/// Attributes that a step needs, as the specification has them.
unsigned needed(ibv_qp_type type, ibv_qp_state to) {
  const bool ud = type == IBV_QPT_UD;
  const bool asks = type == IBV_QPT_RC || type == IBV_QPT_XRC_SEND;
  const bool serves = type == IBV_QPT_RC || type == IBV_QPT_XRC_RECV;
  switch (to) {
    case IBV_QPS_INIT:
      return IBV_QP_PKEY_INDEX | IBV_QP_PORT | (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
    case IBV_QPS_RTR:
      return (ud ? 0 : IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN) |
             (serves ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0);
    case IBV_QPS_RTS:
      return IBV_QP_SQ_PSN |
             (asks ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC
                   : 0);
    default:
      return 0;
  }
}

bool may_go(ibv_qp_state from, ibv_qp_state to) {
  if (to == IBV_QPS_RESET || to == IBV_QPS_ERR) return true;
  switch (from) {
    case IBV_QPS_RESET:
      return to == IBV_QPS_INIT;
    case IBV_QPS_INIT:
      return to == IBV_QPS_INIT || to == IBV_QPS_RTR;
    case IBV_QPS_RTR:
      return to == IBV_QPS_RTS;
    case IBV_QPS_RTS:
    case IBV_QPS_SQD:
      return to == IBV_QPS_RTS || to == IBV_QPS_SQD;
    default:
      return false;
  }
}

bool valid(const ibv_qp_attr& to, unsigned mask) {
  if ((mask & IBV_QP_PORT) != 0 && to.port_num != 1) return false;
  if ((mask & IBV_QP_PKEY_INDEX) != 0 && to.pkey_index != 0) return false;
  if ((mask & IBV_QP_PATH_MTU) != 0 && (to.path_mtu < IBV_MTU_256 || to.path_mtu > IBV_MTU_4096)) {
    return false;
  }
  if ((mask & IBV_QP_AV) != 0 && to.ah_attr.is_global && to.ah_attr.grh.sgid_index >= kGidCount) {
    return false;
  }
  return (mask & IBV_QP_ALT_PATH) == 0;
}

void take(Qp& qp, const ibv_qp_attr& from, unsigned mask, std::uint32_t network) {
  ibv_qp_attr& to = qp.attributes;
  const auto copy = [&](unsigned bit, auto ibv_qp_attr::*field) {
    if (mask & bit) to.*field = from.*field;
  };
  copy(IBV_QP_ACCESS_FLAGS, &ibv_qp_attr::qp_access_flags);
  copy(IBV_QP_PKEY_INDEX, &ibv_qp_attr::pkey_index);
  copy(IBV_QP_PORT, &ibv_qp_attr::port_num);
  copy(IBV_QP_QKEY, &ibv_qp_attr::qkey);
  copy(IBV_QP_AV, &ibv_qp_attr::ah_attr);
  copy(IBV_QP_PATH_MTU, &ibv_qp_attr::path_mtu);
  copy(IBV_QP_TIMEOUT, &ibv_qp_attr::timeout);
  copy(IBV_QP_RETRY_CNT, &ibv_qp_attr::retry_cnt);
  copy(IBV_QP_RNR_RETRY, &ibv_qp_attr::rnr_retry);
  copy(IBV_QP_RQ_PSN, &ibv_qp_attr::rq_psn);
  copy(IBV_QP_SQ_PSN, &ibv_qp_attr::sq_psn);
  copy(IBV_QP_MAX_QP_RD_ATOMIC, &ibv_qp_attr::max_rd_atomic);
  copy(IBV_QP_MAX_DEST_RD_ATOMIC, &ibv_qp_attr::max_dest_rd_atomic);
  copy(IBV_QP_MIN_RNR_TIMER, &ibv_qp_attr::min_rnr_timer);
  copy(IBV_QP_DEST_QPN, &ibv_qp_attr::dest_qp_num);
  copy(IBV_QP_RATE_LIMIT, &ibv_qp_attr::rate_limit);
  if (mask & IBV_QP_RETRY_CNT) qp.retries_left = from.retry_cnt;
  if (mask & IBV_QP_RNR_RETRY) qp.rnr_left = from.rnr_retry;
  if (mask & IBV_QP_AV) qp.peer_host = host_of(from.ah_attr, network);
}

int modify(Qp& qp, ibv_qp_attr& to, unsigned mask) {
  Nic& nic = Nic::instance();
  const Hold hold(nic);
  ibv_qp& base = qp.base();
  const ibv_qp_state from = base.state;
  const ibv_qp_state next = (mask & IBV_QP_STATE) != 0 ? to.qp_state : from;
  if ((mask & IBV_QP_CUR_STATE) != 0 && to.cur_qp_state != from) return EINVAL;
  if (!may_go(from, next) && next != from) return EINVAL;
  if (next != from || next == IBV_QPS_INIT) {
    const unsigned missing = needed(qp.type(), next) & ~mask;
    if (missing != 0 && next != from) return EINVAL;
  }
  if (!valid(to, mask)) return EINVAL;
  if (next == IBV_QPS_RESET) {
    nic.forget(qp);
    qp.attributes = {};
    base.state = next;
    return turns::taken() ? turns::modify_qp(qp) : 0;
  }
  if (next == IBV_QPS_ERR) {
    nic.fail(qp);
    return turns::taken() ? turns::modify_qp(qp) : 0;
  }
  take(qp, to, mask, nic.network);
  base.state = next;
  if (next == IBV_QPS_SQD && (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY) != 0) {
    nic.tell(IBV_EVENT_SQ_DRAINED, context_of(base.context), &base);
  }
  if (turns::taken()) return next == from ? 0 : turns::modify_qp(qp);
  nic.activate(qp);
  nic.nudge();
  return 0;
}

}  // namespace

std::int64_t host_of(const ibv_ah_attr& address, std::uint32_t network) {
  return address.is_global ? host_of(address.grh.dgid, network) : std::int64_t{address.dlid} - 1;
}

ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* asked) {
  if (const int error = check(*asked)) {
    errno = error;
    return nullptr;
  }
  Nic& nic = Nic::instance();
  const Hold hold(nic);
  const std::uint32_t number = nic.new_number();
  if (number == 0) {
    errno = ENOMEM;
    return nullptr;
  }
  auto* const qp = new Qp;
  ibv_qp& base = qp->base();
  const bool xrc_receiver = asked->qp_type == IBV_QPT_XRC_RECV;
  base.context = context;
  base.qp_context = asked->qp_context;
  base.pd = xrc_receiver ? nullptr : asked->pd;
  base.send_cq = xrc_receiver ? nullptr : asked->send_cq;
  base.recv_cq = xrc_receiver || asked->qp_type == IBV_QPT_XRC_SEND ? nullptr : asked->recv_cq;
  base.srq = asked->srq;
  base.handle = base.qp_num = number;
  base.qp_type = asked->qp_type;
  base.state = IBV_QPS_RESET;
  pthread_mutex_init(&base.mutex, nullptr);
  pthread_cond_init(&base.cond, nullptr);
  if (xrc_receiver) qp->domain = &object_of<Xrcd>(asked->xrcd);
  if (xrc_receiver || asked->qp_type == IBV_QPT_XRC_SEND || asked->srq) {
    asked->cap.max_recv_wr = asked->cap.max_recv_sge = 0;
  }
  qp->asked.cap = asked->cap;
  qp->asked.sq_sig_all = asked->sq_sig_all;
  qp->asked.qp_type = asked->qp_type;
  if (const int error = turns::taken() ? turns::create_qp(*qp) : 0) {
    delete qp;
    errno = error;
    return nullptr;
  }
  use(*qp, 1);
  if ((asked->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0) {
    qp->extended = true;
    fill_builder(qp->seen);
  }
  nic.qps[number] = qp;
  return &base;
}

ibv_qp_init_attr_ex extended(const ibv_qp_init_attr& asked, ibv_pd* pd) {
  ibv_qp_init_attr_ex all{};
  all.qp_context = asked.qp_context;
  all.send_cq = asked.send_cq;
  all.recv_cq = asked.recv_cq;
  all.srq = asked.srq;
  all.cap = asked.cap;
  all.qp_type = asked.qp_type;
  all.sq_sig_all = asked.sq_sig_all;
  if (pd) all.comp_mask = IBV_QP_INIT_ATTR_PD;
  all.pd = pd;
  return all;
}

ibv_qp* open_qp(ibv_context*, ibv_qp_open_attr* attributes) {
  Nic& nic = Nic::instance();
  const Hold hold(nic);
  const auto found = nic.qps.find(attributes->qp_num);
  if (found == nic.qps.end() || found->second->type() != IBV_QPT_XRC_RECV) {
    errno = ENOENT;
    return nullptr;
  }
  ++found->second->openers;
  return &found->second->base();
}

}  // namespace greynic::lab

using namespace greynic::lab;

extern "C" {

ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* asked) {
  ibv_qp_init_attr_ex all = extended(*asked, pd);
  ibv_qp* const qp = create_qp_ex(pd->context, &all);
  if (qp) asked->cap = all.cap;
  return qp;
}

ibv_qp_ex* ibv_qp_to_qp_ex(ibv_qp* qp) {
  Qp& own = object_of<Qp>(qp);
  return own.extended ? &own.seen : nullptr;
}

int ibv_modify_qp(ibv_qp* qp, ibv_qp_attr* attributes, int mask) {
  return modify(object_of<Qp>(qp), *attributes, static_cast<unsigned>(mask));
}

int ibv_query_qp(ibv_qp* qp, ibv_qp_attr* attributes, int, ibv_qp_init_attr* asked) {
  const Hold hold(Nic::instance());
  Qp& own = object_of<Qp>(qp);
  *attributes = own.attributes;
  attributes->qp_state = attributes->cur_qp_state = qp->state;
  attributes->cap = own.asked.cap;
  if (asked) {
    *asked = own.asked;
    asked->qp_context = qp->qp_context;
    asked->send_cq = qp->send_cq;
    asked->recv_cq = qp->recv_cq;
    asked->srq = qp->srq;
  }
  return 0;
}

int ibv_query_qp_data_in_order(ibv_qp*, ibv_wr_opcode, std::uint32_t) { return 0; }

int ibv_destroy_qp(ibv_qp* qp) {
  Qp& own = object_of<Qp>(qp);
  {
    Nic& nic = Nic::instance();
    const Hold hold(nic);
    if (--own.openers > 0) return 0;
    nic.forget(own);
    if (turns::taken()) turns::destroy_qp(own);
    nic.qps.erase(own.number());
    for (MemoryEntry& entry : nic.memory) {
      if (entry.qp == &own) nic.unbind(entry);
    }
    use(own, -1);
    std::erase_if(context_of(qp->context).events, [&](const ibv_async_event& event) {
      return event.event_type != IBV_EVENT_CQ_ERR &&
             event.event_type != IBV_EVENT_SRQ_LIMIT_REACHED && event.element.qp == qp;
    });
  }
  pthread_mutex_lock(&qp->mutex);
  while (qp->events_completed != own.async_given) pthread_cond_wait(&qp->cond, &qp->mutex);
  pthread_mutex_unlock(&qp->mutex);
  delete &own;
  return 0;
}

ibv_ah* ibv_create_ah(ibv_pd* pd, ibv_ah_attr* attributes) {
  // A LID will do, but none at all leads nowhere.
  if (attributes->port_num != 1 || (!attributes->is_global && attributes->dlid == 0) ||
      (attributes->is_global && attributes->grh.sgid_index >= kGidCount)) {
    errno = EINVAL;
    return nullptr;
  }
  auto* const handle = new AddressHandle;
  handle->seen.context = pd->context;
  handle->seen.pd = pd;
  handle->attributes = *attributes;
  handle->host = host_of(*attributes, Nic::instance().network);
  const Hold hold(Nic::instance());
  ++object_of<Pd>(pd).users;
  return &handle->seen;
}

int ibv_init_ah_from_wc(ibv_context*, std::uint8_t port, ibv_wc* wc, ibv_grh* grh,
                        ibv_ah_attr* attributes) {
  *attributes = {};
  attributes->dlid = wc->slid;
  attributes->sl = wc->sl;
  attributes->port_num = port;
  if (wc->wc_flags & IBV_WC_GRH) {
    attributes->is_global = 1;
    attributes->grh.dgid = grh->sgid;
    attributes->grh.sgid_index = kGidCount - 1;
    attributes->grh.hop_limit = 255;
  }
  return 0;
}

ibv_ah* ibv_create_ah_from_wc(ibv_pd* pd, ibv_wc* wc, ibv_grh* grh, std::uint8_t port) {
  ibv_ah_attr attributes;
  ibv_init_ah_from_wc(pd->context, port, wc, grh, &attributes);
  return ibv_create_ah(pd, &attributes);
}

int ibv_destroy_ah(ibv_ah* handle) {
  {
    const Hold hold(Nic::instance());
    --object_of<Pd>(handle->pd).users;
  }
  delete &object_of<AddressHandle>(handle);
  return 0;
}

}  // extern "C"
