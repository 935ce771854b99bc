#include "waiting.h"

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
    : channel_(endpoint.channel(thread, side)), mode_(endpoint.plan().completion), side_(side) {
  for (Endpoint::Group& group : endpoint.groups()) {
    if (group.thread == thread) groups_.push_back(&group);
  }
}

CompletionQueue& Waiter::queue(std::size_t group) const {
  return side_ == CqSide::kSend ? groups_[group]->send_cq : groups_[group]->receive_cq;
}

int Waiter::poll_once(ibv_wc* completions, int capacity) {
  for (std::size_t tried = 0; tried < groups_.size(); ++tried) {
    const std::size_t group = next_;
    next_ = next_ + 1 == groups_.size() ? 0 : next_ + 1;
    const int count = ibv_poll_cq(queue(group).handle(), capacity, completions);
    if (count != 0) return count;
  }
  return 0;
}

int Waiter::poll(ibv_wc* completions, int capacity) {
  int count = poll_once(completions, capacity);
  if (count != 0 || mode_ == CompletionMode::kPolling) return count;
  if (mode_ == CompletionMode::kHybrid) {
    for (const std::int64_t end = now_ns() + kHybridSpinNs; now_ns() < end;) {
      if ((count = poll_once(completions, capacity)) != 0) return count;
    }
  }
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    if (!queue(i).arm()) return -1;
  }
  // What came between the last poll and the arming raises no event.
  if ((count = poll_once(completions, capacity)) != 0) return count;
  if (!heartbeat_) heartbeat_.emplace(kLongestSleep);
  if (!heartbeat_->beats() || !channel_->wait()) return -1;
  return poll_once(completions, capacity);
}

}  // namespace greynic::verbs
