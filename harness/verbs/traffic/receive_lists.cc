#include "traffic/receive_lists.h"

#include "device/verbs_errors.h"

namespace greynic::verbs {

int ReceiveLists::gather(std::uint32_t lane, std::uint32_t slot) {
  const std::uint32_t queue = endpoint_.receive_queue_of(lane);
  if (queue >= lists_.size()) lists_.resize(queue + std::size_t{1});
  List& list = lists_[queue];
  if (list.requests.empty()) {
    list.requests.resize(length_);
    list.sges.resize(length_);
  }
  const std::size_t place = list.filled++;
  endpoint_.describe_receive(lane, slot, list.requests[place], list.sges[place]);
  if (place > 0) list.requests[place - 1].next = &list.requests[place];
  return list.filled == length_ ? hand_over(queue) : 0;
}

int ReceiveLists::hand_over(std::uint32_t queue) {
  List& list = lists_[queue];
  list.filled = 0;
  return endpoint_.post_receives(queue, list.requests.front());
}

int ReceiveLists::flush() {
  for (std::uint32_t queue = 0; queue < lists_.size(); ++queue) {
    if (lists_[queue].filled == 0) continue;
    if (const int error = hand_over(queue)) return error;
  }
  return 0;
}

std::uint32_t Endpoint::receive_queue_of(std::uint32_t lane) const {
  if (srqs_.empty()) return lane;
  return srq_of_each_group() ? lane / plan_.qps_per_cq : 0;
}

void Endpoint::describe_receive(std::uint32_t lane, std::uint32_t slot, ibv_recv_wr& request,
                                ibv_sge& sge) const {
  const std::vector<Slot>& slots = slots_[lane];
  const Slot& place = slots[slot < slots.size() ? slot : slot % slots.size()];
  sge.addr = reinterpret_cast<std::uintptr_t>(target_[place.region].address()) + place.offset;
  sge.length = receive_bytes_;
  sge.lkey = target_[place.region].local_key();
  request.wr_id = (std::uint64_t{lane} << 32) | slot;
  request.next = nullptr;
  request.sg_list = &sge;
  request.num_sge = plan_.operation == Opcode::kWriteWithImm ? 0 : 1;
}

int Endpoint::post_receives(std::uint32_t queue, ibv_recv_wr& first) {
  ibv_recv_wr* bad = nullptr;
  return srqs_.empty() ? ibv_post_recv(qps_[queue].handle(), &first, &bad)
                       : ibv_post_srq_recv(srqs_[queue].handle(), &first, &bad);
}

int Endpoint::post_receive(std::uint32_t lane, std::uint32_t slot) {
  ibv_sge sge;
  ibv_recv_wr request;
  describe_receive(lane, slot, request, sge);
  return post_receives(receive_queue_of(lane), request);
}

Result<void> Endpoint::fill_receive_queues() {
  // Under SEND_WITH_INV a slot is posted when its memory window is bound: the receiver's loop.
  if (plan_.operation == Opcode::kSendWithInv) return {};
  if (plan_.fault == Fault::kReceiveMissing) return {};
  ReceiveLists lists(*this);
  // The lanes that share a queue take turns in it.
  const auto fill = [&](std::uint32_t first, std::uint32_t lanes,
                        std::uint64_t count) -> Result<void> {
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto lane = first + static_cast<std::uint32_t>(i % lanes);
      const auto slot = static_cast<std::uint32_t>(i / lanes);
      if (const int error = lists.post(lane, slot)) return refused("ibv_post_recv", error);
    }
    if (const int error = lists.flush()) return refused("ibv_post_recv", error);
    return {};
  };
  if (srqs_.empty() || !srq_of_each_group()) {
    return fill(0, plan_.qp_count,
                std::uint64_t{plan_.receive_depth} * (srqs_.empty() ? plan_.qp_count : 1));
  }
  for (const Group& group : groups_) {
    if (auto done = fill(group.first_lane, group.lane_count, plan_.receive_depth); !done) {
      return done;
    }
  }
  return {};
}

}  // namespace greynic::verbs
