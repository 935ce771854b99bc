#pragma once

/// Posts the messages of one lane, in batches, by ibv_wr_* where the QP has it and else by
/// ibv_post_send, whose requests are built once; per message only what changes is written.

#include <infiniband/verbs.h>

#include <vector>

#include "greynic/verbs/endpoint.h"

namespace greynic::verbs {

class Poster {
 public:
  Poster(Endpoint& endpoint, std::uint32_t lane);

  /// Posts `count` (at most plan.post_batch) messages beginning with number `first`; a signalled
  /// one carries its number in the low half of wr_id and the lane in the high half. `signal_last`
  /// asks for a completion of the last one whatever plan.signal_every says. Returns 0 or an errno.
  [[nodiscard]] int post(std::uint64_t first, std::uint32_t count, bool signal_last) {
    if (first != next_) go_to(first);
    return extended_ != nullptr ? post_extended(count, signal_last)
                                : post_plain(count, signal_last);
  }

  [[nodiscard]] std::uint32_t bytes_of(std::uint64_t message) const {
    return sizes_[message % sizes_.size()];
  }
  /// Of the message after the last one posted: its slot, the laps round the slots before it, and
  /// its length.
  [[nodiscard]] std::size_t next_slot() const { return slot_; }
  [[nodiscard]] std::uint64_t next_lap() const { return lap_; }
  [[nodiscard]] std::uint32_t next_bytes() const { return sizes_[size_]; }

 private:
  /// A slot at both ends.
  struct Place {
    std::uintptr_t local_address = 0;
    std::uint32_t local_key = 0;
    std::uint32_t remote_key = 0;
    std::uint64_t remote_address = 0;
  };

  void go_to(std::uint64_t message);
  void advance();
  int post_plain(std::uint32_t count, bool signal_last);
  int post_extended(std::uint32_t count, bool signal_last);

  // Of message next_.
  [[nodiscard]] std::uint64_t id() const;
  [[nodiscard]] unsigned flags(bool signalled) const;
  [[nodiscard]] std::uint32_t key_to_invalidate() const;
  /// Cuts it into plan.elements, else plan.sge_count pieces; how many there are, of the latter
  /// fewer when it has fewer bytes.
  int cut(ibv_sge* sges) const;
  /// One counter a lane, in its first slot: message k finds k there.
  void aim_atomic(ibv_send_wr& request, std::uint64_t compare_add, std::uint64_t swap) const;
  void set_data(bool inlined);

  Endpoint& endpoint_;
  const TrafficPlan& plan_;
  std::uint32_t lane_;
  std::vector<std::uint32_t> sizes_;
  bool inlines_;  ///< the operation carries data out, and the plan wants small ones inline
  ibv_qp* qp_;
  ibv_qp_ex* extended_;
  std::vector<Place> places_;  ///< by slot
  std::vector<ibv_send_wr> requests_;
  std::vector<ibv_sge> sges_;
  // Where message number next_ stands in each cycle: counted on, because a division a message is
  // what posting would spend most of its own time on.
  std::uint64_t next_ = 0;
  std::size_t slot_ = 0;
  std::uint64_t lap_ = 0;
  std::size_t size_ = 0;
  std::uint32_t unsignalled_ = 0;  ///< messages since the last signalled one
};

}  // namespace greynic::verbs
