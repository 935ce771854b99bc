#include "engine/tables.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <set>

namespace greynic::trace {
namespace {

bool is_veth(const Device& device) { return device.kind == "veth" || device.kind == "netkit"; }

std::uint8_t kernel_kind(const Device& device) {
  if (device.loopback) return GREYNIC_LOOPBACK;
  if (is_veth(device)) return GREYNIC_VETH;
  if (device.kind.empty() || device.kind == "tun") return GREYNIC_PHYSICAL;
  return GREYNIC_VIRTUAL;
}

std::uint32_t set_of(std::uint64_t identity) {  // as device_by() in journeys.h
  return static_cast<std::uint32_t>(identity * 0x9E3779B97F4A7C15ULL >> 40) &
         (GREYNIC_DEVICE_SETS - 1);
}

/// Two words of an address, and of the mask of its first bits, as they lie in memory.
void put_prefix(const Prefix& prefix, __u64 (&value)[2], __u64 (&mask)[2]) {
  Address bits{};
  for (int i = 0; i < prefix.bits; ++i) {
    bits[i / 8] = static_cast<std::uint8_t>(bits[i / 8] | 0x80 >> (i % 8));
  }
  std::memcpy(value, prefix.address.data(), 16);
  std::memcpy(mask, bits.data(), 16);
}

/// Rules of the file as bits of their slots.
std::uint32_t slot_bits(std::uint32_t rules, const std::vector<std::uint32_t>& slots) {
  std::uint32_t bits = 0;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if ((rules >> i & 1U) != 0) bits |= 1U << slots[i];
  }
  return bits;
}

}  // namespace

greynic_rule kernel_rule(const KernelMatch& match, const Rule& rule, std::uint32_t slot) {
  greynic_rule made{};
  put_prefix(match.source, made.source, made.source_mask);
  put_prefix(match.destination, made.destination, made.destination_mask);
  made.source_ports[0] = match.source_port.first;
  made.source_ports[1] = match.source_port.second;
  made.destination_ports[0] = match.destination_port.first;
  made.destination_ports[1] = match.destination_port.second;
  made.vni = match.vni.value_or(GREYNIC_ANY);
  made.queue_pair = match.queue_pair.value_or(GREYNIC_ANY);
  made.protocol = match.protocol;
  made.file_rule = static_cast<__u8>(slot);
  made.sample = rule.sample;
  if (rule.timed) made.flags |= GREYNIC_TIMED;
  if (rule.loss) made.flags |= GREYNIC_LOSS;
  if (rule.flow == FlowDetail::kHosts) made.flags |= GREYNIC_BY_HOSTS;
  if (rule.flow == FlowDetail::kRule) made.flags |= GREYNIC_BY_RULE;
  return made;
}

void put_tunnel_ports(const Topology& topology, greynic_config& config) {
  std::set<std::uint16_t> ports = {4789};
  for (const Device& device : topology.devices) {
    if (device.kind == "vxlan" && device.tunnel_port != 0) ports.insert(device.tunnel_port);
  }
  std::fill(std::begin(config.vxlan_ports), std::end(config.vxlan_ports), 0);
  std::size_t at = 0;
  for (const std::uint16_t port : ports) {
    if (at < GREYNIC_TUNNEL_PORTS) config.vxlan_ports[at++] = port;
  }
}

std::uint64_t identity_of(const Topology& topology, std::size_t device) {
  const Device& one = topology.devices[device];
  return std::uint64_t{topology.places[one.place].inode} << 32 |
         static_cast<std::uint32_t>(one.index);
}

Result<void> DeviceNumbers::take(const Topology& topology) {
  for (std::size_t i = 0; i < topology.devices.size(); ++i) {
    const auto [place, fresh] =
        numbers_.try_emplace(identity_of(topology, i), static_cast<std::uint32_t>(known_.size()));
    if (fresh) known_.emplace_back();
    if (known_.size() > GREYNIC_DEVICES) {
      return fail(ErrorCode::kTooBig, "more devices than a trace can tell apart; start it anew");
    }
    known_[place->second].label = topology.label(i);
  }
  for (std::size_t i = 0; i < topology.devices.size(); ++i) {
    const auto& peer = topology.devices[i].peer;
    known_[of(topology, i)].peer = peer ? of(topology, *peer) : 0;
  }
  return {};
}

std::uint32_t DeviceNumbers::of(const Topology& topology, std::size_t device) const {
  const auto found = numbers_.find(identity_of(topology, device));
  return found == numbers_.end() ? 0 : found->second;
}

