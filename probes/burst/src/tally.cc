#include "greynic/burst/tally.h"

#include <algorithm>

namespace greynic::burst {

void Tally::add(const Burst& burst) {
  const std::uint64_t duration_ns = burst.end_ns - burst.start_ns;
  durations_.record(duration_ns);
  if (queues_.size() <= burst.queue) queues_.resize(burst.queue + std::size_t{1});
  OfQueue& queue = queues_[burst.queue];
  ++queue.bursts;
  queue.packets += burst.packets;
  queue.victims += burst.victim_packets();
  queue.peak_depth_bytes = std::max(queue.peak_depth_bytes, burst.peak_depth_bytes);
  const double us = static_cast<double>(duration_ns) * 1e-3;
  queue.seconds += us * 1e-6;
  for (std::size_t i = 0; i < kBoundsUs.size(); ++i) {
    queue.within_bounds[i] += us <= kBoundsUs[i] ? 1 : 0;
  }
  if (deepest_.size() == kDeepest) {
    if (burst.peak_depth_bytes <= deepest_.back().peak_depth_bytes) return;
    deepest_.pop_back();
  }
  const auto after = std::ranges::upper_bound(deepest_, burst.peak_depth_bytes, std::greater(),
                                              &Burst::peak_depth_bytes);
  deepest_.insert(after, burst);
}

std::vector<Burst> Tally::deepest() const {
  std::vector<Burst> out = deepest_;
  std::ranges::stable_sort(out, {}, &Burst::start_ns);
  return out;
}

double Tally::victim_share() const {
  std::uint64_t victims = 0, all = 0;
  for (const OfQueue& queue : queues_) {
    victims += queue.victims;
    all += queue.packets;
  }
  return all == 0 ? 0.0 : static_cast<double>(victims) / static_cast<double>(all);
}

}  // namespace greynic::burst
