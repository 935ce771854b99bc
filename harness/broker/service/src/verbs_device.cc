#include "verbs_device.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <infiniband/verbs.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace greynic::broker {
namespace {

/// A receive shows up so much later than it was acknowledged at most. Trips over PCIe take a
/// microsecond; a busy machine may hold a software RNIC's thread for some milliseconds.
constexpr std::chrono::milliseconds kDrain{20};
constexpr std::uint32_t kQueueDepth = 16384;
/// So short a piece is handed over with its request: the RNIC need not fetch it.
constexpr std::uint32_t kInlineBytes = 128;
/// 0.5 s. A software RNIC on a busy machine acknowledges late, and each timeout sends all again that
/// was not acknowledged: with 67 ms a lane stood still more often than it sent.
constexpr std::uint8_t kAckTimeout = 17;

/// A QpAddress in the order of its bytes.
struct WireAddress {
  verbs::Gid gid{};
  std::uint32_t qp = 0, psn = 0, key = 0;
  std::uint16_t lid = 0, mtu_bytes = 0;
};
static_assert(sizeof(WireAddress) <= sizeof(QpAddress));

Completion converted(const ibv_wc& from, bool is_receive) {
  Completion to{.id = from.wr_id, .qp = from.qp_num, .is_receive = is_receive};
  switch (from.status) {
    case IBV_WC_SUCCESS:
      to.status = Status::kDone;
      break;
    case IBV_WC_WR_FLUSH_ERR:
      to.status = Status::kFlushed;
      return to;
    case IBV_WC_RETRY_EXC_ERR:
    case IBV_WC_RNR_RETRY_EXC_ERR:
    case IBV_WC_FATAL_ERR:
    case IBV_WC_RESP_TIMEOUT_ERR:
      to.status = Status::kUnreachable;
      return to;
    default:
      to.status = Status::kGuilty;
      return to;
  }
  to.written = is_receive && from.opcode == IBV_WC_RECV_RDMA_WITH_IMM;
  to.has_immediate = (from.wc_flags & IBV_WC_WITH_IMM) != 0;
  to.immediate = to.has_immediate ? be32toh(from.imm_data) : 0;
  to.bytes = from.byte_len;
  return to;
}

void fill(ibv_send_wr& to, ibv_sge* elements, const Work& work, std::uint32_t inline_bytes) {
  std::uint32_t bytes = 0;
  for (std::size_t p = 0; p < work.piece_count; ++p) {
    elements[p] = {work.pieces[p].address, work.pieces[p].bytes, work.pieces[p].local_key};
    bytes += work.pieces[p].bytes;
  }
  to.wr_id = work.id;
  to.sg_list = elements;
  to.num_sge = work.piece_count;
  to.send_flags = work.signaled ? IBV_SEND_SIGNALED : 0;
  if (work.verb != Verb::kRead && bytes <= inline_bytes) to.send_flags |= IBV_SEND_INLINE;
  to.imm_data = htobe32(work.immediate);
  if (work.verb == Verb::kRead) {
    to.opcode = IBV_WR_RDMA_READ;
  } else if (work.verb == Verb::kWrite) {
    to.opcode = work.has_immediate ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
  } else {
    to.opcode = work.has_immediate ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND;
  }
  to.wr.rdma.remote_addr = work.remote_address;
  to.wr.rdma.rkey = work.remote_key;
}

std::uint32_t random_word(std::uint32_t otherwise) {
  std::uint32_t word = 0;
  return getrandom(&word, sizeof word, 0) == sizeof word ? word : otherwise;
}

void never_block(int fd) { fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK); }

}  // namespace

struct VerbsDevice::Requests {
  std::vector<ibv_send_wr> requests;
  std::vector<std::array<ibv_sge, 2>> elements;
};

VerbsDevice::VerbsDevice(verbs::Device device, verbs::GidEntry gid, const verbs::PortState& port)
    : device_(std::move(device)),
      gid_(std::move(gid)),
      port_(port),
      requests_(std::make_unique<Requests>()) {}

