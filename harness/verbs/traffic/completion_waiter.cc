#include "traffic/completion_waiter.h"

#include <ctime>

namespace greynic::verbs {
namespace {

constexpr std::int64_t kHybridSpinNs = 20'000;  // about one wake-up of a sleeping thread
constexpr std::chrono::milliseconds kLongestSleep{50};

}  // namespace

double thread_cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

Waiter::Waiter(Endpoint& endpoint, std::uint32_t thread, CqSide side)
    : channel_(endpoint.channel(thread, side)), mode_(endpoint.plan().completion) {
  for (Endpoint::Group& group : endpoint.groups()) {
    if (group.thread != thread) continue;
    groups_.push_back(&group);
    queues_.push_back((side == CqSide::kSend ? group.send_cq : group.receive_cq).handle());
  }
}

int Waiter::sleep(ibv_wc* completions, int capacity) {
  int count = 0;
  if (mode_ == CompletionMode::kHybrid) {
    for (const std::int64_t end = now_ns() + kHybridSpinNs; now_ns() < end;) {
      if ((count = poll_once(completions, capacity)) != 0) return count;
    }
  }
  for (ibv_cq* const queue : queues_) {
    if (ibv_req_notify_cq(queue, 0) != 0) return -1;
  }
  // What came between the last poll and the arming raises no event.
  if ((count = poll_once(completions, capacity)) != 0) return count;
  if (!heartbeat_) heartbeat_.emplace(kLongestSleep);
  if (!heartbeat_->beats() || !channel_->wait()) return -1;
  return poll_once(completions, capacity);
}

}  // namespace greynic::verbs
