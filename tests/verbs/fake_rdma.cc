#include "fake_rdma.h"

#include <infiniband/verbs.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>

namespace greynic::verbs {
namespace {

std::recursive_mutex the_lock;
using Lock = std::lock_guard<std::recursive_mutex>;

struct Cq {
  ibv_cq cq{};
  std::deque<ibv_wc> done;
  int users = 0;
};
struct Domain {
  ibv_xrcd xrcd{};
  int users = 0;
};
struct Receive {
  std::uint64_t id;
  std::vector<ibv_sge> pieces;
};
struct Srq {
  ibv_srq srq{};
  std::uint32_t number = 0;
  Domain* domain = nullptr;
  Cq* cq = nullptr;
  std::size_t depth = 0;
  std::deque<Receive> posted;
};
struct Send {
  ibv_send_wr request{};
  std::vector<ibv_sge> pieces;
};
struct Qp {
  ibv_qp_ex ex{};
  bool target = false;
  Domain* domain = nullptr;
  Cq* cq = nullptr;
  ibv_qp_state state = IBV_QPS_RESET;
  std::uint32_t peer = 0;
  std::uint32_t sends_from = 0;
  std::uint32_t expects = 0;
  std::size_t depth = 0;
  std::deque<Send> queue;      ///< posted, not yet done
  std::vector<Send> building;  ///< between wr_start and wr_complete
};
struct Td {
  ibv_td td{};
  std::uint32_t number = 0;
  std::size_t users = 0;
};
struct Pd {
  ibv_pd pd{};
  Pd* parent = nullptr;  ///< of a parent domain, the one it stands for
  Td* thread = nullptr;
  std::size_t users = 0;  ///< parent domains
};
struct Mr {
  ibv_mr mr{};
  int access = 0;
};

/// Everything there is, by handle or number.
struct World {
  std::map<std::uint32_t, std::unique_ptr<Qp>> qps;
  std::map<std::uint32_t, std::unique_ptr<Srq>> srqs;
  std::map<std::uint32_t, std::unique_ptr<Mr>> regions;
  std::set<ibv_pd*> domains;
  std::uint32_t next = 17;
};
World world;

void violated(const std::string& what) { fake_rdma().violations.push_back(what); }

std::uint32_t new_number() {
  ++fake_rdma().objects;
  return world.next += 3;
}

Cq& of(ibv_cq* cq) { return *reinterpret_cast<Cq*>(cq); }
Srq& of(ibv_srq* srq) { return *reinterpret_cast<Srq*>(srq); }
Domain& of(ibv_xrcd* xrcd) { return *reinterpret_cast<Domain*>(xrcd); }
Pd& of(ibv_pd* pd) { return *reinterpret_cast<Pd*>(pd); }
Td& of(ibv_td* td) { return *reinterpret_cast<Td*>(td); }
Qp& of(ibv_qp* qp) { return *reinterpret_cast<Qp*>(qp); }
Qp& of(ibv_qp_ex* qp) { return *reinterpret_cast<Qp*>(qp); }

/// The bytes behind a key, when the key allows them.
std::uint8_t* reach(std::uint32_t key, std::uint64_t address, std::uint64_t length, int access) {
  const auto found = world.regions.find(key);
  if (found == world.regions.end() || (found->second->access & access) != access) return nullptr;
  const auto begin = reinterpret_cast<std::uint64_t>(found->second->mr.addr);
  if (address < begin || address + length > begin + found->second->mr.length) return nullptr;
  return reinterpret_cast<std::uint8_t*>(address);
}

/// The bytes of a list of pieces, or nothing when a key does not allow one.
std::optional<std::vector<std::uint8_t>> gather(const std::vector<ibv_sge>& pieces) {
  std::vector<std::uint8_t> bytes;
  for (const ibv_sge& piece : pieces) {
    const std::uint8_t* from = reach(piece.lkey, piece.addr, piece.length, 0);
    if (from == nullptr) return std::nullopt;
    bytes.insert(bytes.end(), from, from + piece.length);
  }
  return bytes;
}

ibv_wc_status scatter(const std::vector<std::uint8_t>& bytes, const std::vector<ibv_sge>& pieces) {
  std::size_t at = 0;
  for (const ibv_sge& piece : pieces) {
    const std::size_t count = std::min<std::size_t>(piece.length, bytes.size() - at);
    std::uint8_t* into = reach(piece.lkey, piece.addr, count, IBV_ACCESS_LOCAL_WRITE);
    if (into == nullptr) return IBV_WC_LOC_PROT_ERR;
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), count, into);
    at += count;
  }
  return at == bytes.size() ? IBV_WC_SUCCESS : IBV_WC_REM_INV_REQ_ERR;
}

