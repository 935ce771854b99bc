#include "greynic/verbs/endpoint.h"

#include <fmt/core.h>
#include <infiniband/verbs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "device/verbs_errors.h"
#include "greynic/verbs/peer_claims.h"
#include "peer/connection_manager.h"
#include "traffic/payload.h"

namespace greynic::verbs {
namespace {

constexpr std::uint32_t kMostWindows = 16;

/// Distance of two slots: cache lines are not shared, and a UD receive has room for its header.
std::uint64_t stride_of(const TrafficPlan& plan) {
  const std::uint64_t bytes =
      plan.largest_message() + (plan.transport == Transport::kUD ? kUdHeaderBytes : 0);
  return std::max<std::uint64_t>(64, (bytes + 63) / 64 * 64);
}

/// Receives have buffers of their own; the immediate value of a WRITE needs none.
bool fills_receives(Opcode operation) {
  return takes_receive(operation) && operation != Opcode::kWriteWithImm;
}

/// Places in memory for what may be under way in one lane. No more: each is a page or a cache line
/// that the next message would not find in the caches.
std::uint64_t places_needed(const TrafficPlan& plan) {
  return fills_receives(plan.operation) ? std::max(plan.send_depth, plan.receive_depth)
                                        : plan.send_depth;
}

std::uint64_t lanes_of_region(const TrafficPlan& plan, std::uint32_t region) {
  return (plan.qp_count - region % plan.qp_count + plan.mr_count - 1) / plan.mr_count;
}

/// What the kernel would give without swapping: free pages, and caches that it would drop for them.
std::uint64_t available_memory_bytes() {
  std::ifstream file("/proc/meminfo");
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with("MemAvailable:"))
      return std::strtoull(line.c_str() + 13, nullptr, 10) << 10;
  }
  return static_cast<std::uint64_t>(sysconf(_SC_AVPHYS_PAGES)) *
         static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

/// What each message under way costs at this end beside its bytes.
Result<void> room_for_books(const TrafficPlan& plan) {
  constexpr double kSlotBytes = 64;      // where it lies, here and over there, and when it began
  constexpr double kRequestBytes = 128;  // of a list that is posted at once
  const double elements = std::max(plan.sge_count, 1U);
  const double wanted = plan.qp_count * (kSlotBytes * static_cast<double>(places_needed(plan)) +
                                         plan.post_batch * (kRequestBytes + 16 * elements));
  const std::uint64_t available = available_memory_bytes();
  if (wanted <= 0.4 * static_cast<double>(available)) return {};
  return fail(ErrorCode::kRefused,
              fmt::format("keeping book of {} messages on each of {} QPs takes more than 40 % of "
                          "the memory that is available ({} MiB); lower qp_count or the depths",
                          places_needed(plan), plan.qp_count, available >> 20));
}

/// The least power of two of mr_bytes with which messages under way do not share bytes.
std::uint64_t enough_bytes(TrafficPlan plan) {
  plan.mr_bytes = 4096;
  while (slots_overlap(plan) && plan.mr_bytes < std::uint64_t{1} << 50) plan.mr_bytes *= 2;
  return plan.mr_bytes;
}

}  // namespace

std::vector<Slot> slots_of(const TrafficPlan& plan, std::uint32_t lane) {
  const std::uint64_t stride = stride_of(plan);
  const std::uint64_t depth = places_needed(plan);
  std::vector<Slot> slots;
  if (plan.mr_count > plan.qp_count) {
    // Round the lane's regions first, so that every region is in use all the time.
    std::vector<std::uint32_t> regions;
    for (std::uint32_t r = lane; r < plan.mr_count; r += plan.qp_count) regions.push_back(r);
    const std::uint64_t rounds =
        std::clamp<std::uint64_t>(plan.mr_bytes / stride, 1, 1 + depth / regions.size());
    for (std::uint64_t round = 0; round < rounds; ++round) {
      for (const std::uint32_t region : regions) slots.push_back({region, round * stride});
    }
    return slots;
  }
  const std::uint32_t region = lane % plan.mr_count;
  const std::uint64_t window = plan.mr_bytes / lanes_of_region(plan, region) / 64 * 64;
  if (window < stride) return {{region, 0}};
  const std::uint64_t base = (lane / plan.mr_count) * window;
  const std::uint64_t count = std::clamp<std::uint64_t>(window / stride, 1, depth);
  for (std::uint64_t i = 0; i < count; ++i) slots.push_back({region, base + i * stride});
  return slots;
}

