#include "replay.h"

#include <sys/utsname.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <random>

namespace greynic::flows {
namespace {

std::string cpu_model() {
  std::ifstream cpus("/proc/cpuinfo");
  for (std::string line; std::getline(cpus, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

}  // namespace

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
