#pragma once

/// The receive WQEs of all streams: each message that needs one takes it, and the receiver's thread
/// posts it again. Streams with a shared receive queue take theirs from the first one's.
///
/// Needs: the counts in the world's streams. Gives: whether there is one.

#include <cstdint>
#include <vector>

#include "parts/world.h"

namespace greynic::twin {

class Receives {
 public:
  explicit Receives(World& world) : world_(world) {}
  void lay_out() {
    for (Stream& s : world_.streams) s.receives = world_.load.receive_depth;
    threads_.resize(world_.nics.size());
  }

  /// False: there is none, and the receiver is not ready.
  [[nodiscard]] bool take(std::uint32_t stream, Time t) {
    while (head_ < refills_.size() && refills_[head_].time <= t) {
      ++world_.streams[refills_[head_++].stream].receives;
    }
    if (head_ > 4096 && head_ * 2 > refills_.size()) {
      refills_.erase(refills_.begin(), refills_.begin() + static_cast<std::ptrdiff_t>(head_));
      head_ = 0;
    }
    std::uint32_t& left = world_.streams[pool_of(stream)].receives;
    if (left == 0) return false;
    --left;
    return true;
  }
  /// The receiver's thread sees the message at t and posts its receive WQE once more.
  void put_back(std::uint32_t stream, Time t) {
    const Time again = threads_[world_.streams[stream].to].pass(
        t + world_.p.pcie_post_ns, world_.p.completion_ns / world_.load.thread_count);
    refills_.push_back({again, pool_of(stream)});
  }
  /// The stream whose queue this one takes from.
  [[nodiscard]] std::uint32_t pool_of(std::uint32_t stream) const {
    return world_.load.shared_receive_queue ? 0 : stream;
  }
  /// Calls for the stream of each receive WQE that is on its way back.
  template <typename Call>
  void for_each_refill(const Call& call) const {
    for (std::size_t i = head_; i < refills_.size(); ++i) call(refills_[i].stream);
  }

 private:
  struct Refill {
    Time time;
    std::uint32_t stream;
  };

  World& world_;
  std::vector<Serial> threads_;  ///< of each host, those that post receive WQEs
  std::vector<Refill> refills_;  ///< in order of time; those before head_ are done
  std::size_t head_ = 0;
};

}  // namespace greynic::twin
