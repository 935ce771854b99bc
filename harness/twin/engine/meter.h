#pragma once

/// What a run has measured: bandwidth from the time stamps of packets, latency from round trips,
/// and whether both are known well enough to stop.

#include <cstdint>
#include <vector>

#include "greynic/core/histogram.h"
#include "greynic/statistics/steady_state.h"
#include "parts/world.h"

namespace greynic::twin {

struct RunLimits {
  Time duration = 1e9;                   ///< virtual ns
  std::uint64_t most_packets = 2000000;  ///< data packets
  double target_error = 0.001;           ///< stop when the mean is this sure (relative)
  bool whole_duration = false;           ///< do not stop before the duration is over
};

/// Payload moved, from packet time stamps after the warm-up was cut.
struct BandwidthResult {
  double gbps = 0, gbps_error = 0;
  double packets_per_second = 0, packets_error = 0;
  double messages_per_second = 0, messages_error = 0;
  statistics::SteadyEstimate steady;
  double warmup_share = 0;
  double pause_share = 0;  ///< of the time, in which a sender was told to pause
  double loss_share = 0;   ///< of messages
  Time virtual_time = 0;
  std::uint64_t packets = 0;
};

struct LatencyResult {
  LatencyHistogram histogram;
  double mean_ns = 0, mean_error_ns = 0;
  statistics::SteadyEstimate steady;
};

class Meter {
 public:
  explicit Meter(const World& world) : world_(world) {}

  /// A data packet is in memory. `world` is the one of the constructor: this is the innermost loop.
  void record(World& world, Time t, double payload) {
    world.moved.payload += payload;
    if (++world.moved.data_packets == next_stamp_) stamp(t);
  }
  /// Of a round trip what Engine::run_latency() says, or in an open loop the time from when a message was due to its completion.
  void record_trip(Time ns) { trips_.push_back(ns); }
  [[nodiscard]] std::size_t trip_count() const { return trips_.size(); }

  /// Enough was recorded since bandwidth was judged last to do so again.
  [[nodiscard]] bool judgement_is_due() const { return stamps_.size() >= next_check_; }
  /// Is bandwidth known well enough, in an open loop latency too, or does it take too long?
  [[nodiscard]] bool knows_bandwidth(const RunLimits& limits, bool open_loop);
  /// The same for round trips.
  [[nodiscard]] bool knows_trips(const RunLimits& limits) const;

  [[nodiscard]] BandwidthResult bandwidth(Time now) const;
  [[nodiscard]] LatencyResult latency() const;

 private:
  static constexpr std::size_t kPacketsPerStamp = 64;
  static constexpr std::size_t kFirstCheck = 128;

  void stamp(Time t);
  [[nodiscard]] statistics::SteadyEstimate estimate_intervals() const;
  [[nodiscard]] bool knows_open_loop_latency() const;

  const World& world_;
  std::vector<Time> stamps_;  ///< when every 64th data packet was in memory
  std::uint64_t next_stamp_ = kPacketsPerStamp;
  std::vector<double> stamp_bytes_;
  std::size_t next_check_ = kFirstCheck;
  statistics::SteadyEstimate estimate_;
  std::vector<Time> trips_;
};

}  // namespace greynic::twin
