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
  prepared_ = false;
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

void Poster::fill(ibv_send_wr& request, ibv_sge* sges) const {
  const std::uint64_t message = next_;
  const Place& place = places_[slot_];
  const std::uint32_t bytes = sizes_[size_];
  if (plan_.sge_count == 1) {
    sges[0] = {place.local_address, bytes, place.local_key};
    request.num_sge = 1;
  } else {
    const std::uint32_t pieces = std::min(plan_.sge_count, std::max(bytes, 1U));
    const std::uint32_t piece = pieces == 0 ? 0 : bytes / pieces;
    for (std::uint32_t i = 0; i < pieces; ++i) {
      const std::uint32_t length = i + 1 == pieces ? bytes - i * piece : piece;
      sges[i] = {place.local_address + std::uint64_t{i} * piece, length, place.local_key};
    }
    request.num_sge = static_cast<int>(pieces);
  }
  request.wr_id = (std::uint64_t{lane_} << 32) | (message & 0xffffffff);
  request.send_flags = unsignalled_ + 1 == plan_.signal_every ? IBV_SEND_SIGNALED : 0;
  if (bytes <= plan_.inline_bytes && plan_.inline_bytes > 0 && !plan_.one_sided_answer()) {
    request.send_flags |= IBV_SEND_INLINE;
  }
  switch (plan_.operation) {
    case Operation::kSend:
      break;
    case Operation::kSendWithImm:
      request.imm_data = htonl(static_cast<std::uint32_t>(message));
      break;
    case Operation::kSendWithInv: {
      const std::uint32_t windows = windows_per_lane(plan_);
      const auto index = static_cast<std::uint32_t>(message % windows);
      const auto binds = static_cast<std::uint32_t>(message / windows) + 1;
      const std::uint32_t key =
          endpoint_.remote().window_keys[std::size_t{lane_} * windows + index];
      request.invalidate_rkey = (key & 0xffffff00) | ((key + binds) & 0xff);
      break;
    }
    case Operation::kWriteWithImm:
      request.imm_data = htonl(static_cast<std::uint32_t>(message));
      [[fallthrough]];
    case Operation::kWrite:
    case Operation::kRead:
      request.wr.rdma.remote_addr = place.remote_address;
      request.wr.rdma.rkey = place.remote_key;
      break;
    case Operation::kCompareSwap:
    case Operation::kFetchAdd: {
      // One counter a lane, in its first slot: message k finds k there.
      const Place& counter = places_.front();
      request.wr.atomic.remote_addr = counter.remote_address;
      request.wr.atomic.rkey = counter.remote_key;
      const bool add = plan_.operation == Operation::kFetchAdd;
      request.wr.atomic.compare_add = add ? 1 : message;
      request.wr.atomic.swap = add ? 0 : message + 1;
      break;
    }
  }
}

void Poster::prepare(std::uint64_t first) {
  if (first != next_) go_to(first);
  fill(requests_.front(), sges_.data());
  prepared_ = true;
}

int Poster::post(std::uint64_t first, std::uint32_t count, bool signal_last) {
  const std::size_t sge_count = std::max(plan_.sge_count, 1U);
  if (first != next_) go_to(first);
  for (std::uint32_t i = 0; i < count; ++i) {
    if (!prepared_) fill(requests_[i], &sges_[i * sge_count]);
    prepared_ = false;
    advance();
  }
  if (signal_last) requests_[count - 1].send_flags |= IBV_SEND_SIGNALED;
  if (extended_ != nullptr) return post_extended(count);
  ibv_send_wr* const cut = requests_[count - 1].next;
  requests_[count - 1].next = nullptr;
  ibv_send_wr* bad = nullptr;
  const int error = ibv_post_send(qp_, requests_.data(), &bad);
  requests_[count - 1].next = cut;
  return error;
}

int Poster::post_extended(std::uint32_t count) {
  ibv_wr_start(extended_);
  for (std::uint32_t i = 0; i < count; ++i) {
    const ibv_send_wr& request = requests_[i];
    extended_->wr_id = request.wr_id;
    extended_->wr_flags = request.send_flags;
    switch (request.opcode) {
      case IBV_WR_SEND:
        ibv_wr_send(extended_);
        break;
      case IBV_WR_SEND_WITH_IMM:
        ibv_wr_send_imm(extended_, request.imm_data);
        break;
      case IBV_WR_SEND_WITH_INV:
        ibv_wr_send_inv(extended_, request.invalidate_rkey);
        break;
      case IBV_WR_RDMA_WRITE:
        ibv_wr_rdma_write(extended_, request.wr.rdma.rkey, request.wr.rdma.remote_addr);
        break;
      case IBV_WR_RDMA_WRITE_WITH_IMM:
        ibv_wr_rdma_write_imm(extended_, request.wr.rdma.rkey, request.wr.rdma.remote_addr,
                              request.imm_data);
        break;
      case IBV_WR_RDMA_READ:
        ibv_wr_rdma_read(extended_, request.wr.rdma.rkey, request.wr.rdma.remote_addr);
        break;
      case IBV_WR_ATOMIC_CMP_AND_SWP:
        ibv_wr_atomic_cmp_swp(extended_, request.wr.atomic.rkey, request.wr.atomic.remote_addr,
                              request.wr.atomic.compare_add, request.wr.atomic.swap);
        break;
      case IBV_WR_ATOMIC_FETCH_AND_ADD:
        ibv_wr_atomic_fetch_add(extended_, request.wr.atomic.rkey, request.wr.atomic.remote_addr,
                                request.wr.atomic.compare_add);
        break;
      default:
        ibv_wr_abort(extended_);
        return EINVAL;
    }
    if (plan_.transport == Transport::kUD) {
      ibv_wr_set_ud_addr(extended_, request.wr.ud.ah, request.wr.ud.remote_qpn,
                         request.wr.ud.remote_qkey);
    }
    if (plan_.transport == Transport::kXRC) {
      ibv_wr_set_xrc_srqn(extended_, request.qp_type.xrc.remote_srqn);
    }
    if ((request.send_flags & IBV_SEND_INLINE) != 0) {
      if (request.num_sge == 1) {
        ibv_wr_set_inline_data(extended_, reinterpret_cast<void*>(request.sg_list[0].addr),
                               request.sg_list[0].length);
      } else {
        std::vector<ibv_data_buf> pieces;
        for (int s = 0; s < request.num_sge; ++s) {
          pieces.push_back(
              {reinterpret_cast<void*>(request.sg_list[s].addr), request.sg_list[s].length});
        }
        ibv_wr_set_inline_data_list(extended_, pieces.size(), pieces.data());
      }
    } else if (request.num_sge == 1) {
      ibv_wr_set_sge(extended_, request.sg_list[0].lkey, request.sg_list[0].addr,
                     request.sg_list[0].length);
    } else {
      ibv_wr_set_sge_list(extended_, static_cast<std::size_t>(request.num_sge), request.sg_list);
    }
  }
  return ibv_wr_complete(extended_);
}

}  // namespace greynic::verbs
