#pragma once

/// How a thread waits for completions of its groups, and what time it is.

#include <infiniband/verbs.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "greynic/verbs/endpoint.h"
#include "heartbeat.h"

namespace greynic::verbs {

using Clock = std::chrono::steady_clock;

[[nodiscard]] inline std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch())
      .count();
}

/// CPU time of the calling thread, user and system.
[[nodiscard]] double thread_cpu_seconds();

/// Polls the CQs of one thread in turn, from that thread; in event modes sleeps when they stay
/// empty.
class Waiter {
 public:
  Waiter(Endpoint& endpoint, std::uint32_t thread, CqSide side);

  /// Up to `capacity` completions of one CQ; 0 when none is there yet (in event modes after at most
  /// 50 ms of sleep), negative when the device does not answer.
  [[nodiscard]] int poll(ibv_wc* completions, int capacity);
  [[nodiscard]] const std::vector<Endpoint::Group*>& groups() const { return groups_; }

 private:
  int poll_once(ibv_wc* completions, int capacity);
  [[nodiscard]] CompletionQueue& queue(std::size_t group) const;

  std::vector<Endpoint::Group*> groups_;
  CompletionChannel* channel_;
  CompletionMode mode_;
  CqSide side_;
  std::size_t next_ = 0;
  std::optional<Heartbeat> heartbeat_;  ///< of the thread that polls, from its first sleep on
};

}  // namespace greynic::verbs