bool slots_overlap(const TrafficPlan& plan) {
  const std::uint64_t lanes = plan.mr_count > plan.qp_count ? 1 : lanes_of_region(plan, 0);
  if (plan.mr_bytes / lanes / 64 * 64 < stride_of(plan)) return true;
  // Receives that are posted at the same time need buffers of their own.
  return fills_receives(plan.operation) && slots_of(plan, 0).size() < receives_per_lane(plan);
}

std::uint32_t windows_per_lane(const TrafficPlan& plan) {
  if (plan.operation != Opcode::kSendWithInv) return 0;
  return std::min({plan.receive_depth, plan.send_depth, kMostWindows});
}

std::uint32_t receives_per_lane(const TrafficPlan& plan) {
  return plan.operation == Opcode::kSendWithInv ? windows_per_lane(plan) : plan.receive_depth;
}

Endpoint::Endpoint() = default;
Endpoint::~Endpoint() = default;
Endpoint::Endpoint(Endpoint&&) noexcept = default;
Endpoint& Endpoint::operator=(Endpoint&&) noexcept = default;

Result<Endpoint> Endpoint::create(const Device& device, const TrafficPlan& plan,
                                  EndpointRole role) {
  Endpoint endpoint;
  endpoint.device_ = &device;
  endpoint.plan_ = plan;
  endpoint.role_ = role;
  endpoint.receive_bytes_ = static_cast<std::uint32_t>(
      plan.largest_message() + (plan.transport == Transport::kUD ? kUdHeaderBytes : 0));
  if (plan.fault == Fault::kReceiveLength) endpoint.receive_bytes_ /= 4;
  const auto port = device.port_state();
  if (!port) return pass_on(port);
  endpoint.port_ = *port;
  if (const auto no = impossible(plan, device.limits(), *port)) {
    return fail(ErrorCode::kRefused, *no);
  }
  if (plan.validate && slots_overlap(plan)) {
    return fail(
        ErrorCode::kRefused,
        fmt::format("validation needs bytes of its own for each message that may be under "
                    "way on {} QPs; with mr_bytes={} there is room for them{}",
                    plan.qp_count, enough_bytes(plan),
                    takes_receive(plan.operation)
                        ? fmt::format(", or lower receive_queue_depth ({})", plan.receive_depth)
                        : std::string()));
  }
  if (port->ethernet) {
    const auto entries = device.gids();
    if (!entries) return pass_on(entries);
    const auto gid = choose_gid(*entries, plan.gid_rule);
    if (!gid) return gid.error().while_doing("choosing a GID of " + device.name());
    endpoint.gid_ = *gid;
  }
  if (auto room = room_for_books(plan); !room) return pass_on(room);
  for (std::uint32_t lane = 0; lane < plan.qp_count; ++lane) {
    endpoint.slots_.push_back(slots_of(plan, lane));
  }
  auto pd = ProtectionDomain::create(device);
  if (!pd) return pass_on(pd);
  endpoint.pd_ = std::make_unique<ProtectionDomain>(std::move(*pd));
  if (auto done = endpoint.make_memory(); !done) return pass_on(done);
  if (auto done = endpoint.make_queues(); !done) return pass_on(done);
  if (plan.connection_manager) {
    auto manager = ConnectionManager::create(device, endpoint.gid_);
    if (!manager) return pass_on(manager);
    endpoint.manager_ = std::move(*manager);
    if (role.listens) {
      const auto where = endpoint.manager_->listen();
      if (!where) return pass_on(where);
      endpoint.listens_at_ = *where;
    }
  }
  return endpoint;
}

