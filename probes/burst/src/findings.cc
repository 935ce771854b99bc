#include "greynic/burst/findings.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

namespace greynic::burst {
namespace {

std::string for_people(std::uint64_t ns) {
  return greynic::to_string(std::chrono::nanoseconds(static_cast<std::int64_t>(ns)));
}

/// "10 Gbit/s"
std::string rate_for_people(std::uint64_t bits_per_second) {
  const auto rate = static_cast<double>(bits_per_second);
  if (rate >= 1e12) return fmt::format("{:g} Tbit/s", rate / 1e12);
  if (rate >= 1e9) return fmt::format("{:g} Gbit/s", rate / 1e9);
  if (rate >= 1e6) return fmt::format("{:g} Mbit/s", rate / 1e6);
  return fmt::format("{:g} kbit/s", rate / 1e3);
}

std::string line_of(const Findings& findings, const Burst& burst, bool named) {
  std::string out =
      fmt::format("{:>12}  {:>10}  {:>10}  {:>8}  {:>6}  ", for_people(burst.start_ns),
                  for_people(burst.end_ns - burst.start_ns),
                  to_string(Bytes{burst.peak_depth_bytes}), burst.packets, burst.incast_degree);
  constexpr std::size_t kMostFlows = 3;
  const std::size_t culprits = burst.flows.size() - burst.victims;
  for (std::size_t i = 0; i < std::min(culprits, kMostFlows); ++i) {
    out += fmt::format("{}{} {:.1f} %", i == 0 ? "" : ", ", to_string(burst.flows[i].flow),
                       burst.share(burst.flows[i]) * 100.0);
  }
  if (culprits > kMostFlows) out += fmt::format(", {} more", culprits - kMostFlows);
  if (burst.victims > 0)
    out += fmt::format("; {} victim{}", burst.victims, burst.victims == 1 ? "" : "s");
  if (named) out += fmt::format("; at {}", findings.queues[burst.queue].name);
  return out + "\n";
}

}  // namespace

nlohmann::json to_json(const Findings& findings, const Burst& burst) {
  nlohmann::json flows = nlohmann::json::array(), victims = nlohmann::json::array(),
                 indirect = nlohmann::json::array();
  for (const FlowShare& flow : burst.flows) {
    flows.push_back({{"flow", to_string(flow.flow)},
                     {"bytes", flow.bytes},
                     {"packets", flow.packets},
                     {"share", burst.share(flow)}});
  }
  for (const FlowShare& flow : burst.victim_flows()) victims.push_back(to_string(flow.flow));
  for (const FlowShare& flow : burst.indirect) {
    indirect.push_back({{"flow", to_string(flow.flow)}, {"bytes", flow.bytes}});
  }
  return {{"queue", findings.queues[burst.queue].name},
          {"start_ns", burst.start_ns},
          {"duration_ns", burst.end_ns - burst.start_ns},
          {"peak_depth_bytes", burst.peak_depth_bytes},
          {"packets", burst.packets},
          {"bytes", burst.bytes},
          {"incast_degree", burst.incast_degree},
          {"flows", flows},
          {"victims", victims},
          {"indirect", indirect},
          {"related", burst.related}};
}

nlohmann::json to_json(const Findings& findings) {
  nlohmann::json queues = nlohmann::json::array();
  for (const QueueName& queue : findings.queues) {
    queues.push_back({{"name", queue.name},
                      {"rate_bps", queue.bits_per_second},
                      {"threshold_bytes", queue.threshold_bytes}});
  }
  nlohmann::json out = {{"version", 1},
                        {"rtt_ns", findings.allowance.rtt.count()},
                        {"allowed_share", static_cast<double>(findings.allowance.share_e8) * 1e-8},
                        {"armed_at_enqueue", findings.mode == Mode::kArmedAtEnqueue},
                        {"queues", queues},
                        {"packets_seen", findings.packets_seen},
                        {"packets_marked", findings.packets_marked},
                        {"records_lost", findings.records_lost},
                        {"left_unseen", findings.left_unseen},
                        {"clock_ran_back", findings.clock_ran_back},
                        {"duration_ns", findings.duration_ns},
                        {"bursts", nlohmann::json::array()}};
  if (!findings.incomplete.empty()) out["incomplete"] = findings.incomplete;
  return out;
}

std::string to_text(const Findings& findings) {
  const double share = findings.packets_seen == 0 ? 0.0
                                                  : static_cast<double>(findings.packets_marked) /
                                                        static_cast<double>(findings.packets_seen);
  std::string out;
  if (findings.queues.size() == 1) {
    out +=
        fmt::format("queue       {}, threshold {} bytes ({:g} us at {})\n", findings.queues[0].name,
                    findings.queues[0].threshold_bytes, findings.allowance.delay_ns() / 1e3,
                    rate_for_people(findings.queues[0].bits_per_second));
  } else {
    out += fmt::format("queues      {}, threshold {:g} us\n", findings.queues.size(),
                       findings.allowance.delay_ns() / 1e3);
  }
  out += fmt::format("packets     {} in {}, {} took part in a burst ({:.2f} %)\n",
                     findings.packets_seen, for_people(findings.duration_ns),
                     findings.packets_marked, share * 100.0);
  if (findings.records_lost > 0) {
    out += fmt::format("lost        {} records, the ring was full\n", findings.records_lost);
  }
  const std::uint64_t bursts = findings.tally.bursts();
  out += fmt::format("bursts      {}\n", bursts);
  if (bursts == 0) return out;
  out += fmt::format("\n{:>12}  {:>10}  {:>10}  {:>8}  {:>6}  {}\n", "start", "duration", "peak",
                     "packets", "incast", "flows by share");
  const std::vector<Burst> deepest = findings.tally.deepest();
  for (const Burst& burst : deepest) out += line_of(findings, burst, findings.queues.size() > 1);
  if (bursts > deepest.size()) {
    out +=
        fmt::format("{:>12}  the {} deepest of {}; --json has all\n", "", deepest.size(), bursts);
  }
  return out;
}

}  // namespace greynic::burst
