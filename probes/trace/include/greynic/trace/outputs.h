#pragma once

/// A report for other programs: metrics for Prometheus, lines for InfluxDB, journeys as a timeline
/// for Perfetto.

#include <cstdint>
#include <map>
#include <string>

#include "greynic/outlets/open_metrics.h"
#include "greynic/outlets/trace_events.h"
#include "greynic/trace/tracer.h"

namespace greynic::trace {

/// greynic_hop_delay_seconds (a histogram), greynic_hop_packets, greynic_hop_lost_packets by reason,
/// and what tracing itself costs and misses.
[[nodiscard]] outlets::OpenMetrics metrics_of(const Report& report);

/// One point a hop ("greynic_hop") and one of the trace ("greynic_trace").
[[nodiscard]] std::string influx_lines(const Report& report, const std::string& host,
                                       std::int64_t unix_ns);

/// Journeys that were kept, each a track: a slice from each point to the next, a mark where a packet
/// died. Points must come in the order of their times within a journey, as the kernel sends them.
class JourneyTimeline {
 public:
  explicit JourneyTimeline(outlets::TraceEvents::Sink sink) : events_(std::move(sink)) {}
  void add(const JourneyEvent& event);
  void finish() { events_.finish(); }

 private:
  struct Last {
    std::uint32_t track = 0;
    std::int64_t time_ns = 0;
    std::string point;
  };
  outlets::TraceEvents events_;
  std::map<std::uint64_t, Last> journeys_;
  std::map<std::string, std::uint32_t> flows_;  ///< a process of the timeline for each
};

}  // namespace greynic::trace
