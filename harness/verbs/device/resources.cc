#include "greynic/verbs/resources.h"

#include <fmt/core.h>
#include <infiniband/verbs.h>
#include <sys/mman.h>

#include <bit>
#include <cerrno>
#include <cstring>

#include "device/verbs_errors.h"

namespace greynic::verbs {
namespace {

constexpr std::size_t kHugePage = 2UL << 20;
constexpr std::size_t kPage = 4096;

int flags_of(const Access& access) {
  int flags = 0;
  if (access.local_write) flags |= IBV_ACCESS_LOCAL_WRITE;
  if (access.remote_read) flags |= IBV_ACCESS_REMOTE_READ;
  if (access.remote_write) flags |= IBV_ACCESS_REMOTE_WRITE;
  if (access.remote_atomic) flags |= IBV_ACCESS_REMOTE_ATOMIC;
  if (access.bind_window) flags |= IBV_ACCESS_MW_BIND;
  return flags;
}

ibv_qp_type type_of(Transport transport) {
  switch (transport) {
    case Transport::kRC:
      return IBV_QPT_RC;
    case Transport::kUC:
      return IBV_QPT_UC;
    case Transport::kUD:
      return IBV_QPT_UD;
    case Transport::kXRC:
      return IBV_QPT_XRC_SEND;
  }
  return IBV_QPT_RC;
}

ibv_ah_attr way_to(const RemoteEnd& remote, int port) {
  ibv_ah_attr way{};
  way.dlid = remote.lid;
  way.port_num = static_cast<std::uint8_t>(port);
  if (remote.over_ethernet) {
    way.is_global = 1;
    std::memcpy(way.grh.dgid.raw, remote.gid.data(), remote.gid.size());
    way.grh.sgid_index = static_cast<std::uint8_t>(remote.local_gid_index);
    way.grh.hop_limit = 64;
  }
  return way;
}

ibv_mtu mtu_code(std::uint32_t bytes) {
  return static_cast<ibv_mtu>(std::bit_width(bytes) - 8);  // 256 -> 1 ... 4096 -> 5
}

/// Operations that a QP of this type may be asked for through ibv_wr_*.
std::uint64_t extended_operations(Transport transport) {
  std::uint64_t flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
  if (transport == Transport::kUD) return flags;
  flags |= IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_BIND_MW;
  if (transport == Transport::kUC) return flags;
  return flags | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
         IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_SEND_WITH_INV;
}

}  // namespace

Result<ProtectionDomain> ProtectionDomain::create(const Device& device) {
  errno = 0;
  ibv_pd* pd = ibv_alloc_pd(device.handle());
  if (pd == nullptr) return refused("ibv_alloc_pd", errno);
  ProtectionDomain made;
  made.pd_ = std::shared_ptr<ibv_pd>(pd, [context = device.share()](ibv_pd* p) {
    if (const int error = ibv_dealloc_pd(p)) log_destruction("ibv_dealloc_pd", error);
  });
  return made;
}

Result<ProtectionDomain> ProtectionDomain::create_for_thread(const Device& device,
                                                             const ProtectionDomain& pd) {
  ibv_td_init_attr none{};
  errno = 0;
  ibv_td* thread = ibv_alloc_td(device.handle(), &none);
  if (thread == nullptr) {
    return refused("doorbell_sharing dedicated: ibv_alloc_td, a register for a thread", errno);
  }
  ibv_parent_domain_init_attr attributes{};
  attributes.pd = pd.handle();
  attributes.td = thread;
  errno = 0;
  ibv_pd* parent = ibv_alloc_parent_domain(device.handle(), &attributes);
  if (parent == nullptr) {
    const int error = errno;
    if (const int left = ibv_dealloc_td(thread)) log_destruction("ibv_dealloc_td", left);
    return refused("doorbell_sharing dedicated: ibv_alloc_parent_domain", error);
  }
  ProtectionDomain made;
  made.pd_ = std::shared_ptr<ibv_pd>(parent, [thread, kept = pd.share()](ibv_pd* p) {
    if (const int error = ibv_dealloc_pd(p)) log_destruction("ibv_dealloc_pd", error);
    if (const int error = ibv_dealloc_td(thread)) log_destruction("ibv_dealloc_td", error);
  });
  return made;
}

Result<MemoryRegion> MemoryRegion::create(const ProtectionDomain& pd, std::size_t bytes,
                                          const Access& access, bool huge_pages) {
  const std::size_t page = huge_pages ? kHugePage : kPage;
  const std::size_t mapped = (std::max<std::size_t>(bytes, 1) + page - 1) / page * page;
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | (huge_pages ? MAP_HUGETLB : 0);
  void* memory = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (memory == MAP_FAILED) {
    if (huge_pages) {
      return fail(ErrorCode::kRefused,
                  fmt::format("{} huge pages of 2 MiB are not free; sysctl vm.nr_hugepages={}",
                              mapped / kHugePage, mapped / kHugePage));
    }
    return refused(fmt::format("mmap of {} bytes", mapped), errno);
  }
  errno = 0;
  ibv_mr* mr = ibv_reg_mr(pd.handle(), memory, bytes, flags_of(access));
  if (mr == nullptr) {
    const int error = errno;
    munmap(memory, mapped);
    return refused(fmt::format("ibv_reg_mr of {} bytes", bytes), error);
  }
  MemoryRegion made;
  made.address_ = static_cast<std::byte*>(memory);
  made.size_ = bytes;
  made.mr_ = std::shared_ptr<ibv_mr>(mr, [pd = pd.share(), memory, mapped](ibv_mr* m) {
    if (const int error = ibv_dereg_mr(m)) log_destruction("ibv_dereg_mr", error);
    munmap(memory, mapped);
  });
  return made;
}

Result<MemoryRegion> MemoryRegion::create_read_only(const ProtectionDomain& pd,
                                                    std::span<const std::byte> memory) {
  auto* const address = const_cast<std::byte*>(memory.data());
  errno = 0;
  // The device gets no right to write, so that pages of a read-only mapping can be had.
  ibv_mr* mr = ibv_reg_mr(pd.handle(), address, memory.size(), IBV_ACCESS_REMOTE_READ);
  if (mr == nullptr && errno == EFAULT) {
    // Linux before 6.2 takes only pages that this process may write, whatever the device may do.
    if (::mprotect(address, memory.size(), PROT_READ | PROT_WRITE) != 0) {
      return fail(
          ErrorCode::kMissing,
          fmt::format("{} bytes to be READ are sealed against this process, and Linux before "
                      "6.2 registers only what it may write",
                      memory.size()));
    }
    errno = 0;
    mr = ibv_reg_mr(pd.handle(), address, memory.size(), IBV_ACCESS_REMOTE_READ);
    const int error = errno;
    (void)::mprotect(address, memory.size(), PROT_READ);
    errno = error;
  }
  if (mr == nullptr) {
    return refused(fmt::format("ibv_reg_mr of {} bytes to be READ", memory.size()), errno);
  }
  MemoryRegion made;
  made.mr_ = std::shared_ptr<ibv_mr>(mr, [pd = pd.share()](ibv_mr* m) {
    if (const int error = ibv_dereg_mr(m)) log_destruction("ibv_dereg_mr", error);
  });
  return made;
}

std::uint32_t MemoryRegion::local_key() const { return mr_->lkey; }
std::uint32_t MemoryRegion::remote_key() const { return mr_->rkey; }

Result<CompletionChannel> CompletionChannel::create(const Device& device) {
  errno = 0;
  ibv_comp_channel* channel = ibv_create_comp_channel(device.handle());
  if (channel == nullptr) return refused("ibv_create_comp_channel", errno);
  CompletionChannel made;
  made.channel_ =
      std::shared_ptr<ibv_comp_channel>(channel, [context = device.share()](ibv_comp_channel* c) {
        if (const int error = ibv_destroy_comp_channel(c)) {
          log_destruction("ibv_destroy_comp_channel", error);
        }
      });
  return made;
}

Result<bool> CompletionChannel::wait() {
  ibv_cq* cq = nullptr;
  void* context = nullptr;
  errno = 0;
  if (ibv_get_cq_event(handle(), &cq, &context) != 0) {
    if (errno == EINTR) return false;
    return refused("ibv_get_cq_event", errno);
  }
  ibv_ack_cq_events(cq, 1);
  return true;
}

Result<CompletionQueue> CompletionQueue::create(const Device& device, std::uint32_t depth,
                                                const CompletionChannel* channel) {
  errno = 0;
  ibv_cq* cq = ibv_create_cq(device.handle(), static_cast<int>(depth), nullptr,
                             channel == nullptr ? nullptr : channel->handle(), 0);
  if (cq == nullptr) return refused(fmt::format("ibv_create_cq of {} entries", depth), errno);
  CompletionQueue made;
  made.cq_ = std::shared_ptr<ibv_cq>(
      cq, [context = device.share(),
           kept = channel == nullptr ? nullptr : channel->share()](ibv_cq* c) {
        if (const int error = ibv_destroy_cq(c)) log_destruction("ibv_destroy_cq", error);
      });
  return made;
}

std::uint32_t CompletionQueue::depth_granted() const {
  return static_cast<std::uint32_t>(cq_->cqe);
}

Result<void> CompletionQueue::arm() {
  if (const int error = ibv_req_notify_cq(handle(), 0)) return refused("ibv_req_notify_cq", error);
  return {};
}

Result<void> CompletionQueue::moderate(const CqModeration& moderation) {
  ibv_modify_cq_attr attributes{};
  attributes.attr_mask = IBV_CQ_ATTR_MODERATE;
  attributes.moderate = {moderation.completions, moderation.period_us};
  if (const int error = ibv_modify_cq(handle(), &attributes)) {
    return refused(fmt::format("cq_moderation of {} completions and {} us: ibv_modify_cq",
                               moderation.completions, moderation.period_us),
                   error);
  }
  return {};
}

Result<SharedReceiveQueue> SharedReceiveQueue::create(const ProtectionDomain& pd,
                                                      std::uint32_t depth,
                                                      std::uint32_t sge_count) {
  ibv_srq_init_attr attributes{};
  attributes.attr.max_wr = depth;
  attributes.attr.max_sge = sge_count;
  errno = 0;
  ibv_srq* srq = ibv_create_srq(pd.handle(), &attributes);
  if (srq == nullptr) return refused(fmt::format("ibv_create_srq of {} slots", depth), errno);
  SharedReceiveQueue made;
  made.depth_granted_ = attributes.attr.max_wr;
  made.srq_ = std::shared_ptr<ibv_srq>(srq, [pd = pd.share()](ibv_srq* s) {
    if (const int error = ibv_destroy_srq(s)) log_destruction("ibv_destroy_srq", error);
  });
  return made;
}

Result<QueuePair> QueuePair::create(const Device& device, const ProtectionDomain& pd,
                                    const CompletionQueue& send_cq,
                                    const CompletionQueue& receive_cq,
                                    const SharedReceiveQueue* srq,
                                    const QueuePairOptions& options) {
  ibv_qp_init_attr_ex attributes{};
  attributes.send_cq = send_cq.handle();
  attributes.recv_cq = receive_cq.handle();
  attributes.srq = srq == nullptr ? nullptr : srq->handle();
  attributes.cap.max_send_wr = options.send_depth;
  const bool own_receives = srq == nullptr && options.transport != Transport::kXRC;
  attributes.cap.max_recv_wr = own_receives ? options.receive_depth : 0;
  attributes.cap.max_send_sge = options.send_sge;
  attributes.cap.max_recv_sge = own_receives ? options.receive_sge : 0;
  attributes.cap.max_inline_data = options.inline_bytes;
  attributes.qp_type = type_of(options.transport);
  attributes.pd = pd.handle();
  attributes.comp_mask = IBV_QP_INIT_ATTR_PD;
  const ibv_qp_init_attr_ex plain = attributes;

  ibv_qp* qp = nullptr;
  if (options.extended) {
    attributes.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    attributes.send_ops_flags = extended_operations(options.transport);
    qp = ibv_create_qp_ex(device.handle(), &attributes);
  }
  const bool extended = qp != nullptr;
  if (!extended) {
    attributes = plain;
    errno = 0;
    qp = ibv_create_qp_ex(device.handle(), &attributes);
  }
  if (qp == nullptr) {
    return refused(fmt::format("ibv_create_qp ({} send slots, {} receive slots, {} SGEs, {} inline "
                               "bytes)",
                               options.send_depth, options.receive_depth, options.send_sge,
                               options.inline_bytes),
                   errno);
  }
  QueuePair made;
  made.qp_ = std::shared_ptr<ibv_qp>(
      qp, [pd = pd.share(), sends = send_cq.share(), receives = receive_cq.share(),
           shared = srq == nullptr ? nullptr : srq->share()](ibv_qp* q) {
        if (const int error = ibv_destroy_qp(q)) log_destruction("ibv_destroy_qp", error);
      });
  made.extended_ = extended ? ibv_qp_to_qp_ex(qp) : nullptr;
  made.transport_ = options.transport;
  made.port_ = device.port();
  made.reads_as_requester_ = device.limits().reads_as_requester;
  made.reads_as_responder_ = device.limits().reads_as_responder;
  made.granted_ = options;
  made.granted_.extended = extended;
  made.granted_.send_depth = attributes.cap.max_send_wr;
  made.granted_.send_sge = attributes.cap.max_send_sge;
  made.granted_.inline_bytes = attributes.cap.max_inline_data;
  if (own_receives) {
    made.granted_.receive_depth = attributes.cap.max_recv_wr;
    made.granted_.receive_sge = attributes.cap.max_recv_sge;
  }
  return made;
}

Result<void> QueuePair::connect(const RemoteEnd& remote, const ConnectOptions& options) {
  const auto step = [&](ibv_qp_attr& attributes, int mask, const char* name) -> Result<void> {
    if (const int error = ibv_modify_qp(handle(), &attributes, mask)) {
      return refused(fmt::format("ibv_modify_qp to {}", name), error);
    }
    return {};
  };
  const bool datagrams = transport_ == Transport::kUD;
  const bool reliable = is_reliable(transport_);
  ibv_qp_attr init{};
  init.qp_state = IBV_QPS_INIT;
  init.port_num = static_cast<std::uint8_t>(port_);
  int init_mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
  if (datagrams) {
    init.qkey = options.qkey;
    init_mask |= IBV_QP_QKEY;
  } else {
    if (options.remote_access) {
      init.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
      if (reliable) init.qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    }
    init_mask |= IBV_QP_ACCESS_FLAGS;
  }
  if (auto done = step(init, init_mask, "INIT"); !done) return done;

  ibv_qp_attr receive{};
  receive.qp_state = IBV_QPS_RTR;
  int receive_mask = IBV_QP_STATE;
  if (!datagrams) {
    receive.path_mtu = mtu_code(options.mtu_bytes);
    receive.dest_qp_num = remote.qp_number;
    receive.rq_psn = remote.psn;
    receive.ah_attr = way_to(remote, port_);
    receive_mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  }
  if (reliable && (target_ || transport_ != Transport::kXRC)) {
    receive.max_dest_rd_atomic =
        static_cast<std::uint8_t>(std::min({options.reads_outstanding, reads_as_responder_, 255U}));
    receive.min_rnr_timer = options.min_rnr_timer;
    receive_mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  }
  if (auto done = step(receive, receive_mask, "RTR"); !done || target_) return done;

  ibv_qp_attr send{};
  send.qp_state = IBV_QPS_RTS;
  send.sq_psn = options.own_psn;
  int send_mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
  if (reliable) {
    send.timeout = options.ack_timeout;
    send.retry_cnt = options.retry_count;
    send.rnr_retry = options.rnr_retry;
    send.max_rd_atomic =
        static_cast<std::uint8_t>(std::min({options.reads_outstanding, reads_as_requester_, 255U}));
    send_mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  }
  return step(send, send_mask, "RTS");
}

Result<void> QueuePair::leave_for(int state, const char* name) {
  ibv_qp_attr attributes{};
  attributes.qp_state = static_cast<ibv_qp_state>(state);
  if (const int error = ibv_modify_qp(handle(), &attributes, IBV_QP_STATE)) {
    return refused(fmt::format("ibv_modify_qp to {}", name), error);
  }
  return {};
}

Result<void> QueuePair::to_error() { return leave_for(IBV_QPS_ERR, "ERR"); }
Result<void> QueuePair::to_reset() { return leave_for(IBV_QPS_RESET, "RESET"); }

std::uint32_t QueuePair::number() const { return qp_->qp_num; }

Result<AddressHandle> AddressHandle::create(const Device& device, const ProtectionDomain& pd,
                                            const RemoteEnd& remote) {
  ibv_ah_attr way = way_to(remote, device.port());
  errno = 0;
  ibv_ah* ah = ibv_create_ah(pd.handle(), &way);
  if (ah == nullptr) return refused("ibv_create_ah", errno);
  AddressHandle made;
  made.ah_ = std::shared_ptr<ibv_ah>(ah, [pd = pd.share()](ibv_ah* a) {
    if (const int error = ibv_destroy_ah(a)) log_destruction("ibv_destroy_ah", error);
  });
  return made;
}

Result<MemoryWindow> MemoryWindow::create(const ProtectionDomain& pd) {
  errno = 0;
  ibv_mw* mw = ibv_alloc_mw(pd.handle(), IBV_MW_TYPE_2);
  if (mw == nullptr) return refused("ibv_alloc_mw of type 2", errno);
  MemoryWindow made;
  made.mw_ = std::shared_ptr<ibv_mw>(mw, [pd = pd.share()](ibv_mw* m) {
    if (const int error = ibv_dealloc_mw(m)) log_destruction("ibv_dealloc_mw", error);
  });
  return made;
}

std::uint32_t MemoryWindow::remote_key() const { return mw_->rkey; }
std::uint32_t MemoryWindow::next_key(std::uint32_t key) { return ibv_inc_rkey(key); }

}  // namespace greynic::verbs