Result<const ProtectionDomain*> Endpoint::domain_under(
    Fault fault, std::optional<ProtectionDomain>& other) const {
  if (plan_.fault != fault) return pd_.get();
  auto made = ProtectionDomain::create(*device_);
  if (!made) return pass_on(made);
  other = std::move(*made);
  return &*other;
}

Result<void> Endpoint::make_memory() {
  const std::uint64_t sets = (role_.requests ? 1 : 0) + (role_.answers ? 1 : 0);
  const double wanted =
      static_cast<double>(sets) * plan_.mr_count * static_cast<double>(plan_.mr_bytes);
  const std::uint64_t available = available_memory_bytes();
  if (wanted > 0.8 * static_cast<double>(available)) {
    return fail(ErrorCode::kRefused,
                fmt::format("{} regions of {} bytes at each end are more than 80 % of the memory "
                            "that is available ({} MiB); lower mr_count or mr_bytes",
                            plan_.mr_count, plan_.mr_bytes, available >> 20));
  }
  const Fault elsewhere = role_.requests ? Fault::kLocalDomain : Fault::kRemoteDomain;
  std::optional<ProtectionDomain> other;
  const auto domain = domain_under(elsewhere, other);
  if (!domain) return pass_on(domain);
  const ProtectionDomain& pd = **domain;
  for (std::uint32_t i = 0; i < plan_.mr_count; ++i) {
    if (role_.requests) {
      auto region = MemoryRegion::create(pd, plan_.mr_bytes, {}, plan_.huge_pages);
      if (!region) return pass_on(region);
      local_.push_back(std::move(*region));
    }
    if (role_.answers) {
      const bool windows = plan_.operation == Opcode::kSendWithInv;
      const bool open = plan_.fault != Fault::kRemoteAccess;
      auto region = MemoryRegion::create(pd, plan_.mr_bytes,
                                         {.local_write = true,
                                          .remote_read = open,
                                          .remote_write = open,
                                          .remote_atomic = open && is_atomic(plan_.operation),
                                          .bind_window = windows},
                                         plan_.huge_pages);
      if (!region) return pass_on(region);
      target_.push_back(std::move(*region));
    }
  }
  // What travels carries the pattern; atomics count from zero.
  if (is_atomic(plan_.operation)) return {};
  const bool pulled = plan_.operation == Opcode::kRead;
  for (std::uint32_t lane = 0; lane < plan_.qp_count; ++lane) {
    for (std::uint32_t i = 0; i < slots_[lane].size(); ++i) {
      const Slot& slot = slots_[lane][i];
      const MemoryRegion* from = nullptr;
      if (pulled && role_.answers) from = &target_[slot.region];
      if (!pulled && role_.requests) from = &local_[slot.region];
      if (from == nullptr) continue;
      fill_payload(from->bytes().subspan(slot.offset, plan_.largest_message()), plan_.seed, lane,
                   i);
    }
  }
  return {};
}

