#include "queue_pairs.h"

#include <fmt/core.h>

#include <algorithm>

namespace greynic::remote {

Result<QueuePairs::Taken> QueuePairs::take(std::uint64_t link, std::chrono::nanoseconds patience,
                                           const Join& join) {
  std::unique_lock lock(mutex_);
  const auto own = std::find_if(lanes_.begin(), lanes_.end(),
                                [&](const Lane& lane) { return lane.link == link; });
  if (own != lanes_.end()) {
    own->busy = true;
    return Taken(*this, *own);
  }
  const auto resting = [&] {
    return std::find_if(lanes_.begin(), lanes_.end(), [](const Lane& lane) { return !lane.busy; });
  };
  if (lanes_.size() < most_ && (resting() == lanes_.end() || resting()->link != 0)) {
    auto queue = RdmaQueue::create(*device_, RdmaReader::kPosted);
    // A device that gives no more leaves those that there are.
    if (!queue && lanes_.empty()) return pass_on(queue);
    if (queue) lanes_.emplace_front(RdmaReader(std::move(*queue), patience));
  }
  if (!given_back_.wait_for(lock, patience, [&] { return resting() != lanes_.end(); })) {
    return fail(ErrorCode::kIo,
                fmt::format("no queue pair was free in {} ms: other hosts use all {}; "
                            "allow more with --queue-pairs",
                            patience / std::chrono::milliseconds(1), lanes_.size()));
  }
  Lane& lane = *resting();
  lane.busy = true;
  lane.link = 0;
  Taken taken(*this, lane);
  lock.unlock();  // the host may take long to answer
  if (auto ready = lane.reader.begin_anew(patience); !ready) return pass_on(ready);
  if (auto joined = join(lane.reader.queue()); !joined) return pass_on(joined);
  lock.lock();
  lane.link = link;
  ++joined_;
  lock.unlock();
  return taken;
}

void QueuePairs::give_back(Lane& lane) {
  {
    const std::lock_guard lock(mutex_);
    lane.busy = false;
    const auto at =
        std::find_if(lanes_.begin(), lanes_.end(), [&](const Lane& one) { return &one == &lane; });
    // One that is joined to nobody is the first to be taken.
    lanes_.splice(lane.link == 0 ? lanes_.begin() : lanes_.end(), lanes_, at);
  }
  given_back_.notify_one();
}

void QueuePairs::forget(std::uint64_t link) {
  const std::lock_guard lock(mutex_);
  const auto own = std::find_if(lanes_.begin(), lanes_.end(),
                                [&](const Lane& lane) { return lane.link == link; });
  if (own == lanes_.end()) return;
  own->link = 0;
  if (!own->busy) lanes_.splice(lanes_.begin(), lanes_, own);
}

QueuePairs::Counts QueuePairs::counts() const {
  const std::lock_guard lock(mutex_);
  return {lanes_.size(), joined_};
}

}  // namespace greynic::remote
