#pragma once

/// Posts the messages of one lane, in batches, by ibv_wr_* where the QP has it and else by
/// ibv_post_send. Every rate and every latency contains this code, so it is kept short: what an
/// operation needs is decided when the lane is made, requests are built once, and each message
/// writes only what changes.

#include <infiniband/verbs.h>

#include <vector>

#include "greynic/verbs/endpoint.h"

namespace greynic::verbs {

class Poster {
 public:
  Poster(Endpoint& endpoint, std::uint32_t lane);
  Poster(Poster&&) = default;  // where vectors keep what they hold in place

  /// Posts the next `count` (at most plan.post_batch) messages; a signalled one carries its number,
  /// which counts from 0, in the low half of wr_id and the lane in the high half. `signal_last`
  /// asks for a completion of the last one whatever plan.signal_every says. Returns 0 or an errno;
  /// after an errno, post nothing more.
  [[nodiscard]] int post(std::uint32_t count, bool signal_last) {
    return post_(*this, count, signal_last);
  }

  [[nodiscard]] std::uint32_t bytes_of(std::uint64_t message) const {
    return sizes_[message % sizes_.size()];
  }
  /// Of the message after the last one posted: its number, its slot, the laps round the slots
  /// before it, and its length.
  [[nodiscard]] std::uint64_t next() const { return next_; }
  [[nodiscard]] std::size_t next_slot() const {
    return static_cast<std::size_t>(place_ - places_.data());
  }
  [[nodiscard]] std::uint64_t next_lap() const { return lap_; }
  [[nodiscard]] std::uint32_t next_bytes() const { return *size_; }

 private:
  /// A slot at both ends.
  struct Place {
    std::uintptr_t local_address = 0;
    std::uint32_t local_key = 0;
    std::uint32_t remote_key = 0;
    std::uint64_t remote_address = 0;
  };

  using Post = int (*)(Poster& self, std::uint32_t count, bool signal_last);

  void build_requests();
  [[nodiscard]] Post choose_post() const;
  template <Opcode kOperation>
  static int post_plain(Poster& self, std::uint32_t count, bool signal_last);
  template <Opcode kOperation>
  static int post_extended(Poster& self, std::uint32_t count, bool signal_last);

  void advance();

  // Of message next_.
  [[nodiscard]] std::uint64_t id() const { return lane_id_ | static_cast<std::uint32_t>(next_); }
  [[nodiscard]] unsigned flags(bool signalled) const;
  [[nodiscard]] std::uint32_t key_to_invalidate() const;
  /// Cuts it into plan.elements, else plan.sge_count pieces; how many there are, of the latter
  /// fewer when it has fewer bytes.
  int cut(ibv_sge* sges) const;
  template <Opcode kOperation>
  void write_operation(ibv_send_wr& request) const;
  template <Opcode kOperation>
  void call_operation(const Place& place) const;
  void call_address() const;
  void call_pieces(bool inlined);

  Endpoint& endpoint_;
  const TrafficPlan& plan_;
  std::uint32_t lane_;
  std::vector<std::uint32_t> sizes_;
  std::vector<Place> places_;  ///< by slot
  // What does not change from message to message, next to what does.
  ibv_qp_ex* extended_;
  ibv_qp* qp_;
  Post post_;
  std::uint64_t lane_id_;
  const Place* last_place_;
  const std::uint32_t* last_size_;
  std::uint32_t signal_every_;
  std::int64_t inline_up_to_;  ///< bytes; -1 for never
  std::size_t sge_count_;      ///< of each request: room for so many
  bool one_piece_;
  bool addressed_;  ///< each request names its receiver: UD, XRC
  std::vector<ibv_send_wr> requests_;
  std::vector<ibv_sge> sges_;
  // Where message number next_ stands in each cycle: counted on, because a division a message is
  // what posting would spend most of its own time on.
  std::uint64_t next_ = 0;
  std::uint64_t lap_ = 0;
  const Place* place_;             ///< among places_
  const std::uint32_t* size_;      ///< among sizes_
  std::uint32_t unsignalled_ = 0;  ///< messages since the last signalled one
};

}  // namespace greynic::verbs
