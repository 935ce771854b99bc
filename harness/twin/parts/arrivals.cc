#include "parts/arrivals.h"

#include <algorithm>

namespace greynic::twin {

void Arrivals::lay_out(std::span<Thread> threads) {
  if (world_.load.offered_rate <= 0) return;
  dues_.resize(world_.streams.size());
  for (std::uint32_t side = 0; side < world_.nics.size(); ++side) {
    const auto sends = [&](const Thread& thread) {
      return thread.side == side && thread.first_stream != kNone;
    };
    const auto senders = std::count_if(threads.begin(), threads.end(), sends);
    for (Thread& thread : threads) {
      if (!sends(thread)) continue;
      thread.mean_gap_ns = static_cast<double>(senders) * 1e9 / world_.load.offered_rate;
      thread.next_due = world_.random.exponential(thread.mean_gap_ns);
    }
  }
}

std::uint32_t Arrivals::take_due(Thread& thread, std::uint32_t stream, std::uint32_t most, Time t) {
  std::uint32_t count = 0;
  do {
    dues_[stream].push(thread.next_due);
    thread.next_due += world_.random.exponential(thread.mean_gap_ns);
    ++count;
  } while (count < most && thread.next_due <= t);
  return count;
}

}  // namespace greynic::twin
