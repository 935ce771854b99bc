#include "poster.h"

#include <arpa/inet.h>

#include <algorithm>

namespace greynic::verbs {
namespace {

ibv_wr_opcode opcode_of(Operation operation) {
  switch (operation) {
    case Operation::kSend:
      return IBV_WR_SEND;
    case Operation::kSendWithImm:
      return IBV_WR_SEND_WITH_IMM;
    case Operation::kSendWithInv:
      return IBV_WR_SEND_WITH_INV;
    case Operation::kWrite:
      return IBV_WR_RDMA_WRITE;
    case Operation::kWriteWithImm:
      return IBV_WR_RDMA_WRITE_WITH_IMM;
    case Operation::kRead:
      return IBV_WR_RDMA_READ;
    case Operation::kCompareSwap:
      return IBV_WR_ATOMIC_CMP_AND_SWP;
    case Operation::kFetchAdd:
      return IBV_WR_ATOMIC_FETCH_AND_ADD;
  }
  return IBV_WR_SEND;
}

}  // namespace

Poster::Poster(Endpoint& endpoint, std::uint32_t lane)
    : endpoint_(endpoint),
      plan_(endpoint.plan()),
      lane_(lane),
      sizes_(plan_.sizes),
      inlines_(plan_.inline_bytes > 0 && !plan_.one_sided_answer()),
      qp_(endpoint.qp(lane).handle()),
      extended_(endpoint.qp(lane).extended()),
      requests_(plan_.post_batch),
      sges_(std::size_t{plan_.post_batch} * std::max(plan_.sge_count, 1U)) {
  const EndpointDescription& remote = endpoint.remote();
  for (const Slot& slot : endpoint.slots(lane)) {
    const MemoryRegion& region = endpoint.local(slot);
    Place place{.local_address = reinterpret_cast<std::uintptr_t>(region.address()) + slot.offset,
                .local_key = region.local_key()};
    if (slot.region < remote.target_keys.size()) {
      place.remote_key = remote.target_keys[slot.region];
      place.remote_address = remote.target_addresses[slot.region] + slot.offset;
    }
    places_.push_back(place);
  }
  const std::size_t sge_count = std::max(plan_.sge_count, 1U);
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    ibv_send_wr& request = requests_[i];
    request = {};
    request.next = i + 1 < requests_.size() ? &requests_[i + 1] : nullptr;
    request.sg_list = &sges_[i * sge_count];
    request.opcode = opcode_of(plan_.operation);
    if (plan_.transport == Transport::kUD) {
      request.wr.ud.ah = endpoint.address_handle(lane);
      request.wr.ud.remote_qpn = endpoint.remote().qp_numbers[lane];
      request.wr.ud.remote_qkey = ConnectOptions{}.qkey;
    }
    if (plan_.transport == Transport::kXRC) {
      request.qp_type.xrc.remote_srqn = endpoint.remote_srq(lane);
    }
  }
}

void Poster::go_to(std::uint64_t message) {
  next_ = message;
  slot_ = message % places_.size();
  lap_ = message / places_.size();
  size_ = message % sizes_.size();
  unsignalled_ = static_cast<std::uint32_t>(message % plan_.signal_every);
}

void Poster::advance() {
  ++next_;
  if (++slot_ == places_.size()) {
    slot_ = 0;
    ++lap_;
  }
  if (++size_ == sizes_.size()) size_ = 0;
  if (++unsignalled_ == plan_.signal_every) unsignalled_ = 0;
}

std::uint64_t Poster::id() const { return (std::uint64_t{lane_} << 32) | (next_ & 0xffffffff); }

unsigned Poster::flags(bool signalled) const {
  const bool inlined = inlines_ && sizes_[size_] <= plan_.inline_bytes;
  return (signalled || unsignalled_ + 1 == plan_.signal_every ? unsigned{IBV_SEND_SIGNALED} : 0) |
         (inlined ? unsigned{IBV_SEND_INLINE} : 0);
}

std::uint32_t Poster::key_to_invalidate() const {
  const std::uint32_t windows = windows_per_lane(plan_);
  const auto index = static_cast<std::uint32_t>(next_ % windows);
  const auto binds = static_cast<std::uint32_t>(next_ / windows) + 1;
  const std::uint32_t key = endpoint_.remote().window_keys[std::size_t{lane_} * windows + index];
  return (key & 0xffffff00) | ((key + binds) & 0xff);
}

int Poster::cut(ibv_sge* sges) const {
  const Place& place = places_[slot_];
  if (!plan_.elements.empty()) {
    std::uint64_t address = place.local_address;
    for (const std::uint32_t length : plan_.elements) {
      *sges++ = {address, length, place.local_key};
      address += length;
    }
    return static_cast<int>(plan_.elements.size());
  }
  const std::uint32_t bytes = sizes_[size_];
  const std::uint32_t pieces = std::min(plan_.sge_count, std::max(bytes, 1U));
  const std::uint32_t piece = pieces == 0 ? 0 : bytes / pieces;
  for (std::uint32_t i = 0; i < pieces; ++i) {
    const std::uint32_t length = i + 1 == pieces ? bytes - i * piece : piece;
    sges[i] = {place.local_address + std::uint64_t{i} * piece, length, place.local_key};
  }
  return static_cast<int>(pieces);
}