Result<void> Endpoint::make_queues() {
  const bool events = plan_.completion != CompletionMode::kPolling;
  for (std::uint32_t i = 0; events && i < 2 * plan_.thread_count; ++i) {
    auto channel = CompletionChannel::create(*device_);
    if (!channel) return pass_on(channel);
    channels_.push_back(std::move(*channel));
  }
  if (plan_.transport == Transport::kXRC) {
    auto domain = XrcDomain::create(*device_);
    if (!domain) return pass_on(domain);
    xrc_domain_ = std::make_unique<XrcDomain>(std::move(*domain));
  } else if (plan_.shared_receive_queue && !plan_.srq_per_cq) {
    auto srq = SharedReceiveQueue::create(*pd_, std::max(plan_.receive_depth, 1U));
    if (!srq) return pass_on(srq);
    srqs_.push_back(std::move(*srq));
  }
  const bool rings = plan_.doorbell_per_thread && role_.requests;
  for (std::uint32_t i = 0; rings && i < plan_.thread_count; ++i) {
    auto pd = ProtectionDomain::create_for_thread(*device_, *pd_);
    if (!pd) return pass_on(pd);
    thread_pds_.push_back(std::move(*pd));
  }
  for (std::uint32_t first = 0; first < plan_.qp_count; first += plan_.qps_per_cq) {
    if (auto made = make_group(first); !made) return made;
  }
  std::sort(lane_by_number_.begin(), lane_by_number_.end());
  const std::uint64_t windows =
      role_.answers ? std::uint64_t{plan_.qp_count} * windows_per_lane(plan_) : 0;
  for (std::uint64_t i = 0; i < windows; ++i) {
    auto window = MemoryWindow::create(*pd_);
    if (!window) return pass_on(window);
    windows_.push_back(std::move(*window));
  }
  return {};
}

Result<void> Endpoint::make_group(std::uint32_t first_lane) {
  const std::uint32_t lanes = std::min(plan_.qps_per_cq, plan_.qp_count - first_lane);
  const bool receives = takes_receive(plan_.operation);
  // Room for all that can complete between two polls: an overrun loses completions for good.
  const std::uint64_t sends = std::uint64_t{lanes} * plan_.send_depth;
  const std::uint64_t arrivals = !receives ? 1
                                 : plan_.shared_receive_queue
                                     ? plan_.receive_depth
                                     : std::uint64_t{lanes} * plan_.receive_depth;
  const std::uint64_t deepest = std::max(sends, arrivals);
  if (deepest > device_->limits().cq_depth) {
    return fail(ErrorCode::kRefused,
                fmt::format("{} QPs on one CQ need {} entries; the device's limit is {}", lanes,
                            deepest, device_->limits().cq_depth));
  }
  Group group;
  group.first_lane = first_lane;
  group.lane_count = lanes;
  group.thread = static_cast<std::uint32_t>(groups_.size()) % plan_.thread_count;
  const auto send_entries = plan_.fault == Fault::kCqOverrun ? 1 : sends;
  auto send_cq = CompletionQueue::create(*device_, static_cast<std::uint32_t>(send_entries),
                                         channel(group.thread, CqSide::kSend));
  if (!send_cq) return pass_on(send_cq);
  auto receive_cq = CompletionQueue::create(*device_, static_cast<std::uint32_t>(arrivals),
                                            channel(group.thread, CqSide::kReceive));
  if (!receive_cq) return pass_on(receive_cq);
  if (plan_.cq_moderation != CqModeration{}) {
    for (CompletionQueue* cq : {&*send_cq, &*receive_cq}) {
      if (auto done = cq->moderate(plan_.cq_moderation); !done) return done;
    }
  }
  group.send_cq = std::move(*send_cq);
  group.receive_cq = std::move(*receive_cq);
  if (xrc_domain_ && role_.answers && receives) {
    auto srq = SharedReceiveQueue::create_xrc(*device_, *pd_, *xrc_domain_, group.receive_cq,
                                              plan_.receive_depth);
    if (!srq) return pass_on(srq);
    const auto number = srq->number();
    if (!number) return pass_on(number);
    srq_numbers_.push_back(*number);
    srqs_.push_back(std::move(*srq));
  }
  if (!xrc_domain_ && plan_.shared_receive_queue && plan_.srq_per_cq) {
    auto srq = SharedReceiveQueue::create(*pd_, std::max(plan_.receive_depth, 1U));
    if (!srq) return pass_on(srq);
    srqs_.push_back(std::move(*srq));
  }
  for (std::uint32_t lane = first_lane; lane < first_lane + lanes; ++lane) {
    if (auto made = make_qp(group, lane); !made) {
      return made.error().while_doing(
          fmt::format("creating QP {} of {}", lane + 1, plan_.qp_count));
    }
  }
  groups_.push_back(std::move(group));
  return {};
}

