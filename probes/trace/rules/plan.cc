#include <fmt/core.h>
#include <fnmatch.h>

#include <algorithm>

#include "greynic/files/json_file.h"
#include "greynic/trace/rules.h"
#include "kernel/hops.h"

namespace greynic::trace {
namespace {

/// Both prefixes hold: the longer one, when the shorter holds it; nothing when they are apart.
std::optional<Prefix> both(const Prefix& one, const Prefix& other) {
  const Prefix& wide = one.bits < other.bits ? one : other;
  const Prefix& narrow = one.bits < other.bits ? other : one;
  for (int bit = 0; bit < wide.bits; ++bit) {
    const auto mask = static_cast<std::uint8_t>(0x80 >> (bit % 8));
    if (((wide.address[bit / 8] ^ narrow.address[bit / 8]) & mask) != 0) return std::nullopt;
  }
  return narrow;
}

std::optional<Ports> both(const Ports& one, const Ports& other) {
  const Ports made(std::max(one.first, other.first), std::min(one.second, other.second));
  if (made.first > made.second) return std::nullopt;
  return made;
}

bool local_only(const Address& address) {
  const bool loopback_v4 = address[10] == 0xff && address[11] == 0xff && address[12] == 127;
  const bool link_local_v6 = address[0] == 0xfe && (address[1] & 0xc0) == 0x80;
  const bool loopback_v6 =
      std::all_of(address.begin(), address.end() - 1, [](auto byte) { return byte == 0; });
  return loopback_v4 || link_local_v6 || loopback_v6;
}

/// Prefixes one of which must be one of the two addresses; empty: no such wish.
Result<std::vector<Prefix>> container_prefixes(const Rule& rule, std::size_t index,
                                               const Rules& rules, const Topology& topology) {
  std::vector<Prefix> found;
  const std::string& name = rule.match.container;
  if (name.empty()) return found;
  bool known = false;
  for (const Device& device : topology.devices) {
    const auto& names = topology.places[device.place].containers;
    if (std::find(names.begin(), names.end(), name) == names.end()) continue;
    known = true;
    for (const Address& address : device.addresses) {
      if (!local_only(address)) found.push_back({address, 128});
    }
  }
  if (!found.empty()) return found;
  return files::bad_value(
      rules.source, fmt::format("/rules/{}/match/container", index),
      known ? fmt::format("container '{}' has no address yet", name)
            : fmt::format("there is no container '{}'; `greynic trace topology` lists them", name));
}

/// All ways to fulfil one rule: "either of the two" unfolds into both.
void unfold(const Rule& rule, std::size_t index, const std::vector<Prefix>& container, Plan& plan) {
  KernelMatch start{.rule = index,
                    .source = rule.match.source.value_or(Prefix()),
                    .destination = rule.match.destination.value_or(Prefix()),
                    .source_port = rule.match.source_port,
                    .destination_port = rule.match.destination_port,
                    .protocol = rule.match.protocol,
                    .vni = rule.match.vni,
                    .queue_pair = rule.match.queue_pair};
  std::vector<KernelMatch> ways = {start};
  const auto either = [&](const auto& wishes, auto source, auto destination) {
    if (wishes.empty()) return;
    std::vector<KernelMatch> next;
    for (const KernelMatch& way : ways) {
      for (const auto& wish : wishes) {
        for (const auto side : {source, destination}) {
          if (const auto narrowed = both(way.*side, wish)) {
            next.push_back(way);
            next.back().*side = *narrowed;
          }
        }
      }
    }
    ways = std::move(next);
  };
  std::vector<Prefix> address;
  if (rule.match.address) address.push_back(*rule.match.address);
  std::vector<Ports> port;
  if (rule.match.port) port.push_back(*rule.match.port);
  either(address, &KernelMatch::source, &KernelMatch::destination);
  either(container, &KernelMatch::source, &KernelMatch::destination);
  either(port, &KernelMatch::source_port, &KernelMatch::destination_port);
  plan.matches.insert(plan.matches.end(), ways.begin(), ways.end());
}

Result<void> find_points(const Rule& rule, std::size_t index, const Rules& rules,
                         const Topology& topology, Plan& plan) {
  const std::uint32_t bit = 1U << index;
  for (std::size_t p = 0; p < rule.points.size(); ++p) {
    const PointPattern& pattern = rule.points[p];
    const bool whole = pattern.device.find('/') != std::string::npos;
    bool any = false;
    for (std::size_t d = 0; d < topology.devices.size(); ++d) {
      const Device& device = topology.devices[d];
      if (!whole && device.place != 0) continue;
      const std::string label = whole ? topology.label(d) : device.name;
      if (fnmatch(pattern.device.c_str(), label.c_str(), 0) != 0) continue;
      any = true;
      if (pattern.receive) plan.points[d].first |= bit;
      if (pattern.queue) plan.points[d].second |= bit;
    }
    if (any) continue;
    return files::bad_value(rules.source, fmt::format("/rules/{}/points/{}/device", index, p),
                            fmt::format("there is no device '{}'; `greynic trace topology` lists "
                                        "them as PLACE/DEVICE",
                                        pattern.device));
  }
  if (rule.points.empty()) {
    for (auto& [receive, queue] : plan.points) {
      receive |= bit;
      queue |= bit;
    }
  }
  return {};
}

}  // namespace

Result<Plan> make_plan(const Rules& rules, const Topology& topology) {
  Plan plan;
  plan.points.resize(topology.devices.size());
  for (std::size_t i = 0; i < rules.rules.size(); ++i) {
    const auto container = container_prefixes(rules.rules[i], i, rules, topology);
    if (!container) return pass_on(container);
    unfold(rules.rules[i], i, *container, plan);
    if (const auto found = find_points(rules.rules[i], i, rules, topology, plan); !found) {
      return pass_on(found);
    }
  }
  if (plan.matches.size() > GREYNIC_RULES) {
    return fail(
        ErrorCode::kTooBig,
        fmt::format("{}: the rules unfold into {} matches, more than {}; use prefixes instead "
                    "of containers with many addresses",
                    rules.source, plan.matches.size(), GREYNIC_RULES));
  }
  return plan;
}

}  // namespace greynic::trace
