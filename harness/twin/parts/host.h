#pragma once

/// The software of one host: threads that post and poll, the doorbell registers they ring, and the
/// locks around what they share.

#include <cstdint>
#include <vector>

#include "parameters/parameters.h"
#include "parts/stream.h"
#include "stages/stage.h"

namespace greynic::twin {

/// What passing a lock from core to core costs.
struct LockCost {
  Time transfer_ns = 0;    ///< the cache line comes from another core and nobody else wants it
  Time contended_ns = 0;   ///< others spin on it
  Time per_waiter_ns = 0;  ///< added for each that does
  std::size_t most_waiters = 0;
};

/// A spin lock between cores. A thread that held it last takes it again for nothing.
class ContendedLock {
 public:
  /// Takes the lock at t; returns when the holder lets go of it.
  Time pass(Time t, std::uint32_t thread, const LockCost& cost) {
    while (first_ < releases_.size() && releases_[first_] <= t) ++first_;
    const std::size_t waiters = std::min(releases_.size() - first_, cost.most_waiters);
    Time hold = thread != last_ ? cost.transfer_ns : 0.0;
    if (waiters > 0) {
      hold = cost.contended_ns + cost.per_waiter_ns * static_cast<Time>(waiters);
    }
    last_ = thread;
    const Time end = lock_.pass(t, hold);
    if (first_ == releases_.size() || first_ > 64) {
      releases_.erase(releases_.begin(), releases_.begin() + static_cast<std::ptrdiff_t>(first_));
      first_ = 0;
    }
    releases_.push_back(end);
    return end;
  }

 private:
  Serial lock_;
  std::uint32_t last_ = kNone;
  std::vector<Time> releases_;  ///< of holders and waiters, ascending; those before first_ are gone
  std::size_t first_ = 0;
};

struct Thread {
  std::uint32_t side = 0;
  std::uint32_t first_stream = kNone;  ///< streams with a free slot, a linked list
  std::uint32_t last_stream = kNone;
  std::uint32_t outstanding = 0;
  std::uint32_t quota = kNone;  ///< most requests of this thread that may be outstanding
  std::uint32_t left_in_round = 0;
  Time next_due = 0;     ///< open loop: when its next message is due
  Time mean_gap_ns = 0;  ///< between two of its messages; 0: closed loop
  double slowdown = 1;   ///< both threads of the core run
  Time far_ns = 0;       ///< the thread sits on the socket away from the RNIC
  bool waiting = false;
};

struct Host {
  std::vector<ContendedLock> registers;  ///< shared doorbell registers
  std::vector<ContendedLock> qp_locks;   ///< of QPs that threads share
};

/// Which doorbell register a QP rings: the driver gives the first few a register each, and deals
/// the rest out to the shared ones in turn. Returns the index among the shared ones, kNone for its
/// own.
[[nodiscard]] inline std::uint32_t shared_register_of(std::uint32_t qp, const Parameters& p) {
  const auto own = static_cast<std::uint32_t>(p.doorbell_dedicated_count);
  const auto all = static_cast<std::uint32_t>(p.doorbell_register_count);
  return qp < own ? kNone : (qp - own) % (all - own);
}

/// Threads fill the near socket, then the far one, then second threads of each core.
inline void place_thread(Thread& thread, std::uint32_t index, std::uint32_t thread_count,
                         const Parameters& p) {
  const auto per_socket = static_cast<std::uint32_t>(p.cores_per_socket);
  const std::uint32_t cores = 2 * per_socket;
  const std::uint32_t core = index % cores;
  const bool shares_core = index >= cores || core + cores < thread_count;
  thread.slowdown = shares_core ? p.smt_slowdown : 1.0;
  thread.far_ns = core >= per_socket ? p.far_socket_ns : 0.0;
}

}  // namespace greynic::twin