Result<void> Endpoint::make_qp(const Group& group, std::uint32_t lane) {
  if (xrc_domain_ && role_.answers) {
    auto target = QueuePair::create_xrc_target(*device_, *xrc_domain_);
    if (!target) return pass_on(target);
    lane_by_number_.emplace_back(target->number(), lane);
    xrc_targets_.push_back(std::move(*target));
  }
  if (xrc_domain_ && !role_.requests) return {};
  // rdma-core 44 sums up the length of an SGE list wrongly when a Soft-RoCE QP is posted to by
  // ibv_wr_set_sge_list (it adds the first length each time): a known trait, kept out of the way.
  const bool lists_are_cut = plan_.sge_count > 1 && device_->driver().starts_with("software");
  const QueuePairOptions options{.transport = plan_.transport,
                                 .send_depth = plan_.send_depth,
                                 .receive_depth = std::max(plan_.receive_depth, 1U),
                                 .send_sge = std::max(plan_.sge_count, 1U),
                                 .receive_sge = 1,
                                 .inline_bytes = plan_.inline_bytes,
                                 .extended = plan_.extended_posting && !lists_are_cut};
  const SharedReceiveQueue* const srq = xrc_domain_ || srqs_.empty() ? nullptr : &srqs_.back();
  const ProtectionDomain& pd = thread_pds_.empty() ? *pd_ : thread_pds_[group.thread];
  auto qp = QueuePair::create(*device_, pd, group.send_cq, group.receive_cq, srq, options);
  if (!qp) return pass_on(qp);
  if (!xrc_domain_) lane_by_number_.emplace_back(qp->number(), lane);
  qps_.push_back(std::move(*qp));
  return {};
}

EndpointDescription Endpoint::describe() const {
  EndpointDescription description;
  description.gid = gid_.gid;
  description.lid = port_.lid;
  description.ethernet = port_.ethernet;
  description.listens_at = listens_at_;
  description.psn = static_cast<std::uint32_t>(plan_.seed * 2654435761U) & 0xffffff;
  for (const QueuePair& qp : qps_) description.qp_numbers.push_back(qp.number());
  for (const QueuePair& qp : xrc_targets_) description.xrc_targets.push_back(qp.number());
  description.srq_numbers = srq_numbers_;
  for (const MemoryRegion& region : target_) {
    description.target_addresses.push_back(reinterpret_cast<std::uintptr_t>(region.address()));
    description.target_keys.push_back(region.remote_key());
  }
  for (const MemoryWindow& window : windows_) {
    description.window_keys.push_back(window.remote_key());
  }
  return description;
}

Result<void> Endpoint::connect(const EndpointDescription& remote, const ConnectOptions& options) {
  if (auto good = check_description(remote, plan_, role_); !good) return good;
  if (const GidEntry there{.gid = remote.gid};
      port_.ethernet && remote.ethernet && gid_.is_ipv4() != there.is_ipv4()) {
    return fail(ErrorCode::kRefused,
                fmt::format("GID {} of this end and {} of the peer are of different families; "
                            "choose alike by gid= and peer_gid= (an agent: --gid)",
                            gid_.address(), there.address()));
  }
  remote_ = remote;
  // A QP that was never connected drops whatever arrives.
  if (plan_.fault == Fault::kPeerSilent && role_.answers) return {};
  auto connected = manager_ ? connect_by_manager(options) : connect_directly(options);
  if (!connected) return connected;
  return role_.answers && takes_receive(plan_.operation) ? fill_receive_queues() : Result<void>();
}

