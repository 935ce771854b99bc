#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "fake_device/fake_objects.h"

namespace greynic::verbs::fake {
namespace {

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

}  // namespace

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

}  // namespace greynic::verbs::fake
