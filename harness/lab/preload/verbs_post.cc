// Posting work, by lists and by the builder of extended QPs.

#include <cerrno>
#include <cstring>

#include "preload/calls.h"
#include "preload/nic.h"
#include "preload/time/turns.h"

namespace greynic::lab {
namespace {

void take_inline(SendWork& work, const void* bytes, std::size_t count) {
  const auto* const from = static_cast<const std::byte*>(bytes);
  work.inlined.insert(work.inlined.end(), from, from + count);
  work.is_inline = true;
}

void address(SendWork& work, ibv_ah* handle, std::uint32_t qp, std::uint32_t key) {
  const AddressHandle& to = object_of<AddressHandle>(handle);
  work.to_host = to.host;
  work.service_level = to.attributes.sl;
  work.to_qp = qp;
  work.to_key = key;
}

bool suits(ibv_qp_type type, ibv_wr_opcode opcode) {
  switch (opcode) {
    case IBV_WR_SEND:
    case IBV_WR_SEND_WITH_IMM:
      return true;
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
    case IBV_WR_SEND_WITH_INV:
    case IBV_WR_BIND_MW:
    case IBV_WR_LOCAL_INV:
      return type != IBV_QPT_UD;
    case IBV_WR_RDMA_READ:
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return type != IBV_QPT_UD && type != IBV_QPT_UC;
    default:
      return false;
  }
}

/// 0, or what is wrong with the request.
int to_work(const Qp& qp, ibv_qp_type type, const ibv_send_wr& request, SendWork& work) {
  if (!suits(type, request.opcode) || request.num_sge < 0) return EINVAL;
  const unsigned inlines = request.send_flags & IBV_SEND_INLINE;
  work.id = request.wr_id;
  work.opcode = request.opcode;
  work.flags = request.send_flags;
  work.immediate = request.imm_data;
  if (static_cast<std::uint32_t>(request.num_sge) > qp.asked.cap.max_send_sge) return EINVAL;
  if (inlines) {
    work.is_inline = true;
    for (int i = 0; i < request.num_sge; ++i) {
      const ibv_sge& element = request.sg_list[i];
      if (work.inlined.size() + element.length > qp.asked.cap.max_inline_data) return EINVAL;
      take_inline(work, reinterpret_cast<const void*>(element.addr), element.length);
    }
  } else if (request.num_sge > 0) {
    work.elements.assign(request.sg_list, request.sg_list + request.num_sge);
  }
  if (type == IBV_QPT_XRC_SEND) work.to_srq = request.qp_type.xrc.remote_srqn;
  switch (request.opcode) {
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      work.remote_address = request.wr.atomic.remote_addr;
      work.rkey = request.wr.atomic.rkey;
      work.compare_add = request.wr.atomic.compare_add;
      work.swap = request.wr.atomic.swap;
      return 0;
    case IBV_WR_BIND_MW:
      work.bind = {request.bind_mw.mw, request.bind_mw.rkey, request.bind_mw.bind_info};
      return work.bind.window && work.bind.window->type == IBV_MW_TYPE_2 ? 0 : EINVAL;
    default:
      break;
  }
  if (type == IBV_QPT_UD) {
    if (!request.wr.ud.ah) return EINVAL;
    address(work, request.wr.ud.ah, request.wr.ud.remote_qpn, request.wr.ud.remote_qkey);
  } else {
    work.remote_address = request.wr.rdma.remote_addr;
    work.rkey = request.wr.rdma.rkey;
  }
  return 0;
}

// ---- the builder: wr_start, then an operation and its data for each request, then wr_complete

SendWork& begin(ibv_qp_ex* qp, ibv_wr_opcode opcode) {
  Qp& own = object_of<Qp>(qp);
  SendWork& work = own.built.emplace_back();
  work.id = qp->wr_id;
  work.flags = qp->wr_flags;
  work.opcode = opcode;
  if (!suits(own.type(), opcode)) own.build_error = EINVAL;
  return work;
}

SendWork& remote(ibv_qp_ex* qp, ibv_wr_opcode opcode, std::uint32_t rkey, std::uint64_t to) {
  SendWork& work = begin(qp, opcode);
  work.rkey = rkey;
  work.remote_address = to;
  return work;
}

/// The request that setters are about; null, and an error, before the first.
SendWork* last(ibv_qp_ex* qp) {
  Qp& own = object_of<Qp>(qp);
  if (!own.built.empty()) return &own.built.back();
  own.build_error = EINVAL;
  return nullptr;
}

void start(ibv_qp_ex* qp) {
  Qp& own = object_of<Qp>(qp);
  own.building.lock();
  own.built.clear();
  own.build_error = 0;
}

int complete(ibv_qp_ex* qp) {
  Qp& own = object_of<Qp>(qp);
  Nic& nic = Nic::instance();
  int error = own.build_error;
  {
    const Hold hold(nic);
    // All or none.
    if (error == 0 && own.base().state == IBV_QPS_RTS &&
        own.sends.size() + own.built.size() > own.asked.cap.max_send_wr) {
      error = ENOMEM;
    }
    for (SendWork& work : own.built) {
      if (error == 0) error = nic.post(own, std::move(work));
    }
    nic.begin();
  }
  own.built.clear();
  own.building.unlock();
  return error;
}

void fill_operations(ibv_qp_ex& qp) {
  qp.wr_send = [](ibv_qp_ex* of) { begin(of, IBV_WR_SEND); };
  qp.wr_send_imm = [](ibv_qp_ex* of, __be32 immediate) {
    begin(of, IBV_WR_SEND_WITH_IMM).immediate = immediate;
  };
  qp.wr_send_inv = [](ibv_qp_ex* of, std::uint32_t key) {
    begin(of, IBV_WR_SEND_WITH_INV).immediate = key;
  };
  qp.wr_rdma_write = [](ibv_qp_ex* of, std::uint32_t rkey, std::uint64_t to) {
    remote(of, IBV_WR_RDMA_WRITE, rkey, to);
  };
  qp.wr_rdma_write_imm = [](ibv_qp_ex* of, std::uint32_t rkey, std::uint64_t to,
                            __be32 immediate) {
    remote(of, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, to).immediate = immediate;
  };
  qp.wr_rdma_read = [](ibv_qp_ex* of, std::uint32_t rkey, std::uint64_t to) {
    remote(of, IBV_WR_RDMA_READ, rkey, to);
  };
  qp.wr_atomic_cmp_swp = [](ibv_qp_ex* of, std::uint32_t rkey, std::uint64_t to,
                            std::uint64_t compare, std::uint64_t swap) {
    SendWork& work = remote(of, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, to);
    work.compare_add = compare;
    work.swap = swap;
  };
  qp.wr_atomic_fetch_add = [](ibv_qp_ex* of, std::uint32_t rkey, std::uint64_t to,
                              std::uint64_t add) {
    remote(of, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, to).compare_add = add;
  };
  qp.wr_local_inv = [](ibv_qp_ex* of, std::uint32_t key) {
    begin(of, IBV_WR_LOCAL_INV).immediate = key;
  };
  qp.wr_bind_mw = [](ibv_qp_ex* of, ibv_mw* window, std::uint32_t rkey,
                     const ibv_mw_bind_info* info) {
    begin(of, IBV_WR_BIND_MW).bind = {window, rkey, *info};
  };
  qp.wr_send_tso = [](ibv_qp_ex* of, void*, std::uint16_t, std::uint16_t) {
    object_of<Qp>(of).build_error = not_offered("ibv_wr_send_tso");
  };
  qp.wr_atomic_write = [](ibv_qp_ex* of, std::uint32_t, std::uint64_t, const void*) {
    object_of<Qp>(of).build_error = not_offered("ibv_wr_atomic_write");
  };
}

void fill_data(ibv_qp_ex& qp) {
  qp.wr_set_ud_addr = [](ibv_qp_ex* of, ibv_ah* handle, std::uint32_t to, std::uint32_t key) {
    if (SendWork* const work = last(of)) address(*work, handle, to, key);
  };
  qp.wr_set_xrc_srqn = [](ibv_qp_ex* of, std::uint32_t srq) {
    if (SendWork* const work = last(of)) work->to_srq = srq;
  };
  qp.wr_set_inline_data = [](ibv_qp_ex* of, void* bytes, std::size_t count) {
    if (SendWork* const work = last(of)) take_inline(*work, bytes, count);
  };
  qp.wr_set_inline_data_list = [](ibv_qp_ex* of, std::size_t count, const ibv_data_buf* list) {
    SendWork* const work = last(of);
    for (std::size_t i = 0; work && i < count; ++i) {
      take_inline(*work, list[i].addr, list[i].length);
    }
  };
  qp.wr_set_sge = [](ibv_qp_ex* of, std::uint32_t lkey, std::uint64_t at, std::uint32_t length) {
    if (SendWork* const work = last(of)) work->elements = {{at, length, lkey}};
  };
  qp.wr_set_sge_list = [](ibv_qp_ex* of, std::size_t count, const ibv_sge* list) {
    if (SendWork* const work = last(of)) work->elements.assign(list, list + count);
  };
}

}  // namespace

void fill_builder(ibv_qp_ex& qp) {
  qp.wr_start = start;
  qp.wr_complete = complete;
  qp.wr_abort = [](ibv_qp_ex* of) {
    object_of<Qp>(of).built.clear();
    object_of<Qp>(of).building.unlock();
  };
  fill_operations(qp);
  fill_data(qp);
}

int post_send(ibv_qp* qp, ibv_send_wr* list, ibv_send_wr** bad) {
  Nic& nic = Nic::instance();
  const Hold hold(nic);
  Qp& own = object_of<Qp>(qp);
  int error = 0;
  for (ibv_send_wr* request = list; request; request = request->next) {
    SendWork work;
    error = to_work(own, qp->qp_type, *request, work);
    if (error == 0) error = nic.post(own, std::move(work));
    if (error != 0) {
      if (bad) *bad = request;
      break;
    }
  }
  nic.begin();
  return error;
}

int post_recv(ibv_qp* qp, ibv_recv_wr* list, ibv_recv_wr** bad) {
  Nic& nic = Nic::instance();
  const Hold hold(nic);
  Qp& own = object_of<Qp>(qp);
  for (ibv_recv_wr* request = list; request; request = request->next) {
    ReceiveWork work;
    int error = 0;
    if (qp->srq || !qp->recv_cq || qp->state == IBV_QPS_RESET) error = EINVAL;
    if (error == 0 && turns::taken()) {
      error = to_work(*request, own.asked.cap.max_recv_sge, work) ? turns::post_receive(own, work)
                                                                  : EINVAL;
      if (error == 0) continue;
    }
    if (error == 0 && own.receives.size() >= own.asked.cap.max_recv_wr) error = ENOMEM;
    if (error == 0 && !to_work(*request, own.asked.cap.max_recv_sge, work)) error = EINVAL;
    if (error != 0) {
      if (bad) *bad = request;
      return error;
    }
    if (qp->state == IBV_QPS_ERR) {
      ibv_wc wc{};
      wc.wr_id = work.id;
      wc.status = IBV_WC_WR_FLUSH_ERR;
      wc.opcode = IBV_WC_RECV;
      wc.qp_num = own.number();
      nic.complete(object_of<Cq>(qp->recv_cq), wc, true);
      continue;
    }
    own.receives.push_back(std::move(work));
  }
  return 0;
}

}  // namespace greynic::lab
