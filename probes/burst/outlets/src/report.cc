#include <fmt/core.h>

#include <algorithm>
#include <chrono>

#include "greynic/burst_outlets/burst_outlets.h"
#include "greynic/files/output_file.h"
#include "greynic/web/page.h"

namespace greynic::burst_outlets {

namespace {

std::string for_people(std::uint64_t ns) {
  return greynic::to_string(std::chrono::nanoseconds(static_cast<std::int64_t>(ns)));
}

void add_picture(const burst::Findings& findings, const burst::Burst& burst, web::Page& page) {
  nlohmann::json series = nlohmann::json::array();
  const double bins = static_cast<double>(burst::Burst::kProfileBins);
  for (std::size_t i = 0; i < burst.profile.size(); ++i) {
    nlohmann::json points = nlohmann::json::array();
    for (std::size_t bin = 0; bin < burst.profile[i].size(); ++bin) {
      const double at = static_cast<double>(burst.end_ns - burst.start_ns) * 1e-3 *
                        (static_cast<double>(bin) + 0.5) / bins;
      points.push_back({at, burst.profile[i][bin]});
    }
    const bool others = i == burst::Burst::kProfileFlows;
    series.push_back({{"name", others ? "others"
                                      : fmt::format("{} {:.1f} %", to_string(burst.flows[i].flow),
                                                    burst.share(burst.flows[i]) * 100.0)},
                      {"points", points}});
  }
  const burst::QueueName& queue = findings.queues[burst.queue];
  page.chart(
      {{"kind", "depth"}, {"series", series}, {"threshold", queue.threshold_bytes}},
      fmt::format("{}: {} after the first packet, {} long, {} bytes deep, {} packets of {} "
                  "senders. Bytes in the queue, by flow, of the packets that took part.",
                  queue.name, for_people(burst.start_ns), for_people(burst.end_ns - burst.start_ns),
                  burst.peak_depth_bytes, burst.packets, burst.incast_degree));
}

web::Table table_of(const burst::Findings& findings) {
  web::Table table({"queue", ">start (us)", ">duration (us)", ">peak (bytes)", ">packets",
                    ">senders", "flows by share", "victims"});
  constexpr std::size_t kMost = 2000, kMostFlows = 8;
  for (const burst::Burst& burst : findings.bursts) {
    if (table.size() == kMost) break;
    std::string flows, victims;
    for (std::size_t i = 0; i < std::min(kMostFlows, burst.flows.size() - burst.victims); ++i) {
      flows += fmt::format("{}{} {:.1f} %", i == 0 ? "" : ", ", to_string(burst.flows[i].flow),
                           burst.share(burst.flows[i]) * 100.0);
    }
    for (const burst::FlowShare& victim : burst.victim_flows()) {
      if (victims.size() < 400) victims += (victims.empty() ? "" : ", ") + to_string(victim.flow);
    }
    table.add({findings.queues[burst.queue].name,
               fmt::format("{:.1f}", static_cast<double>(burst.start_ns) * 1e-3),
               fmt::format("{:.1f}", static_cast<double>(burst.end_ns - burst.start_ns) * 1e-3),
               std::to_string(burst.peak_depth_bytes), std::to_string(burst.packets),
               std::to_string(burst.incast_degree), flows, victims});
  }
  return table;
}

}  // namespace

Result<void> write_report(const burst::Findings& findings, const std::string& source,
                          const std::string& path) {
  web::Page page("Bursts of " + source);
  page.fact("allowed delay", fmt::format("{:g} us", findings.allowance.delay_ns() * 1e-3));
  page.fact("time", for_people(findings.duration_ns));
  const auto number = [](std::uint64_t value) { return std::to_string(value); };
  page.card("bursts", number(findings.bursts.size()),
            fmt::format("99 % end within {:.1f} us", duration_us(findings, 0.99)));
  page.card("packets", number(findings.packets_seen), "seen");
  page.card("took part", number(findings.packets_marked),
            fmt::format("{} records lost", findings.records_lost));
  page.card("victims", web::percent(victim_share(findings)), "of the packets that took part");
  if (!findings.incomplete.empty()) page.paragraph(findings.incomplete);
  std::vector<const burst::Burst*> pictured;
  for (const burst::Burst& burst : findings.bursts) {
    if (!burst.profile.empty()) pictured.push_back(&burst);
  }
  std::ranges::stable_sort(pictured, std::greater(), &burst::Burst::peak_depth_bytes);
  if (pictured.size() > burst::Analyser::kMostProfiles)
    pictured.resize(burst::Analyser::kMostProfiles);
  page.section("depth", "The deepest bursts");
  for (const burst::Burst* burst : pictured) add_picture(findings, *burst, page);
  page.section("all", "All bursts");
  const web::Table table = table_of(findings);
  page.table(table);
  if (table.size() < findings.bursts.size()) {
    page.paragraph(fmt::format("The first {} of {}; greynic bursts --json has all.", table.size(),
                               findings.bursts.size()));
  }
  return files::write_text(path, page.text());
}

}  // namespace greynic::burst_outlets