Result<std::unique_ptr<VerbsDevice>> VerbsDevice::open(const std::string& name, int port,
                                                       const std::string& gid_rule) {
  auto device = verbs::Device::open(name, port);
  if (!device) return pass_on(device);
  if (device->handle()->device->transport_type == IBV_TRANSPORT_IWARP) {
    return fail(ErrorCode::kUnsupported,
                fmt::format("{}: iWARP connects by rdma_cm only, which the broker does not use; "
                            "name a RoCE or InfiniBand device",
                            name));
  }
  auto state = device->port_state();
  if (!state) return pass_on(state);
  if (!state->active) {
    return fail(ErrorCode::kMissing,
                fmt::format("{}: port {} is not active; bring its link up", name, port));
  }
  auto gids = device->gids();
  if (!gids) return pass_on(gids);
  auto gid = verbs::choose_gid(*gids, gid_rule);
  if (!gid) return gid.error().while_doing(name);
  std::unique_ptr<VerbsDevice> made(new VerbsDevice(std::move(*device), *gid, *state));
  made->description_ = fmt::format("{} port {}, {}", name, port, gid->address());
  if (auto queues = made->make_queues(); !queues) return queues.error().while_doing(name);
  return made;
}

Result<void> VerbsDevice::make_queues() {
  const verbs::DeviceLimits& limits = device_.limits();
  auto domain = verbs::ProtectionDomain::create(device_);
  if (!domain) return pass_on(domain);
  domain_ = std::move(*domain);
  auto channel = verbs::CompletionChannel::create(device_);
  if (!channel) return pass_on(channel);
  channel_ = std::move(*channel);
  never_block(channel_.handle()->fd);
  never_block(device_.handle()->async_fd);
  for (verbs::CompletionQueue* cq : {&send_cq_, &receive_cq_}) {
    auto made =
        verbs::CompletionQueue::create(device_, std::min(kQueueDepth, limits.cq_depth), &channel_);
    if (!made) return pass_on(made);
    *cq = std::move(*made);
  }
  auto srq = verbs::SharedReceiveQueue::create(domain_, std::min(kQueueDepth, limits.srq_depth));
  if (!srq) return pass_on(srq);
  srq_ = std::move(*srq);
  return {};
}

VerbsDevice::~VerbsDevice() {
  for (const auto& [key, region] : regions_) ibv_dereg_mr(region);
}

Result<Memory> VerbsDevice::register_memory(std::span<std::byte> memory, Access access) {
  const int flags = access == Access::kRead
                        ? IBV_ACCESS_REMOTE_READ
                        : IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  errno = 0;
  ibv_mr* region = ibv_reg_mr(domain_.handle(), memory.data(), memory.size(), flags);
  if (region == nullptr) {
    return fail(ErrorCode::kRefused,
                fmt::format("{}: ibv_reg_mr of {} bytes: {}; raise the limit of locked memory "
                            "(ulimit -l)",
                            device_.name(), memory.size(), std::strerror(errno)));
  }
  regions_[region->lkey] = region;
  return Memory{reinterpret_cast<std::uint64_t>(memory.data()), region->lkey, region->rkey};
}

void VerbsDevice::deregister(const Memory& memory) {
  const auto found = regions_.find(memory.local_key);
  if (found == regions_.end()) return;
  ibv_dereg_mr(found->second);
  regions_.erase(found);
}

Result<QpNumber> VerbsDevice::create_qp(Transport transport, std::uint32_t send_depth,
                                        std::uint32_t receive_depth) {
  verbs::QueuePairOptions options{.transport = transport,
                                  .send_depth = send_depth,
                                  .receive_depth = receive_depth,
                                  .send_sge = 2,
                                  .inline_bytes = kInlineBytes,
                                  .extended = false};
  const auto create = [&] {
    return verbs::QueuePair::create(device_, domain_, send_cq_, receive_cq_,
                                    transport == Transport::kRC ? &srq_ : nullptr, options);
  };
  auto made = create();
  if (!made) {
    options.inline_bytes = 0;
    made = create();
  }
  if (!made) return pass_on(made);
  const QpNumber number = made->number();
  Qp qp{std::move(*made), random_word(number) & 0xffffff};
  // The upper bit means another key in a request.
  qp.key = random_word(number) & 0x7fffffff;
  qps_.insert_or_assign(number, std::move(qp));
  return number;
}

