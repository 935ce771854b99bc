#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "greynic/files/json_file.h"
#include "greynic/trace/tracer.h"

namespace greynic::trace {
namespace {

using nlohmann::json;

json label_or_null(const Point& point) {
  return point.label.empty() ? json(nullptr) : json(point.label);
}

const char* direction(const Point& point) {
  return point.label.empty() ? "" : point.queued ? "queue" : "receive";
}

json number_or_null(bool known, double value) {
  return known ? json(std::llround(value)) : json(nullptr);
}

json line_of(const Hop& hop) {
  const bool timed = hop.timed > 0;
  // Times of one host come from one clock: there, what a histogram rounds is the whole error.
  return {{"flow", hop.flow.text},
          {"rule", hop.flow.rule},
          {"from", label_or_null(hop.from)},
          {"to", label_or_null(hop.to)},
          {"from_direction", direction(hop.from)},
          {"to_direction", direction(hop.to)},
          {"packets", hop.packets},
          {"segments", hop.segments},
          {"timed", hop.timed},
          {"lost", hop.lost},
          {"lost_reasons", hop.lost_reasons},
          {"lost_places", hop.lost_places},
          {"p50_ns", number_or_null(timed, hop.delays.quantile_ns(0.5))},
          {"p99_ns", number_or_null(timed, hop.delays.quantile_ns(0.99))},
          {"max_ns", number_or_null(timed, static_cast<double>(hop.max_ns))},
          {"error_ns",
           number_or_null(timed, std::ceil(hop.delays.error_ns(0.99) + hop.clock_error_ns))}};
}

std::string micros(bool known, double ns) {
  return known ? fmt::format("{:.2f}", ns / 1000) : std::string("-");
}

}  // namespace

std::string json_lines(const Report& report) {
  std::string text;
  for (const Hop& hop : report.hops) text += files::json_text(line_of(hop)) + "\n";
  json containers = json::array();
  for (const Usage& usage : report.containers) {
    containers.push_back(
        {{"container", usage.container},
         {"source", usage.source},
         {"cpu_seconds", usage.cpu_seconds},
         {"throttled_seconds",
          usage.throttled_seconds ? json(*usage.throttled_seconds) : json(nullptr)},
         {"memory_bytes", usage.memory_bytes ? json(*usage.memory_bytes) : json(nullptr)}});
  }
  const Summary& summary = report.summary;
  json last = {{"events", summary.events},
               {"events_lost", summary.events_lost},
               {"events_lost_why", summary.lost_why},
               {"events_inferred", summary.inferred},
               {"packets_of_other_flows", summary.folded},
               {"journeys", summary.journeys},
               {"cpu_share", summary.cpu_share},
               {"event_ns", summary.event_ns ? json(*summary.event_ns) : json(nullptr)},
               {"one_in", summary.one_in},
               {"engine", summary.engine},
               {"left_out", summary.left_out},
               {"containers", containers},
               {"hooks", summary.hooks}};
  if (!summary.clocks.empty()) last["clocks"] = summary.clocks;
  return text + files::json_text(last) + "\n";
}

std::string table_text(const Report& report) {
  std::string text;
  std::string flow;
  std::size_t widest = 4;
  for (const Hop& hop : report.hops) {
    widest = std::max({widest, hop.from.label.size(), hop.to.label.size()});
  }
  for (const Hop& hop : report.hops) {
    if (text.empty() || hop.flow.text != flow) {
      flow = hop.flow.text;
      text += fmt::format("{}{}\n", text.empty() ? "" : "\n", flow);
      text += fmt::format("  {:<{}}    {:<{}} {:>10} {:>8} {:>9} {:>9} {:>9}\n", "from", widest,
                          "to", widest, "packets", "lost", "p50 us", "p99 us", "max us");
    }
    const bool timed = hop.timed > 0;
    const auto name = [](const Point& point) { return point.label.empty() ? "-" : point.label; };
    text += fmt::format("  {:<{}} -> {:<{}} {:>10} {:>8} {:>9} {:>9} {:>9}\n", name(hop.from),
                        widest, name(hop.to), widest, hop.packets, hop.lost,
                        micros(timed, hop.delays.quantile_ns(0.5)),
                        micros(timed, hop.delays.quantile_ns(0.99)),
                        micros(timed, static_cast<double>(hop.max_ns)));
    for (const auto& [reason, count] : hop.lost_reasons) {
      text += fmt::format("  {:<{}}    lost: {} {}\n", "", widest, count, reason);
    }
  }
  if (!report.containers.empty()) text += "\n";
  for (const Usage& usage : report.containers) {
    text +=
        fmt::format("  {}: {:.2f} s of CPU{}{}\n", usage.container, usage.cpu_seconds,
                    usage.throttled_seconds.value_or(0) > 0
                        ? fmt::format(", {:.2f} s kept from it", *usage.throttled_seconds)
                        : "",
                    usage.memory_bytes ? fmt::format(", {} MiB", *usage.memory_bytes >> 20) : "");
  }
  const Summary& summary = report.summary;
  for (const auto& [why, count] : summary.left_out) {
    text += fmt::format("  without stamps: {} packets: {}\n", count, why);
  }
  text += fmt::format(
      "{}{} events of {} packets, {} lost, {:.2f} % of the CPUs{}\n", text.empty() ? "" : "\n",
      summary.events, summary.journeys, summary.events_lost, 100 * summary.cpu_share,
      summary.one_in > 1
          ? fmt::format("; to stay in the budget, one of {} packets is followed", summary.one_in)
          : "");
  return text;
}

}  // namespace greynic::trace