bool has_immediate(const Send& send) {
  return send.request.opcode == IBV_WR_SEND_WITH_IMM ||
         send.request.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

bool is_send(const Send& send) {
  return send.request.opcode == IBV_WR_SEND || send.request.opcode == IBV_WR_SEND_WITH_IMM;
}

/// What the target does with a request; nothing when no receive is there yet.
std::optional<ibv_wc_status> deliver(const Send& send, Qp& target) {
  const ibv_send_wr& request = send.request;
  Srq* srq = nullptr;
  if (is_send(send) || has_immediate(send)) {
    const auto found = world.srqs.find(request.qp_type.xrc.remote_srqn);
    if (found == world.srqs.end() || found->second->domain != target.domain) {
      return IBV_WC_REM_INV_REQ_ERR;  // A14: an XRC domain violation
    }
    srq = found->second.get();
    if (srq->posted.empty()) return std::nullopt;
  }
  const bool pulls = request.opcode == IBV_WR_RDMA_READ;
  const bool atomic =
      request.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || request.opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
  std::vector<std::uint8_t> bytes;
  if (atomic) {
    auto* word = reinterpret_cast<std::uint64_t*>(
        reach(request.wr.atomic.rkey, request.wr.atomic.remote_addr, 8, IBV_ACCESS_REMOTE_ATOMIC));
    if (word == nullptr) return IBV_WC_REM_ACCESS_ERR;
    bytes.resize(8);
    std::memcpy(bytes.data(), word, 8);
    if (request.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
      *word += request.wr.atomic.compare_add;
    } else if (*word == request.wr.atomic.compare_add) {
      *word = request.wr.atomic.swap;
    }
    return scatter(bytes, send.pieces);
  }
  if (pulls) {
    std::uint64_t length = 0;
    for (const ibv_sge& piece : send.pieces) length += piece.length;
    const std::uint8_t* from =
        reach(request.wr.rdma.rkey, request.wr.rdma.remote_addr, length, IBV_ACCESS_REMOTE_READ);
    if (from == nullptr) return IBV_WC_REM_ACCESS_ERR;
    return scatter({from, from + length}, send.pieces);
  }
  auto gathered = gather(send.pieces);
  if (!gathered) return IBV_WC_LOC_PROT_ERR;
  if (!is_send(send)) {
    std::uint8_t* into = reach(request.wr.rdma.rkey, request.wr.rdma.remote_addr, gathered->size(),
                               IBV_ACCESS_REMOTE_WRITE);
    if (into == nullptr) return IBV_WC_REM_ACCESS_ERR;
    std::copy(gathered->begin(), gathered->end(), into);
  }
  if (srq == nullptr) return IBV_WC_SUCCESS;
  const Receive receive = srq->posted.front();
  srq->posted.pop_front();
  ibv_wc arrived{};
  arrived.wr_id = receive.id;
  arrived.byte_len = static_cast<std::uint32_t>(gathered->size());
  arrived.qp_num = target.ex.qp_base.qp_num;
  if (has_immediate(send)) {
    arrived.wc_flags = IBV_WC_WITH_IMM;
    arrived.imm_data = request.imm_data;
  }
  arrived.status = is_send(send) ? scatter(*gathered, receive.pieces) : IBV_WC_SUCCESS;
  srq->cq->done.push_back(arrived);
  return arrived.status;
}

/// Does what can be done of a QP's queue.
void work(Qp& qp) {
  while (!qp.queue.empty()) {
    const Send& send = qp.queue.front();
    const auto found = world.qps.find(qp.peer);
    std::optional<ibv_wc_status> status = IBV_WC_RETRY_EXC_ERR;
    if (qp.state == IBV_QPS_ERR) {
      status = IBV_WC_WR_FLUSH_ERR;
    } else if (found != world.qps.end() && found->second->target &&
               found->second->state == IBV_QPS_RTR && found->second->peer == qp.ex.qp_base.qp_num &&
               found->second->expects == qp.sends_from) {
      status = deliver(send, *found->second);
    }
    if (!status) return;
    if (*status != IBV_WC_SUCCESS || (send.request.send_flags & IBV_SEND_SIGNALED) != 0) {
      ibv_wc completion{};
      completion.wr_id = send.request.wr_id;
      completion.status = *status;
      completion.qp_num = qp.ex.qp_base.qp_num;
      qp.cq->done.push_back(completion);
    }
    if (*status != IBV_WC_SUCCESS) qp.state = IBV_QPS_ERR;
    qp.queue.pop_front();
  }
}

int enqueue(Qp& qp, Send send) {
  if (qp.target || (qp.state != IBV_QPS_RTS && qp.state != IBV_QPS_ERR)) {
    violated("posted to a QP that cannot send");
    return EINVAL;
  }
  if (qp.queue.size() >= qp.depth) return ENOMEM;
  std::vector<std::uint32_t> lengths;
  for (const ibv_sge& piece : send.pieces) lengths.push_back(piece.length);
  fake_rdma().pieces.insert(lengths);
  send.request.sg_list = nullptr;
  send.request.next = nullptr;
  qp.queue.push_back(std::move(send));
  return 0;
}

int post_send(ibv_qp* handle, ibv_send_wr* first, ibv_send_wr** bad) {
  const Lock lock(the_lock);
  std::uint64_t length = 0;
  for (ibv_send_wr* request = first; request != nullptr; request = request->next) {
    ++fake_rdma().posted_plain;
    fake_rdma().longest_list = std::max(fake_rdma().longest_list, ++length);
    Send send{*request, {request->sg_list, request->sg_list + request->num_sge}};
    if (const int error = enqueue(of(handle), std::move(send))) {
      *bad = request;
      return error;
    }
  }
  work(of(handle));
  return 0;
}

int post_srq_recv(ibv_srq* handle, ibv_recv_wr* first, ibv_recv_wr** bad) {
  const Lock lock(the_lock);
  Srq& srq = of(handle);
  std::uint64_t length = 0;
  for (ibv_recv_wr* one = first; one != nullptr; one = one->next) ++length;
  ++fake_rdma().receive_lists[length];
  for (ibv_recv_wr* request = first; request != nullptr; request = request->next) {
    if (srq.posted.size() >= srq.depth) {
      *bad = request;
      return ENOMEM;
    }
    srq.posted.push_back({request->wr_id, {request->sg_list, request->sg_list + request->num_sge}});
  }
  for (auto& [number, qp] : world.qps) work(*qp);
  return 0;
}

int post_recv(ibv_qp*, ibv_recv_wr* request, ibv_recv_wr** bad) {
  const Lock lock(the_lock);
  violated("a receive posted to an XRC QP, which has no receive queue");
  *bad = request;
  return EINVAL;
}

int poll_cq(ibv_cq* handle, int capacity, ibv_wc* completions) {
  const Lock lock(the_lock);
  std::deque<ibv_wc>& done = of(handle).done;
  const int count = std::min(capacity, static_cast<int>(done.size()));
  std::copy_n(done.begin(), count, completions);
  done.erase(done.begin(), done.begin() + count);
  return count;
}

// ibv_wr_*: requests are gathered between start and complete.

Send& last(ibv_qp_ex* qp) { return of(qp).building.back(); }
void begin(ibv_qp_ex* qp, ibv_wr_opcode opcode) {
  Send send;
  send.request.wr_id = qp->wr_id;
  send.request.send_flags = qp->wr_flags;
  send.request.opcode = opcode;
  of(qp).building.push_back(send);
}
void begin_remote(ibv_qp_ex* qp, ibv_wr_opcode opcode, std::uint32_t key, std::uint64_t address) {
  begin(qp, opcode);
  last(qp).request.wr.rdma = {address, key};
}
void begin_atomic(ibv_qp_ex* qp, ibv_wr_opcode opcode, std::uint32_t key, std::uint64_t address,
                  std::uint64_t compare_add, std::uint64_t swap) {
  begin(qp, opcode);
  last(qp).request.wr.atomic = {address, compare_add, swap, key};
}

void give_extended_posting(ibv_qp_ex& qp) {
  qp.wr_start = [](ibv_qp_ex* q) {
    the_lock.lock();
    of(q).building.clear();
  };
  qp.wr_abort = [](ibv_qp_ex*) { the_lock.unlock(); };
  qp.wr_complete = [](ibv_qp_ex* q) {
    int error = 0;
    fake_rdma().longest_list =
        std::max<std::uint64_t>(fake_rdma().longest_list, of(q).building.size());
    for (Send& send : of(q).building) {
      ++fake_rdma().posted_extended;
      if (error == 0) error = enqueue(of(q), std::move(send));
    }
    work(of(q));
    the_lock.unlock();
    return error;
  };
  qp.wr_send = [](ibv_qp_ex* q) { begin(q, IBV_WR_SEND); };
  qp.wr_send_imm = [](ibv_qp_ex* q, __be32 immediate) {
    begin(q, IBV_WR_SEND_WITH_IMM);
    last(q).request.imm_data = immediate;
  };
  qp.wr_rdma_write = [](ibv_qp_ex* q, std::uint32_t key, std::uint64_t address) {
    begin_remote(q, IBV_WR_RDMA_WRITE, key, address);
  };
  qp.wr_rdma_write_imm = [](ibv_qp_ex* q, std::uint32_t key, std::uint64_t address,
                            __be32 immediate) {
    begin_remote(q, IBV_WR_RDMA_WRITE_WITH_IMM, key, address);
    last(q).request.imm_data = immediate;
  };
  qp.wr_rdma_read = [](ibv_qp_ex* q, std::uint32_t key, std::uint64_t address) {
    begin_remote(q, IBV_WR_RDMA_READ, key, address);
  };
  qp.wr_atomic_cmp_swp = [](ibv_qp_ex* q, std::uint32_t key, std::uint64_t address,
                            std::uint64_t compare, std::uint64_t swap) {
    begin_atomic(q, IBV_WR_ATOMIC_CMP_AND_SWP, key, address, compare, swap);
  };
  qp.wr_atomic_fetch_add = [](ibv_qp_ex* q, std::uint32_t key, std::uint64_t address,
                              std::uint64_t add) {
    begin_atomic(q, IBV_WR_ATOMIC_FETCH_AND_ADD, key, address, add, 0);
  };
  qp.wr_set_xrc_srqn = [](ibv_qp_ex* q, std::uint32_t number) {
    last(q).request.qp_type.xrc.remote_srqn = number;
  };
  qp.wr_set_sge = [](ibv_qp_ex* q, std::uint32_t key, std::uint64_t address, std::uint32_t length) {
    last(q).pieces = {{address, length, key}};
  };
  qp.wr_set_sge_list = [](ibv_qp_ex* q, std::size_t count, const ibv_sge* pieces) {
    last(q).pieces.assign(pieces, pieces + count);
  };
}

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
