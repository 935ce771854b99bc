#include <algorithm>
#include <cmath>

#include "engine/engine.h"

/// Open loop: messages are due at times that no completion delays, and wait for their thread, for a
/// slot in a queue, and for everything behind it. Each sending host asks for `offered_rate`
/// messages a second in all; its threads split them evenly, and the times of each are a Poisson
/// process, so that those of the host are one too. A thread takes its QPs in turn, and by one
/// doorbell up to `post_batch` messages when so many are due. When a host asks for more than is
/// carried, latency grows as long as the run lasts, and the run says that it did not settle.

namespace greynic::twin {
namespace {

/// The quantile 0.999 has fifty of them beyond it; and whoever stops as soon as few trips look
/// alike, stops in quiet times.
constexpr std::size_t kFewestTrips = 50000;
constexpr double kTargetError = 0.01;

}  // namespace

void Engine::lay_out_arrivals() {
  if (w_.offered_rate <= 0) return;
  dues_.resize(streams_.size());
  for (std::uint32_t side = 0; side < nics_.size(); ++side) {
    const auto sends = [&](const Thread& thread) {
      return thread.side == side && thread.first_stream != kNone;
    };
    const auto senders = std::count_if(threads_.begin(), threads_.end(), sends);
    for (Thread& thread : threads_) {
      if (!sends(thread)) continue;
      thread.mean_gap_ns = static_cast<double>(senders) * 1e9 / w_.offered_rate;
      thread.next_due = random_.exponential(thread.mean_gap_ns);
    }
  }
}

/// What is due of a thread at t goes to one stream, up to `most`; at least one is. Returns how
/// many.
std::uint32_t Engine::take_due(Thread& thread, std::uint32_t stream, std::uint32_t most, Time t) {
  std::uint32_t count = 0;
  do {
    dues_[stream].push(thread.next_due);
    thread.next_due += random_.exponential(thread.mean_gap_ns);
    ++count;
  } while (count < most && thread.next_due <= t);
  return count;
}

bool Engine::knows_latency() const {
  if (trips_.size() < kFewestTrips) return false;
  const statistics::SteadyEstimate trips = statistics::estimate_steady(trips_);
  return trips.settled && trips.relative_error() <= kTargetError &&
         estimate_.relative_error() <= kTargetError;
}

LatencyResult Engine::latency() const {
  LatencyResult result;
  result.steady = statistics::estimate_steady(trips_);
  // A first trip that found caches cold is warm-up; a trip that simply took long is data.
  const std::size_t cut = result.steady.settled ? result.steady.cut : 0;
  for (std::size_t i = cut; i < trips_.size(); ++i) {
    result.histogram.record(static_cast<std::uint64_t>(std::llround(trips_[i])));
  }
  result.mean_ns = result.steady.mean;
  result.mean_error_ns = result.steady.standard_error;
  return result;
}

}  // namespace greynic::twin
