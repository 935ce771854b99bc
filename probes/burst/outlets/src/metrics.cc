#include <optional>
#include <vector>

#include "greynic/burst_outlets/burst_outlets.h"
#include "greynic/outlets/influx.h"

namespace greynic::burst_outlets {
namespace {

std::optional<std::int64_t> time(const burst::Findings& findings, std::uint64_t ns) {
  return findings.origin_unix_ns + static_cast<std::int64_t>(ns);
}

}  // namespace

outlets::OpenMetrics metrics_of(const burst::Findings& findings) {
  outlets::OpenMetrics metrics;
  const auto total = [&](const char* name, const char* help, std::uint64_t value) {
    metrics.counter(name, help, {}, static_cast<double>(value));
  };
  total("greynic_burst_packets_seen_total", "Packets that left the queues.", findings.packets_seen);
  total("greynic_burst_packets_marked_total", "Packets that took part in a burst.",
        findings.packets_marked);
  total("greynic_burst_records_lost_total", "Marked packets whose record was lost.",
        findings.records_lost);
  for (std::size_t i = 0; i < findings.queues.size(); ++i) {
    const auto& queues = findings.tally.queues();
    const burst::Tally::OfQueue queue = i < queues.size() ? queues[i] : burst::Tally::OfQueue{};
    const outlets::Labels labels = {{"queue", findings.queues[i].name}};
    metrics.gauge("greynic_burst_threshold_bytes", "Depth over which a burst begins.", labels,
                  static_cast<double>(findings.queues[i].threshold_bytes));
    metrics.gauge("greynic_burst_peak_depth_bytes", "Greatest depth of a burst.", labels,
                  static_cast<double>(queue.peak_depth_bytes));
    metrics.gauge("greynic_burst_victim_ratio", "Of the packets in bursts, those of victims.",
                  labels,
                  queue.packets == 0
                      ? 0.0
                      : static_cast<double>(queue.victims) / static_cast<double>(queue.packets));
    std::vector<outlets::OpenMetrics::Bucket> buckets;
    for (std::size_t j = 0; j < burst::Tally::kBoundsUs.size(); ++j) {
      buckets.push_back({burst::Tally::kBoundsUs[j] / 1e6, queue.within_bounds[j]});
    }
    metrics.histogram("greynic_burst_duration_seconds", "How long bursts lasted.", labels, buckets,
                      queue.bursts, queue.seconds);
  }
  return metrics;
}

std::string influx_line(const burst::Findings& findings, const burst::Burst& burst) {
  return outlets::InfluxPoint("greynic_burst")
      .tag("queue", findings.queues[burst.queue].name)
      .text("flow", to_string(burst.flows.front().flow))
      .number("share", burst.share(burst.flows.front()))
      .count("duration_ns", burst.end_ns - burst.start_ns)
      .count("peak_depth_bytes", burst.peak_depth_bytes)
      .count("packets", burst.packets)
      .count("bytes", burst.bytes)
      .count("incast_degree", burst.incast_degree)
      .count("victims", burst.victims)
      .line(time(findings, burst.start_ns));
}

std::string influx_totals(const burst::Findings& findings) {
  return outlets::InfluxPoint("greynic_burst_total")
      .count("packets_seen", findings.packets_seen)
      .count("packets_marked", findings.packets_marked)
      .count("records_lost", findings.records_lost)
      .count("bursts", findings.tally.bursts())
      .line(time(findings, findings.duration_ns));
}

}  // namespace greynic::burst_outlets
