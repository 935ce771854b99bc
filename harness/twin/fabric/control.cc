#include <fmt/core.h>

#include <algorithm>
#include <bit>

#include "fabric/simulation.h"

/// Objects: who makes them, who uses them, and the state machine of QPs.

namespace greynic::twin::fabric {
namespace {

constexpr std::uint64_t kMostBytes = 1ULL << 46;
constexpr std::uint32_t kMostDepth = 1U << 20, kMostElements = 64;

tl::unexpected<Error> no_such(const char* what) {
  return fail(ErrorCode::kBadInput, fmt::format("no such {}: it was never made, or is gone", what));
}

tl::unexpected<Error> in_use(const char* what, std::uint32_t users, const char* by) {
  return fail(
      ErrorCode::kRefused,
      fmt::format("EBUSY: the {} is in use by {} {}; destroy these first", what, users, by));
}

const char* name_of(QpState state) {
  static constexpr const char* kNames[] = {"RESET", "INIT", "RTR", "RTS", "ERR"};
  return kNames[static_cast<std::size_t>(state)];
}

}  // namespace

Result<DomainId> Simulation::create_domain(HostId host) {
  if (!is_host(host)) return no_such("host");
  const std::uint32_t id = domains_.add();
  domains_.find(id)->host = host;
  return DomainId{id};
}

Result<RegionId> Simulation::add_region(DomainId domain, std::uint64_t begin, std::uint64_t bytes,
                                        std::uint8_t access, std::uint64_t page_bytes) {
  Domain* owner = domains_.find(domain.id);
  if (owner == nullptr) return no_such("protection domain");
  if (bytes == 0 || bytes > kMostBytes) {
    return fail(ErrorCode::kBadInput, fmt::format("EINVAL: a region of {} bytes", bytes));
  }
  if (page_bytes < 4096 || !std::has_single_bit(page_bytes)) {
    return fail(
        ErrorCode::kBadInput,
        fmt::format("EINVAL: pages of {} bytes; 4096 or a larger power of two", page_bytes));
  }
  const bool remote_writes = (access & (access::kRemoteWrite | access::kRemoteAtomic)) != 0;
  if (remote_writes && (access & access::kLocalWrite) == 0) {
    return fail(ErrorCode::kBadInput,
                "EINVAL: a region that others may write must allow local writes too");
  }
  const std::uint32_t id = memory_.add();
  Memory& region = *memory_.find(id);
  HostPart& host = hosts_[owner->host];
  region.host = owner->host;
  region.domain = domain.id;
  region.begin = begin;
  region.bytes = bytes;
  region.access = access;
  region.page_bytes = page_bytes;
  region.first_page = host.page_count;
  host.page_count += (begin % page_bytes + bytes + page_bytes - 1) / page_bytes;
  host.stale = true;
  ++owner->users;
  return RegionId{id};
}

Result<RegionId> Simulation::register_memory(DomainId domain, std::span<std::byte> memory,
                                             std::uint8_t access, std::uint64_t page_bytes) {
  return add_region(domain, reinterpret_cast<std::uintptr_t>(memory.data()), memory.size(), access,
                    page_bytes);
}

Result<RegionId> Simulation::register_counted(DomainId domain, std::uint64_t bytes,
                                              std::uint8_t access, std::uint64_t page_bytes) {
  if (real()) {
    return fail(ErrorCode::kUnsupported,
                "memory that nobody has needs a fabric with bytes = Bytes::kCounted");
  }
  auto region = add_region(domain, counted_address_, bytes, access, page_bytes);
  if (region) counted_address_ += (bytes + page_bytes) / page_bytes * page_bytes;
  return region;
}

std::uint64_t Simulation::region_address(RegionId region) const {
  const Memory* memory = memory_.find(region.id);
  return memory != nullptr && !memory->is_window ? memory->begin : 0;
}

std::uint32_t Simulation::key(RegionId region) const {
  const Memory* memory = memory_.find(region.id);
  return memory != nullptr && !memory->is_window ? region.id << 8 : 0;
}

Result<WindowId> Simulation::create_window(DomainId domain) {
  Domain* owner = domains_.find(domain.id);
  if (owner == nullptr) return no_such("protection domain");
  const std::uint32_t id = memory_.add();
  Memory& window = *memory_.find(id);
  window.host = owner->host;
  window.domain = domain.id;
  window.is_window = true;
  window.bound = false;
  ++owner->users;
  return WindowId{id};
}

std::uint32_t Simulation::key(WindowId window) const {
  const Memory* memory = memory_.find(window.id);
  return memory != nullptr && memory->is_window ? window.id << 8 | memory->tag : 0;
}

Result<CqId> Simulation::create_cq(HostId host, CqSpec spec) {
  if (!is_host(host)) return no_such("host");
  if (spec.depth == 0 || spec.depth > 4 * kMostDepth) {
    return fail(ErrorCode::kBadInput, fmt::format("EINVAL: a CQ of {} entries", spec.depth));
  }
  const std::uint32_t id = cqs_.add();
  cqs_.find(id)->id = id;
  cqs_.find(id)->host = host;
  cqs_.find(id)->spec = std::move(spec);
  return CqId{id};
}

Result<SrqId> Simulation::create_srq(DomainId domain, std::uint32_t depth, std::uint32_t limit) {
  Domain* owner = domains_.find(domain.id);
  if (owner == nullptr) return no_such("protection domain");
  if (depth == 0 || depth > kMostDepth || limit > depth) {
    return fail(ErrorCode::kBadInput,
                fmt::format("EINVAL: an SRQ of {} receives with a limit of {}", depth, limit));
  }
  const std::uint32_t id = srqs_.add();
  Srq& srq = *srqs_.find(id);
  srq.id = id;
  srq.host = owner->host;
  srq.domain = domain.id;
  srq.depth = depth;
  srq.limit = limit;
  ++owner->users;
  return SrqId{id};
}

Result<AddressHandleId> Simulation::create_address_handle(DomainId domain, HostId to) {
  Domain* owner = domains_.find(domain.id);
  if (owner == nullptr) return no_such("protection domain");
  if (!is_host(to)) return no_such("host");
  const std::uint32_t id = handles_.add(AddressHandle{owner->host, domain.id, to});
  ++owner->users;
  return AddressHandleId{id};
}

Result<void> Simulation::check_qp_spec(const QpSpec& spec, HostId host) const {
  const Cq* send = cqs_.find(spec.send_cq.id);
  const Cq* receive = cqs_.find(spec.receive_cq.id);
  if (send == nullptr || receive == nullptr) return no_such("completion queue");
  if (send->host != host || receive->host != host) {
    return fail(ErrorCode::kBadInput, "EINVAL: a completion queue of another host");
  }
  const Srq* srq = srqs_.find(spec.srq.id);
  if (spec.srq.id != 0 && srq == nullptr) return no_such("shared receive queue");
  if (srq != nullptr && srq->host != host) {
    return fail(ErrorCode::kBadInput, "EINVAL: a shared receive queue of another host");
  }
  if (spec.transport == Transport::kXRC) {
    return fail(ErrorCode::kUnsupported, "EOPNOTSUPP: XRC is not modelled; use RC, UC or UD");
  }
  if (spec.send_depth == 0 || spec.send_depth > kMostDepth || spec.receive_depth > kMostDepth) {
    return fail(ErrorCode::kBadInput,
                fmt::format("EINVAL: queues of {} and {} requests; at most {}", spec.send_depth,
                            spec.receive_depth, kMostDepth));
  }
  if (spec.send_elements == 0 ||
      std::max(spec.send_elements, spec.receive_elements) > kMostElements) {
    return fail(ErrorCode::kBadInput,
                fmt::format("EINVAL: {} and {} SGEs; 1 to {}", spec.send_elements,
                            spec.receive_elements, kMostElements));
  }
  const auto& inlines = hosts_[host].type->p.max_inline_bytes;
  const double most = std::max(inlines[Operation::kWrite], inlines[Operation::kSend]);
  if (spec.inline_bytes > most) {
    return fail(ErrorCode::kBadInput,
                fmt::format("EINVAL: {} inline bytes; the RNIC takes {}", spec.inline_bytes, most));
  }
  return {};
}

Result<QpId> Simulation::create_qp(const QpSpec& spec) {
  Domain* owner = domains_.find(spec.domain.id);
  if (owner == nullptr) return no_such("protection domain");
  if (auto fine = check_qp_spec(spec, owner->host); !fine) return pass_on(fine);
  const std::uint32_t id = qps_.add();
  Qp& qp = *qps_.find(id);
  HostPart& host = hosts_[owner->host];
  qp.id = id;
  qp.number = static_cast<std::uint32_t>(numbers_.size());
  numbers_.push_back(id);
  qp.host = owner->host;
  qp.spec = spec;
  qp.ordinal = host.qp_count++;
  qp.first_wqe = host.wqe_count;
  host.wqe_count += spec.send_depth;
  host.stale = true;
  qp.send_cq = cqs_.find(spec.send_cq.id);
  qp.receive_cq = cqs_.find(spec.receive_cq.id);
  qp.srq = srqs_.find(spec.srq.id);
  ++owner->users;
  ++qp.send_cq->users;
  ++qp.receive_cq->users;
  if (qp.srq != nullptr) ++qp.srq->users;
  return QpId{qp.number};
}

Result<void> Simulation::destroy(DomainId domain) {
  Domain* owner = domains_.find(domain.id);
  if (owner == nullptr) return no_such("protection domain");
  if (owner->users > 0) return in_use("protection domain", owner->users, "objects");
  domains_.remove(domain.id);
  return {};
}

Result<void> Simulation::destroy(RegionId region) {
  const Memory* memory = memory_.find(region.id);
  if (memory == nullptr || memory->is_window) return no_such("memory region");
  if (memory->windows > 0) return in_use("memory region", memory->windows, "memory windows");
  // What has come is in memory before it is given back.
  for (std::uint32_t id = 1; unplaced_ > 0 && id < qps_.next_id(); ++id) {
    if (Qp* qp = qps_.find(id)) place(*qp);
  }
  --domains_.find(memory->domain)->users;
  memory_.remove(region.id);
  return {};
}

Result<void> Simulation::destroy(WindowId window) {
  const Memory* memory = memory_.find(window.id);
  if (memory == nullptr || !memory->is_window) return no_such("memory window");
  if (memory->bound) --memory_.find(memory->region)->windows;
  --domains_.find(memory->domain)->users;
  memory_.remove(window.id);
  return {};
}

Result<void> Simulation::destroy(CqId cq) {
  const Cq* found = cqs_.find(cq.id);
  if (found == nullptr) return no_such("completion queue");
  if (found->users > 0) return in_use("completion queue", found->users, "queues of QPs");
  cqs_.remove(cq.id);
  return {};
}

Result<void> Simulation::destroy(SrqId srq) {
  const Srq* found = srqs_.find(srq.id);
  if (found == nullptr) return no_such("shared receive queue");
  if (found->users > 0) return in_use("shared receive queue", found->users, "QPs");
  --domains_.find(found->domain)->users;
  srqs_.remove(srq.id);
  return {};
}

Result<void> Simulation::destroy(AddressHandleId handle) {
  const AddressHandle* found = handles_.find(handle.id);
  if (found == nullptr) return no_such("address handle");
  --domains_.find(found->domain)->users;
  handles_.remove(handle.id);
  return {};
}

/// Its completions go with it; what is on its way finds nobody.
Result<void> Simulation::destroy(QpId id) {
  Qp* qp = qp_numbered(id.id);
  if (qp == nullptr) return no_such("queue pair");
  --domains_.find(qp->spec.domain.id)->users;
  --qp->send_cq->users;
  --qp->receive_cq->users;
  if (qp->srq != nullptr) --qp->srq->users;
  numbers_[id.id] = 0;
  let_go(*qp);
  return {};
}

/// What is on its way to the old one finds nobody. Its place in a unit's ring goes by itself.
void Simulation::let_go(Qp& qp) {
  place(qp);
  qp.gone = true;
  if (!qp.requests.in_ring && !qp.answers.in_ring) qps_.remove(qp.id);
}

/// All that was queued is forgotten: another QP takes the number.
Qp& Simulation::reset(Qp& old) {
  const std::uint32_t id = qps_.add();
  Qp& qp = *qps_.find(id);
  qp.id = id;
  qp.number = old.number;
  qp.host = old.host;
  qp.ordinal = old.ordinal;
  qp.first_wqe = old.first_wqe;
  qp.spec = old.spec;
  qp.send_cq = old.send_cq;
  qp.receive_cq = old.receive_cq;
  qp.srq = old.srq;
  qp.thread = old.thread;
  qp.lock = std::move(old.lock);
  numbers_[qp.number] = id;
  let_go(old);
  return qp;
}

Result<void> Simulation::modify(QpId id, QpState to, const QpAttributes& attributes) {
  Qp* qp = qp_numbered(id.id);
  if (qp == nullptr) return no_such("queue pair");
  if (to == QpState::kError) {
    if (qp->state == QpState::kReset)
      return fail(ErrorCode::kBadInput, "EINVAL: from RESET to ERR");
    to_error(*qp);
    return {};
  }
  if (to == QpState::kReset) {
    (void)reset(*qp);
    return {};
  }
  if (static_cast<int>(to) != static_cast<int>(qp->state) + 1) {
    return fail(ErrorCode::kBadInput,
                fmt::format("EINVAL: from {} to {}", name_of(qp->state), name_of(to)));
  }
  if (to == QpState::kInit) {
    qp->attributes.access = attributes.access;
  } else if (to == QpState::kReadyToReceive) {
    const bool known_mtu = attributes.mtu_bytes >= 256 && attributes.mtu_bytes <= 4096 &&
                           std::has_single_bit(attributes.mtu_bytes);
    if (!known_mtu) {
      return fail(
          ErrorCode::kBadInput,
          fmt::format("EINVAL: an MTU of {}; 256, 512, 1024, 2048 or 4096", attributes.mtu_bytes));
    }
    if (qp->spec.transport != Transport::kUD && !is_host(attributes.peer_host)) {
      return no_such("host");
    }
    const std::uint8_t access = qp->attributes.access;
    qp->attributes = attributes;
    qp->attributes.access = access;
  } else {
    const QpAttributes& a = attributes;
    const auto within = [](int value, int most) { return value >= 0 && value <= most; };
    if (!within(a.ack_timeout, 31) || !within(a.retry_count, 7) || !within(a.rnr_retry, 7)) {
      return fail(ErrorCode::kBadInput,
                  "EINVAL: ack_timeout is 0 to 31, retry_count and rnr_retry 0 to 7");
    }
    qp->attributes.ack_timeout = a.ack_timeout;
    qp->attributes.retry_count = a.retry_count;
    qp->attributes.rnr_retry = a.rnr_retry;
    qp->attributes.most_reads = a.most_reads;
  }
  qp->state = to;
  return {};
}

Result<QpState> Simulation::state(QpId id) const {
  const Qp* qp = qp_numbered(id.id);
  if (qp == nullptr) return no_such("queue pair");
  return qp->state;
}

void Simulation::on_async_event(HostId host, std::function<void(const AsyncEvent&)> call) {
  if (is_host(host)) hosts_[host].on_async = std::move(call);
}

Result<void> Simulation::watch(RegionId region, std::uint32_t thread,
                               std::function<void(std::uint64_t)> call) {
  Memory* memory = memory_.find(region.id);
  if (memory == nullptr || memory->is_window) return no_such("memory region");
  memory->watch = call ? std::make_unique<Watch>(Watch{thread, std::move(call)}) : nullptr;
  return {};
}

}  // namespace greynic::twin::fabric
