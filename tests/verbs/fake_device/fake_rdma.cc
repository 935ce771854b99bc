#include "fake_device/fake_rdma.h"

#include <infiniband/verbs.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "fake_device/fake_objects.h"

namespace greynic::verbs {

using namespace fake;  // NOLINT(google-build-using-namespace)

namespace {

ibv_qp* create_initiator(ibv_pd* pd, ibv_cq* cq, ibv_srq* srq, const ibv_qp_cap& cap,
                         bool extended) {
  const Lock lock(the_lock);
  if (pd == nullptr || cq == nullptr) violated("an XRC QP that sends needs a PD and a CQ");
  if (srq != nullptr || cap.max_recv_wr != 0) violated("an XRC QP that sends receives nothing");
  const Td* const thread = of(pd).thread;
  ++fake_rdma().senders[thread == nullptr ? 0 : thread->number];
  auto made = std::make_unique<Qp>();
  made->ex.qp_base.context = pd->context;
  made->ex.qp_base.qp_num = new_number();
  made->cq = &of(cq);
  made->depth = cap.max_send_wr;
  ++made->cq->users;
  if (extended) give_extended_posting(made->ex);
  ibv_qp* const handle = &made->ex.qp_base;
  world.qps.emplace(handle->qp_num, std::move(made));
  return handle;
}

ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attributes) {
  const Lock lock(the_lock);
  if (attributes->qp_type == IBV_QPT_XRC_SEND) {
    if (!fake_rdma().extended) {
      errno = EOPNOTSUPP;
      return nullptr;
    }
    return create_initiator(attributes->pd, attributes->send_cq, attributes->srq, attributes->cap,
                            true);
  }
  if (attributes->qp_type != IBV_QPT_XRC_RECV || attributes->comp_mask != IBV_QP_INIT_ATTR_XRCD) {
    violated("a QP that is neither end of XRC");
  }
  auto made = std::make_unique<Qp>();
  made->target = true;
  made->ex.qp_base.context = context;
  made->ex.qp_base.qp_num = new_number();
  made->domain = &of(attributes->xrcd);
  ++made->domain->users;
  ibv_qp* const handle = &made->ex.qp_base;
  world.qps.emplace(handle->qp_num, std::move(made));
  return handle;
}

ibv_xrcd* open_xrcd(ibv_context* context, ibv_xrcd_init_attr*) {
  const Lock lock(the_lock);
  ++fake_rdma().objects;
  auto* made = new Domain;
  made->xrcd.context = context;
  return &made->xrcd;
}

int close_xrcd(ibv_xrcd* xrcd) {
  const Lock lock(the_lock);
  if (of(xrcd).users != 0) violated("an XRC domain closed while in use");
  --fake_rdma().objects;
  delete &of(xrcd);
  return 0;
}

ibv_srq* create_srq_ex(ibv_context* context, ibv_srq_init_attr_ex* attributes) {
  const Lock lock(the_lock);
  if (attributes->srq_type != IBV_SRQT_XRC) violated("a shared receive queue that is not XRC's");
  auto made = std::make_unique<Srq>();
  made->srq.context = context;
  made->number = new_number();
  made->domain = &of(attributes->xrcd);
  made->cq = &of(attributes->cq);
  made->depth = attributes->attr.max_wr;
  ++made->domain->users;
  ++made->cq->users;
  ibv_srq* const handle = &made->srq;
  world.srqs.emplace(made->number, std::move(made));
  return handle;
}

int get_srq_num(ibv_srq* srq, std::uint32_t* number) {
  *number = of(srq).number;
  return 0;
}

int query_port(ibv_context*, std::uint8_t, ibv_port_attr* port, std::size_t) {
  *port = {};
  port->state = IBV_PORT_ACTIVE;
  port->link_layer = IBV_LINK_LAYER_INFINIBAND;
  port->lid = 1;
  port->active_mtu = IBV_MTU_4096;
  port->max_msg_sz = 1U << 30;
  return 0;
}

ibv_td* alloc_td(ibv_context* context, ibv_td_init_attr*) {
  const Lock lock(the_lock);
  if (!fake_rdma().thread_domains) {
    errno = EOPNOTSUPP;
    return nullptr;
  }
  auto* made = new Td;
  made->number = new_number();
  made->td.context = context;
  return &made->td;
}
int dealloc_td(ibv_td* td) {
  const Lock lock(the_lock);
  if (of(td).users != 0) violated("a thread domain freed while in use");
  --fake_rdma().objects;
  delete &of(td);
  return 0;
}
ibv_pd* alloc_parent_domain(ibv_context* context, ibv_parent_domain_init_attr* attributes) {
  const Lock lock(the_lock);
  ++fake_rdma().objects;
  auto* made = new Pd;
  made->pd.context = context;
  made->parent = &of(attributes->pd);
  made->thread = &of(attributes->td);
  ++made->parent->users;
  ++made->thread->users;
  return &made->pd;
}

int modify_cq(ibv_cq*, ibv_modify_cq_attr* attributes) {
  if (attributes->attr_mask != IBV_CQ_ATTR_MODERATE) return EINVAL;
  const ibv_moderate_cq& moderate = attributes->moderate;
  fake_rdma().moderated.push_back(std::to_string(moderate.cq_count) + " completions, " +
                                  std::to_string(moderate.cq_period) + " us");
  return 0;
}

struct Context {
  verbs_context whole{};
  ibv_device device{};
  Context() {
    std::strcpy(device.name, kFakeDevice);
    whole.sz = sizeof whole;
    whole.create_qp_ex = create_qp_ex;
    whole.open_xrcd = open_xrcd;
    whole.close_xrcd = close_xrcd;
    whole.create_srq_ex = create_srq_ex;
    whole.get_srq_num = get_srq_num;
    whole.query_port = query_port;
    whole.modify_cq = modify_cq;
    whole.alloc_td = alloc_td;
    whole.dealloc_td = dealloc_td;
    whole.alloc_parent_domain = alloc_parent_domain;
    whole.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
    whole.context.device = &device;
    whole.context.ops.post_send = post_send;
    whole.context.ops.post_recv = post_recv;
    whole.context.ops.post_srq_recv = post_srq_recv;
    whole.context.ops.poll_cq = poll_cq;
  }
};
Context& the_context() {
  static Context context;
  return context;
}

/// Which attributes a step of modify needs, by the kernel's qp_state_table; neither more nor less.
int needed(const Qp& qp, ibv_qp_state next) {
  const int path = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  switch (next) {
    case IBV_QPS_INIT:
      return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
    case IBV_QPS_RTR:
      return qp.target ? path | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : path;
    case IBV_QPS_RTS:
      return qp.target ? IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_SQ_PSN
                       : IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                             IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
    default:
      return IBV_QP_STATE;
  }
}

}  // namespace