QpAddress VerbsDevice::address_of(QpNumber qp) const {
  const Qp& own = qps_.at(qp);
  const WireAddress wire{gid_.gid, qp,        own.psn,
                         own.key,  port_.lid, static_cast<std::uint16_t>(port_.active_mtu_bytes)};
  QpAddress address{};
  std::memcpy(address.data(), &wire, sizeof wire);
  return address;
}

Result<void> VerbsDevice::connect(QpNumber qp, const QpAddress& peer) {
  WireAddress wire;
  std::memcpy(&wire, peer.data(), sizeof wire);
  constexpr std::array<std::uint16_t, 5> kMtus = {256, 512, 1024, 2048, 4096};
  if (std::find(kMtus.begin(), kMtus.end(), wire.mtu_bytes) == kMtus.end() || wire.qp > 0xffffff ||
      wire.psn > 0xffffff) {
    return fail(ErrorCode::kBadInput, "the address of a QP is garbled");
  }
  Qp& own = qps_.at(qp);
  const verbs::RemoteEnd remote{.gid = wire.gid,
                                .lid = wire.lid,
                                .qp_number = wire.qp,
                                .psn = wire.psn,
                                .local_gid_index = gid_.index,
                                .over_ethernet = port_.ethernet};
  verbs::ConnectOptions options;
  options.mtu_bytes = std::min<std::uint32_t>(port_.active_mtu_bytes, wire.mtu_bytes);
  options.own_psn = own.psn;
  options.ack_timeout = kAckTimeout;
  options.qkey = own.key;
  if (own.pair.transport() == Transport::kUD) {
    auto way = verbs::AddressHandle::create(device_, domain_, remote);
    if (!way) return pass_on(way);
    own.way = std::move(*way);
    own.far_qp = wire.qp;
    own.far_key = wire.key;
  }
  return own.pair.connect(remote, options);
}

void VerbsDevice::to_error(QpNumber qp) {
  (void)qps_.at(qp).pair.to_error();
  draining_.emplace_back(Clock::now() + kDrain, qp);
}

void VerbsDevice::destroy(QpNumber qp) {
  std::erase_if(draining_, [&](const auto& entry) { return entry.second == qp; });
  // A QP takes its completions with it, and with them the shared receives that it has used.
  (void)qps_.at(qp).pair.to_error();
  (void)take_completions(saved_, true);
  for (Completion& one : saved_) {
    if (one.qp == qp) one.qp = 0;  // the number may be given out again
  }
  qps_.erase(qp);
}

std::size_t VerbsDevice::post(QpNumber qp, std::span<const Work> list) {
  if (list.size() > requests_->requests.size()) {
    requests_->requests.resize(list.size());
    requests_->elements.resize(list.size());
  }
  ibv_send_wr* const requests = requests_->requests.data();
  const Qp& own = qps_.at(qp);
  const std::uint32_t inline_bytes = std::min(kInlineBytes, own.pair.granted().inline_bytes);
  for (std::size_t i = 0; i < list.size(); ++i) {
    fill(requests[i], requests_->elements[i].data(), list[i], inline_bytes);
    if (own.pair.transport() == Transport::kUD) {
      requests[i].wr.ud = {own.way.handle(), own.far_qp, own.far_key};
    }
    requests[i].next = i + 1 < list.size() ? &requests[i + 1] : nullptr;
  }
  ibv_send_wr* bad = nullptr;
  if (list.empty() || ibv_post_send(own.pair.handle(), requests, &bad) == 0) {
    return list.size();
  }
  return bad == nullptr ? 0 : static_cast<std::size_t>(bad - requests);
}

