#include <fmt/core.h>

#include <algorithm>

#include "greynic/burst_outlets/burst_outlets.h"
#include "greynic/files/output_file.h"
#include "greynic/outlets/trace_events.h"

namespace greynic::burst_outlets {
namespace {

std::string title_of(const burst::Burst& burst) {
  const burst::FlowShare& first = burst.flows.front();
  std::string title = fmt::format("{} {:.0f} %", to_string(first.flow), burst.share(first) * 100.0);
  if (burst.flows.size() > 1) title += fmt::format(" and {} more", burst.flows.size() - 1);
  return title;
}

outlets::TraceEvents::Details details_of(const burst::Burst& burst) {
  outlets::TraceEvents::Details details = {
      {"peak_depth_bytes", static_cast<double>(burst.peak_depth_bytes)},
      {"packets", static_cast<double>(burst.packets)},
      {"bytes", static_cast<double>(burst.bytes)},
      {"incast_degree", static_cast<double>(burst.incast_degree)}};
  constexpr std::size_t kMostFlows = 16;
  for (std::size_t i = 0; i < std::min(burst.flows.size(), kMostFlows); ++i) {
    details.emplace_back(to_string(burst.flows[i].flow), burst.share(burst.flows[i]));
  }
  return details;
}

}  // namespace

Result<void> write_timeline(const burst::Findings& findings, const std::string& path) {
  auto file = files::OutputFile::open(path);
  if (!file) return pass_on(file);
  Result<void> written;
  outlets::TraceEvents events([&](std::string_view text) {
    if (written) written = file->write(text);
  });
  constexpr std::uint32_t kProcess = 1;
  const auto track = [](std::uint32_t queue) {
    return outlets::TraceEvents::Track{kProcess, queue + 1};
  };
  events.name_process(kProcess, "queues");
  for (std::uint32_t i = 0; i < findings.queues.size(); ++i) {
    events.name_track(track(i), findings.queues[i].name);
  }
  std::uint64_t arrows = 0;
  for (std::size_t i = 0; i < findings.bursts.size(); ++i) {
    const burst::Burst& burst = findings.bursts[i];
    const auto start = static_cast<std::int64_t>(burst.start_ns);
    events.slice(track(burst.queue), title_of(burst), start,
                 static_cast<std::int64_t>(burst.end_ns - burst.start_ns), details_of(burst));
    for (const std::size_t j : burst.related) {
      if (j <= i) continue;
      const burst::Burst& other = findings.bursts[j];
      events.arrow(++arrows, "same cause", track(burst.queue), start, track(other.queue),
                   static_cast<std::int64_t>(other.start_ns));
    }
  }
  events.finish();
  return written ? file->finish() : written;
}

}  // namespace greynic::burst_outlets
