#include <algorithm>
#include <array>
#include <vector>

#include "greynic/burst_outlets/burst_outlets.h"
#include "greynic/outlets/influx.h"

namespace greynic::burst_outlets {
namespace {

constexpr std::array<double, 9> kBoundsUs = {10, 30, 100, 300, 1000, 3000, 10000, 100000, 1000000};

struct OfQueue {
  std::uint64_t bursts = 0, packets = 0, victims = 0, peak = 0;
  double seconds = 0.0;
  std::array<std::uint64_t, kBoundsUs.size()> by_duration{};
};

std::vector<OfQueue> by_queue(const burst::Findings& findings) {
  std::vector<OfQueue> all(findings.queues.size());
  for (const burst::Burst& burst : findings.bursts) {
    OfQueue& queue = all[burst.queue];
    const double us = static_cast<double>(burst.end_ns - burst.start_ns) * 1e-3;
    ++queue.bursts;
    queue.packets += burst.packets;
    queue.victims += burst.victim_packets();
    queue.peak = std::max(queue.peak, burst.peak_depth_bytes);
    queue.seconds += us * 1e-6;
    for (std::size_t i = 0; i < kBoundsUs.size(); ++i) {
      queue.by_duration[i] += us <= kBoundsUs[i] ? 1 : 0;
    }
  }
  return all;
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
  const auto queues = by_queue(findings);
  for (std::size_t i = 0; i < queues.size(); ++i) {
    const OfQueue& queue = queues[i];
    const outlets::Labels labels = {{"queue", findings.queues[i].name}};
    metrics.gauge("greynic_burst_threshold_bytes", "Depth over which a burst begins.", labels,
                  static_cast<double>(findings.queues[i].threshold_bytes));
    metrics.gauge("greynic_burst_peak_depth_bytes", "Greatest depth of a burst.", labels,
                  static_cast<double>(queue.peak));
    metrics.gauge("greynic_burst_victim_ratio", "Of the packets in bursts, those of victims.",
                  labels,
                  queue.packets == 0
                      ? 0.0
                      : static_cast<double>(queue.victims) / static_cast<double>(queue.packets));
    std::vector<outlets::OpenMetrics::Bucket> buckets;
    for (std::size_t j = 0; j < kBoundsUs.size(); ++j) {
      buckets.push_back({kBoundsUs[j] * 1e-6, queue.by_duration[j]});
    }
    metrics.histogram("greynic_burst_duration_seconds", "How long bursts lasted.", labels, buckets,
                      queue.bursts, queue.seconds);
  }
  return metrics;
}

std::string influx_lines(const burst::Findings& findings, std::size_t first) {
  const auto time = [&](std::uint64_t ns) {
    return std::optional(findings.origin_unix_ns + static_cast<std::int64_t>(ns));
  };
  std::string lines;
  for (std::size_t i = first; i < findings.bursts.size(); ++i) {
    const burst::Burst& burst = findings.bursts[i];
    lines += outlets::InfluxPoint("greynic_burst")
                 .tag("queue", findings.queues[burst.queue].name)
                 .text("flow", to_string(burst.flows.front().flow))
                 .number("share", burst.share(burst.flows.front()))
                 .count("duration_ns", burst.end_ns - burst.start_ns)
                 .count("peak_depth_bytes", burst.peak_depth_bytes)
                 .count("packets", burst.packets)
                 .count("bytes", burst.bytes)
                 .count("incast_degree", burst.incast_degree)
                 .count("victims", burst.victims)
                 .line(time(burst.start_ns));
  }
  lines += outlets::InfluxPoint("greynic_burst_total")
               .count("packets_seen", findings.packets_seen)
               .count("packets_marked", findings.packets_marked)
               .count("records_lost", findings.records_lost)
               .count("bursts", findings.bursts.size())
               .line(time(findings.duration_ns));
  return lines;
}

}  // namespace greynic::burst_outlets