Point DeviceNumbers::point(std::uint32_t number) const {
  const std::uint32_t device = number >> 1;
  if (device >= known_.size()) return {};
  return {known_[device].label, (number & 1) == GREYNIC_TX};
}

std::uint32_t DeviceNumbers::peer(std::uint32_t number) const {
  return number < known_.size() ? known_[number].peer : 0;
}

Result<Tables> Tables::open(const bpf::Object& object) {
  auto devices = object.map<std::uint32_t, greynic_device_set>("devices");
  if (!devices) return pass_on(devices);
  auto rules = object.map<std::uint32_t, greynic_rule>("rules");
  if (!rules) return pass_on(rules);
  auto config = object.map<std::uint32_t, greynic_config>(".data.config");
  if (!config) return pass_on(config);
  auto places = object.map<std::uint32_t, KernelPlace>("places");
  if (!places) return pass_on(places);
  Tables made(*devices, *rules, *config, *places);
  made.config_.one_in = 1;
  return made;
}

Result<void> Tables::put(const Topology& topology, const DeviceNumbers& numbers, const Rules& rules,
                         const Plan& plan, const std::vector<std::uint32_t>& slots,
                         bool new_rules) {
  const std::uint32_t half = config_.half == 0 ? 1 : 0;
  std::map<std::uint32_t, greynic_device_set> sets;
  std::set<std::size_t> carriers;  // devices with macvlans above: what arrives may be copied
  for (const Device& device : topology.devices) {
    if (device.lower && device.kind == "macvlan") carriers.insert(*device.lower);
  }
  for (std::size_t i = 0; i < topology.devices.size(); ++i) {
    const Device& device = topology.devices[i];
    greynic_device made{};
    made.identity = identity_of(topology, i);
    made.number = numbers.of(topology, i);
    made.peer = numbers.peer(made.number);
    made.vni = device.segment.value_or(GREYNIC_ANY);
    made.kind = kernel_kind(device);
    made.ethernet = device.ethernet ? 1 : 0;
    if (device.bridge || carriers.count(i) > 0) made.copies |= 1 << GREYNIC_RX;
    if (device.kind == "bridge") made.copies |= 1 << GREYNIC_TX;
    made.rules[GREYNIC_RX] = slot_bits(plan.points[i].first, slots);
    made.rules[GREYNIC_TX] = slot_bits(plan.points[i].second, slots);
    greynic_device_set& set = sets[set_of(made.identity)];
    const auto free = std::find_if(std::begin(set.way), std::end(set.way),
                                   [](const greynic_device& way) { return way.identity == 0; });
    if (free == std::end(set.way)) {
      return fail(ErrorCode::kTooBig, fmt::format("no room for the device {} among {} others",
                                                  topology.label(i), topology.devices.size()));
    }
    *free = made;
    const auto put =
        places_.put(made.number, {.identity = made.identity, .peer = made.peer, .kind = made.kind});
    if (!put) return put;
  }
  const std::uint32_t base = half * GREYNIC_DEVICE_SETS;
  for (const auto& [set, used] : used_sets_[half]) {
    if (sets.count(set) == 0) {
      if (const auto put = devices_.put(base + set, {}); !put) return put;
    }
  }
  used_sets_[half].clear();
  for (const auto& [set, content] : sets) {
    if (const auto put = devices_.put(base + set, content); !put) return put;
    used_sets_[half][set] = true;
  }
  for (std::uint32_t i = 0; i < plan.matches.size(); ++i) {
    const KernelMatch& match = plan.matches[i];
    const auto put = rules_.put(half * GREYNIC_RULES + i,
                                kernel_rule(match, rules.rules[match.rule], slots[match.rule]));
    if (!put) return put;
  }
  put_tunnel_ports(topology, config_);
  config_.half = half;
  config_.rules = static_cast<std::uint32_t>(plan.matches.size());
  config_.slow_ns = rules.slow ? static_cast<std::uint64_t>(rules.slow->count()) : 0;
  config_.clockless =
      !rules.slow && std::none_of(rules.rules.begin(), rules.rules.end(),
                                  [](const Rule& one) { return one.timed || one.sample > 0; });
  if (new_rules) ++config_.epoch;
  ++config_.generation;
  return config_map_.put(0, config_);
}

Result<void> Tables::follow_one_in(std::uint32_t one_in) {
  config_.one_in = one_in;
  return config_map_.put(0, config_);
}

}  // namespace greynic::trace
