#include "common/measured_traffic.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <random>
#include <set>

namespace greynic::flows {
namespace {

std::string cpu_model() {
  std::ifstream cpus("/proc/cpuinfo");
  for (std::string line; std::getline(cpus, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

Result<void> check_count(const Traffic& traffic) {
  if (traffic.flows.size() <= kMostFlows) return {};
  return fail(ErrorCode::kTooBig,
              fmt::format("traffic of {} flows: the source sends at most {}; give a traffic file "
                          "with so many, or fewer rules",
                          traffic.flows.size(), kMostFlows));
}

}  // namespace

std::string unsupported(const Configuration& configuration,
                        std::span<const std::string_view> factors, std::string_view device) {
  for (const auto& [name, value] : configuration.levels()) {
    if (std::find(factors.begin(), factors.end(), name) != factors.end()) continue;
    const FactorInfo* known = find_factor(name);
    if (known != nullptr && known->standard == value) continue;
    return fmt::format("{}={} means nothing to {}, which honours {}", name, to_string(value),
                       device, fmt::join(factors, ", "));
  }
  if (payload_of(configuration) > kMostPayloadBytes) {
    return fmt::format("message_bytes={}: one packet holds at most {} bytes",
                       payload_of(configuration), kMostPayloadBytes);
  }
  if (configuration.number("flow_count") > kMostFlows) {
    return fmt::format("flow_count={}: the source sends at most {} different packets",
                       configuration.number("flow_count"), kMostFlows);
  }
  return "";
}

MaskTrafficShape shape_of(const Configuration& configuration) {
  const auto count = [&](std::string_view factor) {
    return static_cast<std::uint32_t>(configuration.number(factor));
  };
  return {count("server_decap_masks"), count("rules_per_mask"), count("flow_count")};
}

std::vector<std::size_t> replay_order(const Traffic& traffic, std::size_t slots,
                                      std::uint64_t seed) {
  double all = 0.0;
  for (const TrafficFlow& flow : traffic.flows) all += flow.weight;
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < traffic.flows.size(); ++i) {
    const double share = all > 0 ? traffic.flows[i].weight / all : 0.0;
    const auto copies = std::max<long long>(1, std::llround(share * static_cast<double>(slots)));
    order.insert(order.end(), static_cast<std::size_t>(copies), i);
  }
  std::mt19937_64 random(seed);
  std::shuffle(order.begin(), order.end(), random);
  return order;
}

Result<std::vector<Frame>> frames_of(const Traffic& traffic, std::size_t slots,
                                     std::size_t payload_bytes, std::uint64_t seed,
                                     const TunnelEnd* end) {
  if (auto few = check_count(traffic); !few) return pass_on(few);
  std::vector<Frame> frames;
  for (const std::size_t i : replay_order(traffic, slots, seed)) {
    auto frame = frame_of(traffic.flows[i].packet, payload_bytes, end);
    if (!frame) return pass_on(frame);
    frames.push_back(std::move(*frame));
  }
  return frames;
}

Result<void> check_sendable(const Traffic& traffic, const TunnelEnd* end) {
  if (auto few = check_count(traffic); !few) return few;
  std::set<MatchField> fields;
  for (const TrafficFlow& flow : traffic.flows) {
    for (const auto& [field, value] : flow.packet.values()) fields.insert(field);
  }
  std::vector<std::string_view> missing;
  for (const MatchField field : fields) {
    Packet alone;
    alone.set(field, 1);
    if (!frame_of(alone, 0, end)) missing.push_back(info(field).name);
  }
  if (missing.empty()) return {};
  return fail(ErrorCode::kUnsupported,
              fmt::format("traffic sets {}, which this source cannot send; give traffic without",
                          fmt::join(missing, ", ")));
}

Result<Traffic> sendable(const Traffic* given, const RuleSet& rules, const TunnelEnd* end) {
  Traffic traffic = given != nullptr ? *given : traffic_of_rules(rules);
  if (auto can = check_sendable(traffic, end); !can) return pass_on(can);
  return traffic;
}

Result<void> for_each_port(const RuleSet& rules,
                           const std::function<Result<void>(const std::string& port)>& make) {
  for (const FlowRule& rule : rules.rules) {
    for (const Action& action : rule.actions) {
      if (action.kind != ActionKind::kForward) continue;
      if (auto made = make(action.text); !made) return made;
    }
  }
  return {};
}

Result<void> measure_each(
    std::span<const target::MeasureRequest> requests, const target::ObservationSink& sink,
    const std::function<Result<Observation>(const target::MeasureRequest&)>& measure) {
  for (std::size_t i = 0; i < requests.size(); ++i) {
    auto observation = measure(requests[i]);
    if (!observation) return pass_on(observation);
    if (!sink(i, std::move(*observation))) break;
  }
  return {};
}

Traffic traffic_of_rules(const RuleSet& rules) {
  Traffic traffic;
  for (const FlowRule& rule : rules.rules) {
    if (rule.table != 0) continue;
    Packet packet;
    for (const FieldMatch& part : rule.match.fields()) packet.set(part.field, part.value);
    traffic.flows.push_back({.packet = packet, .weight = rule.weight > 0 ? rule.weight : 1.0});
  }
  return traffic;
}

double payload_of(const Configuration& configuration) {
  return configuration.contains("message_bytes") ? configuration.number("message_bytes") : 64.0;
}

std::map<std::string, std::string> host_environment() {
  utsname host{};
  uname(&host);
  return {{"host", host.nodename}, {"kernel", host.release}, {"cpu", cpu_model()}};
}

}  // namespace greynic::flows