Result<void> Endpoint::connect_by_manager(const ConnectOptions& options) {
  const auto ready = [&](std::uint32_t lane, const RemoteEnd& end, std::uint32_t own_psn) {
    ConnectOptions own = options;
    own.mtu_bytes = plan_.mtu_bytes;
    own.own_psn = own_psn;
    return qps_[lane].connect(end, own);
  };
  const std::vector<std::uint32_t> numbers = describe().qp_numbers;
  if (role_.listens) return manager_->accept(numbers, plan_.stall_limit, ready);
  return manager_->connect(remote_.gid, remote_.listens_at, numbers, plan_.stall_limit, ready);
}

RemoteEnd Endpoint::end_of(std::uint32_t lane, std::uint32_t qp_number) const {
  return {.gid = remote_.gid,
          .lid = remote_.lid,
          .qp_number = qp_number,
          .psn = (remote_.psn + lane) & 0xffffff,
          .local_gid_index = gid_.index,
          .over_ethernet = port_.ethernet};
}

Result<void> Endpoint::connect_directly(const ConnectOptions& options) {
  const std::uint32_t own_psn = describe().psn;
  ConnectOptions own = options;
  own.mtu_bytes = plan_.mtu_bytes;
  if (plan_.fault == Fault::kRemoteDisabled && role_.answers) own.remote_access = false;
  const std::vector<std::uint32_t>& ends = xrc_domain_ ? remote_.xrc_targets : remote_.qp_numbers;
  for (std::uint32_t lane = 0; lane < plan_.qp_count; ++lane) {
    own.own_psn = (own_psn + lane) & 0xffffff;
    const auto failed = [&](const Error& error) {
      return error.while_doing(fmt::format("connecting QP {} of {}", lane + 1, plan_.qp_count));
    };
    if (!xrc_targets_.empty()) {
      const RemoteEnd sender = end_of(lane, remote_.qp_numbers[lane]);
      if (auto done = xrc_targets_[lane].connect(sender, own); !done) return failed(done.error());
    }
    if (qps_.empty()) continue;
    const RemoteEnd end = end_of(lane, ends[lane]);
    if (auto done = qps_[lane].connect(end, own); !done) return failed(done.error());
    if (plan_.transport == Transport::kUD) {
      std::optional<ProtectionDomain> other;
      const auto domain = domain_under(Fault::kHandleDomain, other);
      if (!domain) return pass_on(domain);
      auto handle = AddressHandle::create(*device_, **domain, end);
      if (!handle) return pass_on(handle);
      address_handles_.push_back(std::move(*handle));
    }
  }
  return {};
}

ibv_ah* Endpoint::address_handle(std::uint32_t lane) const {
  return address_handles_.empty() ? nullptr : address_handles_[lane].handle();
}

MemoryWindow& Endpoint::window(std::uint32_t lane, std::uint32_t index) {
  return windows_[std::size_t{lane} * windows_per_lane(plan_) + index];
}

CompletionChannel* Endpoint::channel(std::uint32_t thread, CqSide side) {
  if (channels_.empty()) return nullptr;
  return &channels_[2 * thread + (side == CqSide::kReceive ? 1 : 0)];
}

std::vector<int> Endpoint::files() const {
  std::vector<int> files{device_->handle()->cmd_fd};
  for (const CompletionChannel& channel : channels_) files.push_back(channel.handle()->fd);
  return files;
}

std::uint32_t Endpoint::lane_of_qp(std::uint32_t qp_number) const {
  const auto found = std::lower_bound(lane_by_number_.begin(), lane_by_number_.end(),
                                      std::pair{qp_number, std::uint32_t{0}});
  return found->second;
}

std::uint32_t Endpoint::remote_srq(std::uint32_t lane) const {
  return remote_.srq_numbers.empty() ? 0 : remote_.srq_numbers[lane / plan_.qps_per_cq];
}

}  // namespace greynic::verbs
