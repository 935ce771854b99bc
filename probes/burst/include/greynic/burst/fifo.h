#pragma once

/// A first-in first-out queue that drains at a stated rate, for packets whose arrivals are known.
///
/// A packet is in the queue, with all its bytes, from its arrival until its last bit has left. A
/// packet whose last bit leaves at the very time at which another arrives is gone by then. Times
/// are compared in whole bits and nanoseconds, so no rounding decides.
///
/// Memory grows with the depth of the queue. Packets that left are kept for a while: history() is
/// what left last.

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "greynic/burst/flow_key.h"

namespace greynic::burst {

class Fifo {
 public:
  struct Packet {
    FlowKey flow;
    std::uint32_t bytes = 0;
    std::uint64_t arrived_ns = 0;
    std::uint64_t depth_at_arrival = 0;  ///< its own bytes among them
  };
  /// `most` packets at once, rounded up to a power of two.
  explicit Fifo(std::uint64_t bits_per_second, std::size_t most = std::size_t{1} << 24)
      : rate_(bits_per_second),
        ns_per_bit_(1e9 / static_cast<double>(bits_per_second)),
        most_(most),
        packets_(kFirstSize) {}

  /// Calls `leave(packet, number, depth that stays, time)` for each packet that is gone by `now`, in
  /// order. Numbers count arrivals from 0.
  template <typename Leave>
  void drain(std::uint64_t now, Leave&& leave) {
    while (head_ != tail_ && gone_by(now)) leave_one(leave);
  }
  template <typename Leave>
  void drain_all(Leave&& leave) {
    while (head_ != tail_) leave_one(leave);
  }

  /// Room for the next packet. Arrival times must not run back, and whoever is gone by then must
  /// have been drained. Null: the queue is full.
  Packet* arrive(std::uint64_t now, std::uint32_t bytes) {
    if (tail_ - head_ == packets_.size() && !grow()) return nullptr;
    if (head_ == tail_) {
      busy_since_ns_ = now;
      bits_sent_ = 0;
      busy_first_ = head_;
      depth_ = 0;
    }
    Packet& packet = packets_[tail_++ & (packets_.size() - 1)];
    depth_ += bytes;
    packet.bytes = bytes;
    packet.arrived_ns = now;
    packet.depth_at_arrival = depth_;
    return &packet;
  }

  [[nodiscard]] std::uint64_t depth() const { return depth_; }
  [[nodiscard]] std::uint64_t arrivals() const { return tail_; }

  /// Calls `each(packet)` for what left before packet `number` in the same busy period, the last
  /// `most` of it and as far back as it is kept.
  template <typename Each>
  void history(std::uint64_t number, std::uint64_t most, Each&& each) const {
    const std::uint64_t kept = tail_ > packets_.size() ? tail_ - packets_.size() : 0;
    std::uint64_t from = number > most ? number - most : 0;
    from = std::max({from, kept, busy_first_});
    for (; from < number; ++from) each(packets_[from & (packets_.size() - 1)]);
  }

 private:
  static constexpr std::size_t kFirstSize = 4096;
  __extension__ using Wide = unsigned __int128;

  [[nodiscard]] bool gone_by(std::uint64_t now) const {
    const std::uint64_t bits =
        bits_sent_ + std::uint64_t{packets_[head_ & (packets_.size() - 1)].bytes} * 8;
    return Wide{now - busy_since_ns_} * rate_ >= Wide{bits} * 1'000'000'000U;
  }
  template <typename Leave>
  void leave_one(Leave&& leave) {
    const Packet& packet = packets_[head_ & (packets_.size() - 1)];
    bits_sent_ += std::uint64_t{packet.bytes} * 8;
    depth_ -= packet.bytes;
    const double time = static_cast<double>(bits_sent_) * ns_per_bit_;
    leave(packet, head_, depth_, busy_since_ns_ + static_cast<std::uint64_t>(time + 0.5));
    ++head_;
  }
  bool grow() {
    if (packets_.size() >= most_) return false;
    std::vector<Packet> larger(packets_.size() * 2);
    for (std::uint64_t i = head_; i != tail_; ++i) {
      larger[i & (larger.size() - 1)] = packets_[i & (packets_.size() - 1)];
    }
    packets_ = std::move(larger);
    busy_first_ = std::max(busy_first_, head_);  // what left before is not kept
    return true;
  }

  std::uint64_t rate_;
  double ns_per_bit_;
  std::size_t most_;
  std::vector<Packet> packets_;
  std::uint64_t head_ = 0, tail_ = 0;
  std::uint64_t busy_first_ = 0;  ///< the packet that found the queue empty
  std::uint64_t busy_since_ns_ = 0, bits_sent_ = 0, depth_ = 0;
};

}  // namespace greynic::burst