std::size_t VerbsDevice::post_receives(std::span<const std::uint64_t> ids,
                                       std::span<const Piece> buffers, QpNumber qp) {
  std::vector<ibv_recv_wr> requests(ids.size());
  std::vector<ibv_sge> elements(ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    elements[i] = {buffers[i].address, buffers[i].bytes, buffers[i].local_key};
    requests[i] = {ids[i], i + 1 < ids.size() ? &requests[i + 1] : nullptr, &elements[i], 1};
  }
  ibv_recv_wr* bad = nullptr;
  if (ids.empty()) return 0;
  const int error = qp == 0 ? ibv_post_srq_recv(srq_.handle(), requests.data(), &bad)
                            : ibv_post_recv(qps_.at(qp).pair.handle(), requests.data(), &bad);
  if (error == 0) return ids.size();
  return bad == nullptr ? 0 : static_cast<std::size_t>(bad - requests.data());
}

std::size_t VerbsDevice::poll(std::vector<Completion>& into, bool also_sends) {
  const std::size_t before = into.size();
  into.insert(into.end(), saved_.begin(), saved_.end());
  saved_.clear();
  (void)take_completions(into, also_sends);
  return into.size() - before;
}

std::size_t VerbsDevice::take_completions(std::vector<Completion>& into, bool also_sends) {
  std::array<ibv_wc, 64> seen;
  std::size_t all = 0;
  // Receives first: what a peer acknowledged before its QP failed must be counted.
  for (ibv_cq* cq : {receive_cq_.handle(), send_cq_.handle()}) {
    if (cq == send_cq_.handle() && !also_sends) break;
    int count = 0;
    do {
      count = std::max(0, ibv_poll_cq(cq, seen.size(), seen.data()));
      for (int i = 0; i < count; ++i) {
        into.push_back(converted(seen[static_cast<std::size_t>(i)], cq == receive_cq_.handle()));
      }
      all += static_cast<std::size_t>(count);
    } while (static_cast<std::size_t>(count) == seen.size());
  }
  return all;
}

int VerbsDevice::event_fd() const { return channel_.handle()->fd; }
int VerbsDevice::async_fd() const { return device_.handle()->async_fd; }

/// A queue that has not spoken since it was armed is armed still; to arm is a system call on some.
void VerbsDevice::arm(bool also_sends) {
  if (also_sends && !std::exchange(send_armed_, true)) (void)send_cq_.arm();
  if (!std::exchange(receive_armed_, true)) (void)receive_cq_.arm();
}

void VerbsDevice::take_events() {
  ibv_cq* cq = nullptr;
  void* context = nullptr;
  if (ibv_get_cq_event(channel_.handle(), &cq, &context) != 0) return;
  ibv_ack_cq_events(cq, 1);
  (cq == send_cq_.handle() ? send_armed_ : receive_armed_) = false;
}

Result<std::vector<QpNumber>> VerbsDevice::take_async() {
  std::vector<QpNumber> failed;
  ibv_async_event event{};
  while (ibv_get_async_event(device_.handle(), &event) == 0) {
    const ibv_event_type type = event.event_type;
    const bool of_qp = type == IBV_EVENT_QP_FATAL || type == IBV_EVENT_QP_REQ_ERR ||
                       type == IBV_EVENT_QP_ACCESS_ERR;
    if (of_qp) failed.push_back(event.element.qp->qp_num);
    ibv_ack_async_event(&event);
    if (type == IBV_EVENT_DEVICE_FATAL) {
      return fail(ErrorCode::kIo, fmt::format("{}: the device has failed", device_.name()));
    }
  }
  return failed;
}

std::vector<QpNumber> VerbsDevice::drained(Clock::time_point now) {
  std::vector<QpNumber> due;
  while (!draining_.empty() && draining_.front().first <= now) {
    due.push_back(draining_.front().second);
    draining_.erase(draining_.begin());
  }
  return due;
}

std::optional<VerbsDevice::Clock::time_point> VerbsDevice::next_drained() const {
  if (draining_.empty()) return std::nullopt;
  return draining_.front().first;
}

}  // namespace greynic::broker
