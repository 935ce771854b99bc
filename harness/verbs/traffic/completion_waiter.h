#pragma once

/// How a thread waits for completions of its groups.

#include <infiniband/verbs.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "greynic/verbs/endpoint.h"
#include "traffic/heartbeat.h"
#include "traffic/quick_clock.h"

namespace greynic::verbs {

/// Completions that are taken at a time.
inline constexpr int kPollBatch = 32;

/// CPU time of the calling thread, user and system.
[[nodiscard]] double thread_cpu_seconds();

/// Polls the CQs of one thread in turn, from that thread. In event modes it sleeps when they stay
/// empty.
class Waiter {
 public:
  Waiter(Endpoint& endpoint, std::uint32_t thread, CqSide side);

  /// Up to `capacity` completions of one CQ; 0 when none is there yet (in event modes after at most
  /// 50 ms of sleep), negative when the device does not answer.
  [[nodiscard]] int poll(ibv_wc* completions, int capacity) {
    const int count = poll_once(completions, capacity);
    return count != 0 || mode_ == CompletionMode::kPolling ? count : sleep(completions, capacity);
  }
  /// The same without sleeping.
  [[nodiscard]] int poll_once(ibv_wc* completions, int capacity) {
    for (std::size_t tried = 0; tried < queues_.size(); ++tried) {
      ibv_cq* const queue = queues_[next_];
      next_ = next_ + 1 == queues_.size() ? 0 : next_ + 1;
      const int count = ibv_poll_cq(queue, capacity, completions);
      if (count != 0) return count;
    }
    return 0;
  }
  [[nodiscard]] const std::vector<Endpoint::Group*>& groups() const { return groups_; }

 private:
  int sleep(ibv_wc* completions, int capacity);

  std::vector<Endpoint::Group*> groups_;
  std::vector<ibv_cq*> queues_;  ///< of the groups, on the side that is waited for
  CompletionChannel* channel_;
  CompletionMode mode_;
  std::size_t next_ = 0;
  std::optional<Heartbeat> heartbeat_;  ///< of the thread that polls, from its first sleep on
};

}  // namespace greynic::verbs