int Poster::post_plain(std::uint32_t count, bool signal_last) {
  const std::size_t sge_count = std::max(plan_.sge_count, 1U);
  for (std::uint32_t i = 0; i < count; ++i) {
    ibv_send_wr& request = requests_[i];
    const Place& place = places_[slot_];
    request.wr_id = id();
    request.send_flags = flags(signal_last && i + 1 == count);
    request.num_sge = cut(&sges_[i * sge_count]);
    switch (plan_.operation) {
      case Operation::kSend:
        break;
      case Operation::kSendWithImm:
        request.imm_data = htonl(static_cast<std::uint32_t>(next_));
        break;
      case Operation::kSendWithInv:
        request.invalidate_rkey = key_to_invalidate();
        break;
      case Operation::kWriteWithImm:
        request.imm_data = htonl(static_cast<std::uint32_t>(next_));
        [[fallthrough]];
      case Operation::kWrite:
      case Operation::kRead:
        request.wr.rdma.remote_addr = place.remote_address;
        request.wr.rdma.rkey = place.remote_key;
        break;
      case Operation::kCompareSwap:
        aim_atomic(request, next_, next_ + 1);
        break;
      case Operation::kFetchAdd:
        aim_atomic(request, 1, 0);
        break;
    }
    advance();
  }
  ibv_send_wr* const cut_off = requests_[count - 1].next;
  requests_[count - 1].next = nullptr;
  ibv_send_wr* bad = nullptr;
  const int error = ibv_post_send(qp_, requests_.data(), &bad);
  requests_[count - 1].next = cut_off;
  return error;
}

void Poster::aim_atomic(ibv_send_wr& request, std::uint64_t compare_add, std::uint64_t swap) const {
  request.wr.atomic.remote_addr = places_.front().remote_address;
  request.wr.atomic.rkey = places_.front().remote_key;
  request.wr.atomic.compare_add = compare_add;
  request.wr.atomic.swap = swap;
}

int Poster::post_extended(std::uint32_t count, bool signal_last) {
  ibv_wr_start(extended_);
  for (; count > 0; --count) {
    const Place& place = places_[slot_];
    const Place& counter = places_.front();
    const auto number = static_cast<std::uint32_t>(next_);
    extended_->wr_id = id();
    extended_->wr_flags = flags(signal_last && count == 1);
    switch (plan_.operation) {
      case Operation::kSend:
        ibv_wr_send(extended_);
        break;
      case Operation::kSendWithImm:
        ibv_wr_send_imm(extended_, htonl(number));
        break;
      case Operation::kSendWithInv:
        ibv_wr_send_inv(extended_, key_to_invalidate());
        break;
      case Operation::kWrite:
        ibv_wr_rdma_write(extended_, place.remote_key, place.remote_address);
        break;
      case Operation::kWriteWithImm:
        ibv_wr_rdma_write_imm(extended_, place.remote_key, place.remote_address, htonl(number));
        break;
      case Operation::kRead:
        ibv_wr_rdma_read(extended_, place.remote_key, place.remote_address);
        break;
      case Operation::kCompareSwap:
        ibv_wr_atomic_cmp_swp(extended_, counter.remote_key, counter.remote_address, next_,
                              next_ + 1);
        break;
      case Operation::kFetchAdd:
        ibv_wr_atomic_fetch_add(extended_, counter.remote_key, counter.remote_address, 1);
        break;
    }
    if (plan_.transport == Transport::kUD) {
      const ibv_send_wr& request = requests_.front();
      ibv_wr_set_ud_addr(extended_, request.wr.ud.ah, request.wr.ud.remote_qpn,
                         request.wr.ud.remote_qkey);
    }
    if (plan_.transport == Transport::kXRC) {
      ibv_wr_set_xrc_srqn(extended_, requests_.front().qp_type.xrc.remote_srqn);
    }
    set_data((extended_->wr_flags & IBV_SEND_INLINE) != 0);
    advance();
  }
  return ibv_wr_complete(extended_);
}

void Poster::set_data(bool inlined) {
  if (plan_.sge_count == 1) {
    const Place& place = places_[slot_];
    if (inlined) {
      ibv_wr_set_inline_data(extended_, reinterpret_cast<void*>(place.local_address),
                             sizes_[size_]);
    } else {
      ibv_wr_set_sge(extended_, place.local_key, place.local_address, sizes_[size_]);
    }
    return;
  }
  const auto pieces = static_cast<std::size_t>(cut(sges_.data()));
  if (!inlined) {
    ibv_wr_set_sge_list(extended_, pieces, sges_.data());
    return;
  }
  std::vector<ibv_data_buf> data;
  for (std::size_t i = 0; i < pieces; ++i) {
    data.push_back({reinterpret_cast<void*>(sges_[i].addr), sges_[i].length});
  }
  ibv_wr_set_inline_data_list(extended_, data.size(), data.data());
}

}  // namespace greynic::verbs
