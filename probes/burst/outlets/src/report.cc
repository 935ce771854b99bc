#include <fmt/core.h>

#include <algorithm>
#include <chrono>

#include "greynic/burst_outlets/burst_outlets.h"

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

constexpr std::size_t kMostRows = 2000, kMostCulprits = 8;

}  // namespace

Report::Report()
    : table_({"queue", ">start (us)", ">duration (us)", ">peak (bytes)", ">packets", ">senders",
              "flows by share", "victims"}) {}

void Report::add(const burst::Findings& findings, const burst::Burst& burst) {
  if (!burst.profile.empty()) {
    const auto after = std::ranges::upper_bound(pictured_, burst.peak_depth_bytes, std::greater(),
                                                &burst::Burst::peak_depth_bytes);
    pictured_.insert(after, burst);
    if (pictured_.size() > burst::Analyser::kMostProfiles) pictured_.pop_back();
  }
  if (table_.size() == kMostRows) return;
  std::string flows, victims;
  for (std::size_t i = 0; i < std::min(kMostCulprits, burst.flows.size() - burst.victims); ++i) {
    flows += fmt::format("{}{} {:.1f} %", i == 0 ? "" : ", ", to_string(burst.flows[i].flow),
                         burst.share(burst.flows[i]) * 100.0);
  }
  for (const burst::FlowShare& victim : burst.victim_flows()) {
    if (victims.size() < 400) victims += (victims.empty() ? "" : ", ") + to_string(victim.flow);
  }
  table_.add({findings.queues[burst.queue].name,
              fmt::format("{:.1f}", static_cast<double>(burst.start_ns) * 1e-3),
              fmt::format("{:.1f}", static_cast<double>(burst.end_ns - burst.start_ns) * 1e-3),
              std::to_string(burst.peak_depth_bytes), std::to_string(burst.packets),
              std::to_string(burst.incast_degree), flows, victims});
}

Result<void> Report::write(const burst::Findings& findings, const std::string& source,
                           const std::string& path) const {
  web::Page page("Bursts of " + source);
  page.fact("allowed delay", fmt::format("{:g} us", findings.allowance.delay_ns() * 1e-3));
  page.fact("time", for_people(findings.duration_ns));
  const auto number = [](std::uint64_t value) { return std::to_string(value); };
  const burst::Tally& tally = findings.tally;
  page.card(
      "bursts", number(tally.bursts()),
      "99 % end within " + for_people(static_cast<std::uint64_t>(tally.duration_us(0.99) * 1e3)));
  page.card("packets", number(findings.packets_seen), "seen");
  page.card("took part", number(findings.packets_marked),
            fmt::format("{} records lost", findings.records_lost));
  page.card("victims", web::percent(tally.victim_share()), "of the packets that took part");
  if (!findings.incomplete.empty()) page.paragraph(findings.incomplete);
  page.section("depth", "The deepest bursts");
  for (const burst::Burst& burst : pictured_) add_picture(findings, burst, page);
  page.section("all", "All bursts");
  page.table(table_);
  if (table_.size() < tally.bursts()) {
    page.paragraph(fmt::format("The first {} of {}; greynic bursts --json has all.", table_.size(),
                               tally.bursts()));
  }
  return files::write_text(path, page.text());
}

}  // namespace greynic::burst_outlets
