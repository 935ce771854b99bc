#include "greynic/trace/outputs.h"

#include "greynic/outlets/influx.h"

namespace greynic::trace {
namespace {

constexpr double kNanosecond = 1e-9;

outlets::Labels labels_of(const Hop& hop) {
  return {{"flow", hop.flow.text},
          {"rule", hop.flow.rule},
          {"from", hop.from.label},
          {"to", hop.to.label}};
}

/// One bound for each power of two that is used, so that a series stays small.
std::vector<outlets::OpenMetrics::Bucket> powers_of_two(const DelayHistogram& delays) {
  std::vector<outlets::OpenMetrics::Bucket> made;
  std::uint64_t sum = 0;
  for (const auto& [bucket, count] : delays.buckets()) {
    sum += count;
    const std::size_t octave = bucket / 16;
    const auto behind = DelayHistogram::bounds(octave * 16 + 15).second;
    // Values are whole nanoseconds, so the last one of a bucket is its bound.
    const double bound = static_cast<double>(behind - 1) * kNanosecond;
    if (!made.empty() && made.back().upper_bound == bound) {
      made.back().count = sum;
    } else {
      made.push_back({.upper_bound = bound, .count = sum});
    }
  }
  return made;
}

}  // namespace

outlets::OpenMetrics metrics_of(const Report& report) {
  outlets::OpenMetrics made;
  for (const Hop& hop : report.hops) {
    const outlets::Labels labels = labels_of(hop);
    made.counter("greynic_hop_packets", "Packets of a flow that arrived at a point", labels,
                 static_cast<double>(hop.packets));
    for (const auto& [reason, count] : hop.lost_reasons) {
      outlets::Labels with_reason = labels;
      with_reason.emplace_back("reason", reason);
      made.counter("greynic_hop_lost_packets", "Packets that the kernel dropped on a hop",
                   with_reason, static_cast<double>(count));
    }
    if (hop.timed == 0) continue;
    made.histogram("greynic_hop_delay_seconds", "From one point to the next", labels,
                   powers_of_two(hop.delays), hop.delays.count(), hop.sum_ns * kNanosecond);
  }
  for (const Usage& usage : report.containers) {
    const outlets::Labels labels = {{"container", usage.container}};
    made.counter("greynic_container_cpu_seconds", "CPU time of a container since the trace began",
                 labels, usage.cpu_seconds);
    if (usage.throttled_seconds) {
      made.counter("greynic_container_throttled_seconds",
                   "Time that a container was kept from the CPUs by its limit", labels,
                   *usage.throttled_seconds);
    }
    if (usage.memory_bytes) {
      made.gauge("greynic_container_memory_bytes", "Memory of a container", labels,
                 static_cast<double>(*usage.memory_bytes));
    }
  }
  const Summary& summary = report.summary;
  made.counter("greynic_trace_events", "Packets seen at points", {},
               static_cast<double>(summary.events));
  made.counter("greynic_trace_lost_events", "Events that are missing", {},
               static_cast<double>(summary.events_lost));
  made.gauge("greynic_trace_cpu_ratio", "Share of all CPUs that tracing takes", {},
             summary.cpu_share);
  made.gauge("greynic_trace_one_in_ratio", "One of so many packets is followed", {},
             summary.one_in);
  return made;
}

std::string influx_lines(const Report& report, const std::string& host, std::int64_t unix_ns) {
  std::string text;
  for (const Hop& hop : report.hops) {
    outlets::InfluxPoint point("greynic_hop");
    point.tag("host", host).tag("flow", hop.flow.text).tag("rule", hop.flow.rule);
    point.tag("from", hop.from.label).tag("to", hop.to.label);
    point.count("packets", hop.packets).count("segments", hop.segments).count("lost", hop.lost);
    if (hop.timed > 0) {
      point.number("p50_ns", hop.delays.quantile_ns(0.5));
      point.number("p99_ns", hop.delays.quantile_ns(0.99));
      point.count("max_ns", hop.max_ns);
    }
    text += point.line(unix_ns);
  }
  for (const Usage& usage : report.containers) {
    outlets::InfluxPoint point("greynic_container");
    point.tag("host", host).tag("container", usage.container);
    point.number("cpu_seconds", usage.cpu_seconds);
    if (usage.throttled_seconds) point.number("throttled_seconds", *usage.throttled_seconds);
    if (usage.memory_bytes) point.count("memory_bytes", *usage.memory_bytes);
    text += point.line(unix_ns);
  }
  const Summary& summary = report.summary;
  outlets::InfluxPoint trace("greynic_trace");
  trace.tag("host", host).count("events", summary.events);
  trace.count("events_lost", summary.events_lost).number("cpu_share", summary.cpu_share);
  return text + trace.count("one_in", summary.one_in).line(unix_ns);
}

void JourneyTimeline::add(const JourneyEvent& event) {
  const auto [flow, new_flow] =
      flows_.try_emplace(event.flow.text, static_cast<std::uint32_t>(flows_.size() + 1));
  if (new_flow) events_.name_process(flow->second, event.flow.text);
  const auto [place, fresh] = journeys_.try_emplace(event.journey);
  Last& last = place->second;
  if (fresh) {
    last.track = static_cast<std::uint32_t>(journeys_.size());
    events_.name_track({flow->second, last.track}, "packet " + std::to_string(event.journey));
  }
  const outlets::TraceEvents::Track track{flow->second, last.track};
  if (event.lost) {
    events_.instant(track, "lost: " + event.reason, event.time_ns, {{"place", event.place}});
    return;
  }
  if (!fresh) {
    events_.slice(track, last.point + " -> " + event.point.label, last.time_ns,
                  event.time_ns - last.time_ns, {{"bytes", static_cast<double>(event.bytes)}});
  }
  last.time_ns = event.time_ns;
  last.point = event.point.label;
}

}  // namespace greynic::trace