FakeRdma& fake_rdma() {
  static FakeRdma fake;
  return fake;
}

}  // namespace greynic::verbs

// What follows takes the place of libibverbs' functions of the same name.
using namespace greynic::verbs;  // NOLINT(google-build-using-namespace)
#undef ibv_query_port
#undef ibv_reg_mr

extern "C" {

ibv_device** ibv_get_device_list(int* count) {
  *count = 1;
  return new ibv_device* [2] { &the_context().device, nullptr };
}
void ibv_free_device_list(ibv_device** list) { delete[] list; }
const char* ibv_get_device_name(ibv_device* device) { return device->name; }
ibv_context* ibv_open_device(ibv_device*) { return &the_context().whole.context; }
int ibv_close_device(ibv_context*) { return 0; }

int ibv_query_device(ibv_context*, ibv_device_attr* attributes) {
  *attributes = {};
  attributes->phys_port_cnt = 1;
  attributes->max_qp = attributes->max_cq = attributes->max_mr = attributes->max_srq = 1 << 16;
  attributes->max_qp_wr = attributes->max_srq_wr = attributes->max_cqe = 1 << 16;
  attributes->max_mr_size = ~std::uint64_t{0};
  attributes->max_sge = 16;
  attributes->max_qp_rd_atom = attributes->max_qp_init_rd_atom = 16;
  attributes->atomic_cap = IBV_ATOMIC_HCA;
  attributes->device_cap_flags = IBV_DEVICE_MEM_WINDOW_TYPE_2B;
  if (fake_rdma().xrc) attributes->device_cap_flags |= IBV_DEVICE_XRC;
  return 0;
}

ibv_pd* ibv_alloc_pd(ibv_context* context) {
  const Lock lock(the_lock);
  ++fake_rdma().objects;
  auto* made = new Pd;
  made->pd.context = context;
  return &made->pd;
}
int ibv_dealloc_pd(ibv_pd* pd) {
  const Lock lock(the_lock);
  Pd& domain = of(pd);
  if (domain.users != 0) violated("a PD freed while a parent domain stands for it");
  if (domain.parent != nullptr) --domain.parent->users;
  if (domain.thread != nullptr) --domain.thread->users;
  --fake_rdma().objects;
  delete &domain;
  return 0;
}

ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* address, std::size_t length, std::uint64_t,
                         unsigned int access) {
  const Lock lock(the_lock);
  auto made = std::make_unique<Mr>();
  made->mr = {pd->context, pd, address, length, 0, 0, 0};
  made->mr.lkey = made->mr.rkey = new_number();
  made->access = static_cast<int>(access);
  ibv_mr* const handle = &made->mr;
  world.regions.emplace(handle->lkey, std::move(made));
  return handle;
}
int ibv_dereg_mr(ibv_mr* mr) {
  const Lock lock(the_lock);
  --fake_rdma().objects;
  world.regions.erase(mr->lkey);
  return 0;
}

