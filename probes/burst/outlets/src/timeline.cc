#include <fmt/core.h>

#include <algorithm>

#include "greynic/burst_outlets/burst_outlets.h"

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

constexpr std::uint32_t kProcess = 1;

outlets::TraceEvents::Track track(std::uint32_t queue) { return {kProcess, queue + 1}; }

}  // namespace

Result<Timeline> Timeline::open(const std::string& path) {
  auto file = files::OutputFile::open(path);
  if (!file) return pass_on(file);
  return Timeline(std::make_unique<Written>(std::move(*file)));
}

Timeline::Timeline(std::unique_ptr<Written> written)
    : written_(std::move(written)), events_([to = written_.get()](std::string_view text) {
        if (to->all) to->all = to->file.write(text);
      }) {}

void Timeline::add(const burst::Burst& burst) {
  const auto start = static_cast<std::int64_t>(burst.start_ns);
  events_.slice(track(burst.queue), title_of(burst), start,
                static_cast<std::int64_t>(burst.end_ns - burst.start_ns), details_of(burst));
  for (const std::size_t earlier : burst.related) {
    const auto from = related_.find(earlier);
    if (from == related_.end()) continue;
    events_.arrow(++arrows_, "same cause", track(from->second.queue),
                  static_cast<std::int64_t>(from->second.ns), track(burst.queue), start);
  }
  if (!burst.related.empty()) related_[bursts_] = {burst.queue, burst.start_ns};
  ++bursts_;
}

Result<void> Timeline::finish(const burst::Findings& findings) {
  events_.name_process(kProcess, "queues");
  for (std::uint32_t i = 0; i < findings.queues.size(); ++i) {
    events_.name_track(track(i), findings.queues[i].name);
  }
  events_.finish();
  return written_->all ? written_->file.finish() : written_->all;
}

}  // namespace greynic::burst_outlets
