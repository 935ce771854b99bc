#include "engine/meter.h"

#include <algorithm>
#include <cmath>

namespace greynic::twin {
namespace {

/// A run that is not sure yet may take so many times the packets that are usually enough.
constexpr std::uint64_t kPatience = 4;
/// Of an open loop. The quantile 0.999 has fifty trips beyond it; and whoever stops as soon as few
/// trips look alike, stops in quiet times.
constexpr std::size_t kFewestTrips = 50000;
constexpr double kOpenLoopError = 0.01;

}  // namespace

void Meter::stamp(Time t) {
  next_stamp_ += kPacketsPerStamp;
  stamps_.push_back(stamps_.empty() ? t : std::max(stamps_.back(), t));
  stamp_bytes_.push_back(world_.moved.payload);
}

statistics::SteadyEstimate Meter::estimate_intervals() const {
  std::vector<double> intervals(stamps_.size() - 1);
  for (std::size_t i = 0; i + 1 < stamps_.size(); ++i) intervals[i] = stamps_[i + 1] - stamps_[i];
  return statistics::estimate_steady(intervals);
}

bool Meter::knows_bandwidth(const RunLimits& limits, bool open_loop) {
  next_check_ = std::max(kFirstCheck, stamps_.size() + stamps_.size() / 4);
  if (limits.whole_duration) return false;
  const Moved& moved = world_.moved;
  if (moved.data_packets >= (open_loop ? kPatience : 1) * limits.most_packets) return true;
  estimate_ = estimate_intervals();
  if (open_loop) return estimate_.settled && knows_open_loop_latency();
  // A queue that is still building up can look settled. Every slot should have been used twice,
  // unless there are too many to wait for.
  const HostLoad& load = world_.load;
  const bool heard = moved.messages >= 2ULL * load.qp_count * load.sender_count * load.send_depth ||
                     moved.data_packets >= limits.most_packets / 4;
  return heard && estimate_.settled && estimate_.relative_error() <= limits.target_error;
}

bool Meter::knows_open_loop_latency() const {
  if (trips_.size() < kFewestTrips) return false;
  const statistics::SteadyEstimate trips = statistics::estimate_steady(trips_);
  return trips.settled && trips.relative_error() <= kOpenLoopError &&
         estimate_.relative_error() <= kOpenLoopError;
}

bool Meter::knows_trips(const RunLimits& limits) const {
  const statistics::SteadyEstimate steady = statistics::estimate_steady(trips_);
  const bool sure = steady.settled && steady.relative_error() <= limits.target_error;
  const std::uint64_t packets = world_.moved.data_packets;
  const bool long_enough = trips_.size() >= 1000 || packets >= limits.most_packets;
  if (!limits.whole_duration && long_enough && sure) return true;
  return packets >= kPatience * limits.most_packets;
}

BandwidthResult Meter::bandwidth(Time now) const {
  const Moved& moved = world_.moved;
  BandwidthResult result;
  result.virtual_time = now;
  result.packets = moved.data_packets;
  const std::uint64_t judged = moved.messages + moved.messages_lost;
  if (judged > 0) {
    result.loss_share = static_cast<double>(moved.messages_lost) / static_cast<double>(judged);
  }
  Time paused = 0;
  for (const Nic& nic : world_.nics) paused = std::max(paused, nic.counters.rx_pause);
  result.pause_share = now > 0 ? paused / now : 0;
  const double packets_per_message = world_.messages.packets_per_message();
  std::size_t first = 0;
  Time span = 0;
  if (stamps_.size() >= 3) {
    result.steady = estimate_intervals();
    first = std::min(result.steady.cut, stamps_.size() - 2);
    span = stamps_.back() - stamps_[first];
  }
  if (span <= 0) {
    // Too slow for statistics: what was moved, over the time it took.
    result.steady = {};
    result.packets_per_second = now > 0 ? static_cast<double>(moved.data_packets) / now * 1e9 : 0;
    result.gbps = now > 0 ? moved.payload * 8 / now : 0;
    result.messages_per_second = result.packets_per_second / packets_per_message;
    return result;
  }
  const auto packets = static_cast<double>((stamps_.size() - 1 - first) * kPacketsPerStamp);
  result.warmup_share = stamps_.back() > 0 ? stamps_[first] / stamps_.back() : 0;
  result.packets_per_second = packets / span * 1e9;
  result.gbps = (stamp_bytes_.back() - stamp_bytes_[first]) * 8 / span;
  result.messages_per_second = result.packets_per_second / packets_per_message;
  const double relative = result.steady.relative_error();
  result.packets_error = result.packets_per_second * relative;
  result.gbps_error = result.gbps * relative;
  result.messages_error = result.messages_per_second * relative;
  return result;
}

LatencyResult Meter::latency() const {
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