ibv_cq* ibv_create_cq(ibv_context* context, int depth, void*, ibv_comp_channel*, int) {
  const Lock lock(the_lock);
  ++fake_rdma().objects;
  auto* made = new Cq;
  made->cq.context = context;
  made->cq.cqe = depth;
  return &made->cq;
}
int ibv_destroy_cq(ibv_cq* cq) {
  const Lock lock(the_lock);
  if (of(cq).users != 0) violated("a CQ destroyed while in use");
  --fake_rdma().objects;
  delete &of(cq);
  return 0;
}

ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* attributes) {
  return create_initiator(pd, attributes->send_cq, attributes->srq, attributes->cap, false);
}
ibv_qp_ex* ibv_qp_to_qp_ex(ibv_qp* qp) { return &of(qp).ex; }

int ibv_modify_qp(ibv_qp* handle, ibv_qp_attr* attributes, int mask) {
  const Lock lock(the_lock);
  Qp& qp = of(handle);
  if (mask != needed(qp, attributes->qp_state)) {
    violated("modify to state " + std::to_string(attributes->qp_state) + " with mask " +
             std::to_string(mask));
    return EINVAL;
  }
  if (attributes->qp_state == IBV_QPS_RTR) {
    qp.peer = attributes->dest_qp_num;
    qp.expects = attributes->rq_psn;
  }
  if (attributes->qp_state == IBV_QPS_RTS) qp.sends_from = attributes->sq_psn;
  qp.state = attributes->qp_state;
  work(qp);
  return 0;
}
int ibv_destroy_qp(ibv_qp* handle) {
  const Lock lock(the_lock);
  Qp& qp = of(handle);
  if (qp.cq != nullptr) --qp.cq->users;
  if (qp.domain != nullptr) --qp.domain->users;
  --fake_rdma().objects;
  world.qps.erase(handle->qp_num);
  return 0;
}

int ibv_destroy_srq(ibv_srq* handle) {
  const Lock lock(the_lock);
  Srq& srq = of(handle);
  --srq.cq->users;
  --srq.domain->users;
  --fake_rdma().objects;
  world.srqs.erase(srq.number);
  return 0;
}

}  // extern "C"
