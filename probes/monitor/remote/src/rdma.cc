#include "rdma.h"

#include <fmt/core.h>
#include <infiniband/verbs.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <random>

namespace greynic::remote {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kDepth = RdmaReader::kPosted;
constexpr std::uint32_t kLeastMtu = 256, kMostMtu = 4096;
/// An answer of a network in use comes within this; after it, sleeping costs less than asking.
constexpr std::chrono::microseconds kSpin{20};
constexpr std::size_t kMostBytes = 64 << 20;

}  // namespace

Result<RdmaQueue> RdmaQueue::create(const verbs::Device& device, std::uint32_t send_depth) {
  const auto port = device.port_state();
  if (!port) return pass_on(port);
  verbs::GidEntry gid;
  if (port->ethernet) {
    const auto entries = device.gids();
    if (!entries) return pass_on(entries);
    auto chosen = verbs::choose_gid(*entries, "auto");
    if (!chosen) return chosen.error().while_doing("choosing a GID of " + device.name());
    gid = *chosen;
  }
  auto pd = verbs::ProtectionDomain::create(device);
  if (!pd) return pass_on(pd);
  auto channel = verbs::CompletionChannel::create(device);
  if (!channel) return pass_on(channel);
  auto cq = verbs::CompletionQueue::create(device, send_depth + 1, &*channel);
  if (!cq) return pass_on(cq);
  verbs::QueuePairOptions options;
  options.send_depth = send_depth;
  options.receive_depth = 1;
  options.extended = false;
  auto qp = verbs::QueuePair::create(device, *pd, *cq, *cq, nullptr, options);
  if (!qp) return pass_on(qp);
  RdmaQueue made(std::move(*pd), std::move(*channel), std::move(*cq), std::move(*qp));
  made.own_.at = {.gid = gid.gid,
                  .lid = port->lid,
                  .qp_number = made.qp_.number(),
                  .psn = std::random_device{}() & 0xffffff,
                  .local_gid_index = gid.index,
                  .over_ethernet = port->ethernet};
  made.own_.mtu_bytes = std::clamp(port->active_mtu_bytes, kLeastMtu, kMostMtu);
  return made;
}

RdmaEnd RdmaQueue::end() const { return own_; }

Result<void> RdmaQueue::connect(const RdmaEnd& remote) {
  if (!std::has_single_bit(remote.mtu_bytes) || remote.mtu_bytes < kLeastMtu ||
      remote.mtu_bytes > kMostMtu || remote.at.over_ethernet != own_.at.over_ethernet ||
      remote.at.qp_number > 0xffffff || remote.at.psn > 0xffffff) {
    return fail(ErrorCode::kBadInput, "the other end of the queue pair is none that fits");
  }
  verbs::RemoteEnd at = remote.at;
  at.local_gid_index = own_.at.local_gid_index;
  return qp_.connect(at, {.mtu_bytes = std::min(remote.mtu_bytes, own_.mtu_bytes),
                          .own_psn = own_.at.psn,
                          .reads_outstanding = 16});
}

Result<void> RdmaQueue::reset() {
  if (auto done = qp_.to_reset(); !done) return done;
  ibv_wc stale{};
  while (ibv_poll_cq(cq_.handle(), 1, &stale) > 0) {
  }
  own_.at.psn = std::random_device{}() & 0xffffff;
  return {};
}

Result<Exposed> expose(const RdmaQueue& queue, std::span<const std::byte> memory) {
  auto region = verbs::MemoryRegion::create_read_only(queue.pd(), memory);
  if (!region) return pass_on(region);
  return Exposed{std::move(*region), reinterpret_cast<std::uintptr_t>(memory.data()),
                 memory.size()};
}

Result<void> RdmaReader::make_room(std::size_t bytes) {
  if (buffer_ && buffer_->bytes().size() >= bytes) return {};
  buffer_.reset();
  auto region = verbs::MemoryRegion::create(queue_.pd(), std::bit_ceil(bytes), {});
  if (!region) return pass_on(region);
  buffer_ = std::move(*region);
  return {};
}

