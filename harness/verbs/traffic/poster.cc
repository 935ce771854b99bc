#include "traffic/poster.h"

#include <arpa/inet.h>

#include <algorithm>

namespace greynic::verbs {
namespace {

ibv_wr_opcode opcode_of(Opcode operation) {
  switch (operation) {
    case Opcode::kSend:
      return IBV_WR_SEND;
    case Opcode::kSendWithImm:
      return IBV_WR_SEND_WITH_IMM;
    case Opcode::kSendWithInv:
      return IBV_WR_SEND_WITH_INV;
    case Opcode::kWrite:
      return IBV_WR_RDMA_WRITE;
    case Opcode::kWriteWithImm:
      return IBV_WR_RDMA_WRITE_WITH_IMM;
    case Opcode::kRead:
      return IBV_WR_RDMA_READ;
    case Opcode::kCompareSwap:
      return IBV_WR_ATOMIC_CMP_AND_SWP;
    case Opcode::kFetchAdd:
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
      extended_(endpoint.qp(lane).extended()),
      qp_(endpoint.qp(lane).handle()),
      post_(choose_post()),
      lane_id_(std::uint64_t{lane} << 32),
      signal_every_(plan_.signal_every),
      // READ and atomics carry no data out.
      inline_up_to_(plan_.inline_bytes > 0 && !plan_.one_sided_answer()
                        ? std::int64_t{plan_.inline_bytes}
                        : -1),
      sge_count_(std::max(plan_.sge_count, 1U)),
      one_piece_(plan_.sge_count == 1),
      addressed_(plan_.transport == Transport::kUD || plan_.transport == Transport::kXRC),
      requests_(plan_.post_batch),
      sges_(plan_.post_batch * sge_count_) {
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
  place_ = places_.data();
  last_place_ = &places_.back();
  size_ = sizes_.data();
  last_size_ = &sizes_.back();
  build_requests();
}

void Poster::build_requests() {
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    ibv_send_wr& request = requests_[i];
    request = {};
    request.next = i + 1 < requests_.size() ? &requests_[i + 1] : nullptr;
    request.sg_list = &sges_[i * sge_count_];
    request.opcode = opcode_of(plan_.operation);
    if (plan_.transport == Transport::kUD) {
      request.wr.ud.ah = endpoint_.address_handle(lane_);
      request.wr.ud.remote_qpn = endpoint_.remote().qp_numbers[lane_];
      request.wr.ud.remote_qkey = ConnectOptions{}.qkey;
    }
    if (plan_.transport == Transport::kXRC) {
      request.qp_type.xrc.remote_srqn = endpoint_.remote_srq(lane_);
    }
  }
}

Poster::Post Poster::choose_post() const {
  const auto choose = [&]<Opcode kOperation>() -> Post {
    return extended_ != nullptr ? post_extended<kOperation> : post_plain<kOperation>;
  };
  switch (plan_.operation) {
    case Opcode::kSend:
      return choose.operator()<Opcode::kSend>();
    case Opcode::kSendWithImm:
      return choose.operator()<Opcode::kSendWithImm>();
    case Opcode::kSendWithInv:
      return choose.operator()<Opcode::kSendWithInv>();
    case Opcode::kWrite:
      return choose.operator()<Opcode::kWrite>();
    case Opcode::kWriteWithImm:
      return choose.operator()<Opcode::kWriteWithImm>();
    case Opcode::kRead:
      return choose.operator()<Opcode::kRead>();
    case Opcode::kCompareSwap:
      return choose.operator()<Opcode::kCompareSwap>();
    case Opcode::kFetchAdd:
      return choose.operator()<Opcode::kFetchAdd>();
  }
  return nullptr;
}

inline void Poster::advance() {
  ++next_;
  if (place_ != last_place_) {
    ++place_;
  } else {
    place_ = places_.data();
    ++lap_;
  }
  size_ = size_ != last_size_ ? size_ + 1 : sizes_.data();
  if (++unsignalled_ == signal_every_) unsignalled_ = 0;
}

inline unsigned Poster::flags(bool signalled) const {
  const bool inlined = std::int64_t{*size_} <= inline_up_to_;
  return (signalled || unsignalled_ + 1 == signal_every_ ? unsigned{IBV_SEND_SIGNALED} : 0) |
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
  if (!plan_.elements.empty()) {
    std::uint64_t address = place_->local_address;
    for (const std::uint32_t length : plan_.elements) {
      *sges++ = {address, length, place_->local_key};
      address += length;
    }
    return static_cast<int>(plan_.elements.size());
  }
  const std::uint32_t bytes = *size_;
  const std::uint32_t pieces = std::min(plan_.sge_count, std::max(bytes, 1U));
  const std::uint32_t piece = pieces == 0 ? 0 : bytes / pieces;
  for (std::uint32_t i = 0; i < pieces; ++i) {
    const std::uint32_t length = i + 1 == pieces ? bytes - i * piece : piece;
    sges[i] = {place_->local_address + std::uint64_t{i} * piece, length, place_->local_key};
  }
  return static_cast<int>(pieces);
}

// Atomics find one counter a lane, in its first slot: message k finds k there.

template <Opcode kOperation>
void Poster::write_operation(ibv_send_wr& request) const {
  if constexpr (kOperation == Opcode::kSendWithInv) {
    request.invalidate_rkey = key_to_invalidate();
  } else if constexpr (kOperation == Opcode::kSendWithImm || kOperation == Opcode::kWriteWithImm) {
    request.imm_data = htonl(static_cast<std::uint32_t>(next_));
  }
  if constexpr (kOperation == Opcode::kWrite || kOperation == Opcode::kWriteWithImm ||
                kOperation == Opcode::kRead) {
    request.wr.rdma.remote_addr = place_->remote_address;
    request.wr.rdma.rkey = place_->remote_key;
  } else if constexpr (kOperation == Opcode::kCompareSwap || kOperation == Opcode::kFetchAdd) {
    const bool swaps = kOperation == Opcode::kCompareSwap;
    request.wr.atomic.remote_addr = places_.front().remote_address;
    request.wr.atomic.rkey = places_.front().remote_key;
    request.wr.atomic.compare_add = swaps ? next_ : 1;
    request.wr.atomic.swap = swaps ? next_ + 1 : 0;
  }
}

template <Opcode kOperation>
int Poster::post_plain(Poster& self, std::uint32_t count, bool signal_last) {
  for (std::uint32_t i = 0; i < count; ++i) {
    ibv_send_wr& request = self.requests_[i];
    request.wr_id = self.id();
    request.send_flags = self.flags(signal_last && i + 1 == count);
    if (self.one_piece_) {
      *request.sg_list = {self.place_->local_address, *self.size_, self.place_->local_key};
      request.num_sge = 1;
    } else {
      request.num_sge = self.cut(request.sg_list);
    }
    self.write_operation<kOperation>(request);
    self.advance();
  }
  ibv_send_wr& last = self.requests_[count - 1];
  ibv_send_wr* const cut_off = last.next;
  last.next = nullptr;
  ibv_send_wr* bad = nullptr;
  const int error = ibv_post_send(self.qp_, self.requests_.data(), &bad);
  last.next = cut_off;
  return error;
}

template <Opcode kOperation>
void Poster::call_operation(const Place& place) const {
  ibv_qp_ex* const qp = extended_;
  const Place& counter = places_.front();
  const auto number = static_cast<std::uint32_t>(next_);
  if constexpr (kOperation == Opcode::kSend) {
    ibv_wr_send(qp);
  } else if constexpr (kOperation == Opcode::kSendWithImm) {
    ibv_wr_send_imm(qp, htonl(number));
  } else if constexpr (kOperation == Opcode::kSendWithInv) {
    ibv_wr_send_inv(qp, key_to_invalidate());
  } else if constexpr (kOperation == Opcode::kWrite) {
    ibv_wr_rdma_write(qp, place.remote_key, place.remote_address);
  } else if constexpr (kOperation == Opcode::kWriteWithImm) {
    ibv_wr_rdma_write_imm(qp, place.remote_key, place.remote_address, htonl(number));
  } else if constexpr (kOperation == Opcode::kRead) {
    ibv_wr_rdma_read(qp, place.remote_key, place.remote_address);
  } else if constexpr (kOperation == Opcode::kCompareSwap) {
    ibv_wr_atomic_cmp_swp(qp, counter.remote_key, counter.remote_address, next_, next_ + 1);
  } else {
    ibv_wr_atomic_fetch_add(qp, counter.remote_key, counter.remote_address, 1);
  }
}

template <Opcode kOperation>
int Poster::post_extended(Poster& self, std::uint32_t count, bool signal_last) {
  ibv_qp_ex* const qp = self.extended_;
  ibv_wr_start(qp);
  for (;;) {
    const bool last = --count == 0;
    const Place& place = *self.place_;
    const std::uint32_t bytes = *self.size_;
    const unsigned flags = self.flags(signal_last && last);
    qp->wr_id = self.id();
    qp->wr_flags = flags;
    self.call_operation<kOperation>(place);
    if (self.addressed_) self.call_address();
    const bool inlined = (flags & IBV_SEND_INLINE) != 0;
    if (!self.one_piece_) {
      self.call_pieces(inlined);
    } else if (inlined) {
      ibv_wr_set_inline_data(qp, reinterpret_cast<void*>(place.local_address), bytes);
    } else {
      ibv_wr_set_sge(qp, place.local_key, place.local_address, bytes);
    }
    if (last) break;
    self.advance();
  }
  const int error = ibv_wr_complete(qp);
  self.advance();  // when it has left already
  return error;
}

void Poster::call_address() const {
  const ibv_send_wr& request = requests_.front();
  if (plan_.transport == Transport::kUD) {
    ibv_wr_set_ud_addr(extended_, request.wr.ud.ah, request.wr.ud.remote_qpn,
                       request.wr.ud.remote_qkey);
  } else {
    ibv_wr_set_xrc_srqn(extended_, request.qp_type.xrc.remote_srqn);
  }
}

void Poster::call_pieces(bool inlined) {
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