Result<void> RdmaReader::wait() {
  const auto begin = Clock::now();
  bool armed = false;
  while (true) {
    ibv_wc done{};
    const int count = ibv_poll_cq(queue_.cq().handle(), 1, &done);
    if (count < 0) return fail(ErrorCode::kIo, "the completion queue cannot be asked");
    if (count > 0 && done.status == IBV_WC_SUCCESS) return {};
    if (count > 0) {
      return fail(
          ErrorCode::kIo,
          fmt::format(
              "a READ ended with {}{}", ibv_wc_status_str(done.status),
              done.status == IBV_WC_REM_ACCESS_ERR ? ": the memory is not exposed any more" : ""));
    }
    const auto now = Clock::now();
    if (now - begin > patience_) return fail(ErrorCode::kIo, "a READ has no answer in time");
    if (now - begin < kSpin) continue;
    if (!armed) {
      // Once more after arming: what completes in between gives no event.
      if (auto done_so = queue_.cq().arm(); !done_so) return done_so;
      armed = true;
      continue;
    }
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(patience_ - (now - begin));
    pollfd event{queue_.channel().handle()->fd, POLLIN, 0};
    if (::poll(&event, 1, static_cast<int>(left.count()) + 1) > 0) {
      if (auto taken = queue_.channel().wait(); !taken) return pass_on(taken);
      armed = false;
    }
  }
}

/// Up to kDepth pieces, whose bytes fit into the buffer.
Result<void> RdmaReader::read_some(const Place& place, std::span<const zero::Piece> pieces) {
  std::array<ibv_sge, kDepth> where{};
  std::array<ibv_send_wr, kDepth> reads{};
  std::byte* const buffer = buffer_->address();
  std::size_t at = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const zero::Piece& piece = pieces[i];
    where[i] = {reinterpret_cast<std::uintptr_t>(buffer + at),
                static_cast<std::uint32_t>(piece.into.size()), buffer_->local_key()};
    reads[i].next = i + 1 < pieces.size() ? &reads[i + 1] : nullptr;
    reads[i].sg_list = &where[i];
    reads[i].num_sge = 1;
    reads[i].opcode = IBV_WR_RDMA_READ;
    reads[i].send_flags = (i > 0 ? unsigned{IBV_SEND_FENCE} : 0U) |
                          (i + 1 == pieces.size() ? unsigned{IBV_SEND_SIGNALED} : 0U);
    reads[i].wr.rdma.remote_addr = place.address + piece.offset;
    reads[i].wr.rdma.rkey = place.key;
    at += piece.into.size();
  }
  ibv_send_wr* bad = nullptr;
  if (const int error = ibv_post_send(queue_.qp().handle(), reads.data(), &bad)) {
    return fail(ErrorCode::kIo, fmt::format("ibv_post_send: {}", std::strerror(error)));
  }
  if (auto done = wait(); !done) return done;
  const std::byte* from = buffer;
  for (const zero::Piece& piece : pieces) {
    std::copy_n(from, piece.into.size(), piece.into.data());
    from += piece.into.size();
  }
  return {};
}

Result<void> RdmaReader::read(const Place& place, std::span<const zero::Piece> pieces) {
  if (broken_) return fail(ErrorCode::kIo, "an earlier READ failed; connect anew");
  for (const zero::Piece& piece : pieces) {
    if (piece.in_owner || piece.offset > place.bytes ||
        piece.into.size() > place.bytes - piece.offset || piece.into.size() > kMostBytes) {
      return fail(ErrorCode::kBadInput, "the arena is shorter than its table says");
    }
  }
  // What waits for an answer before the next begins is in order by itself.
  while (!pieces.empty()) {
    std::size_t count = 0, bytes = 0;
    while (count < std::min(pieces.size(), kDepth) &&
           bytes + pieces[count].into.size() <= kMostBytes) {
      bytes += pieces[count++].into.size();
    }
    if (bytes > 0) {
      if (auto done = make_room(bytes); !done) return done;
      if (auto done = read_some(place, pieces.first(count)); !done) {
        broken_ = true;
        return done;
      }
    }
    pieces = pieces.subspan(count);
  }
  return {};
}

Result<void> RdmaReader::begin_anew(std::chrono::nanoseconds patience) {
  if (auto done = queue_.reset(); !done) return done;
  patience_ = patience;
  broken_ = false;
  return {};
}

Result<std::shared_ptr<const verbs::Device>> shared_device(const std::string& name) {
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<const verbs::Device>> open;
  const std::lock_guard lock(mutex);
  if (auto there = open[name].lock(); there != nullptr && !there->gone()) return there;
  auto device = verbs::Device::open(name);
  if (!device) return pass_on(device);
  auto made = std::make_shared<const verbs::Device>(std::move(*device));
  open[name] = made;
  return made;
}

}  // namespace greynic::remote
