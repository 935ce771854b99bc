#include "in_band/path.h"

#include <fmt/core.h>
#include <fnmatch.h>
#include <linux/ethtool.h>
#include <linux/if.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <functional>
#include <set>

#include "greynic/files/json_file.h"
#include "greynic/os/network_namespace.h"

namespace greynic::trace {
namespace {

constexpr std::uint8_t kTcp = 6;

bool is_hardware(const Device& device) { return device.kind.empty() && !device.loopback; }

/// What a tunnel puts in front of a packet of IP, at most; 0: the device is no tunnel.
std::uint32_t tunnel_bytes(const Device& device) {
  constexpr std::uint32_t kIpv4 = 20, kIpv6 = 40, kEthernet = 14, kUdp = 8, kHeader = 8, kGre = 16;
  if (device.kind == "vxlan" || device.kind == "geneve") {
    return (device.over_ipv6 ? kIpv6 : kIpv4) + kUdp + kHeader + kEthernet;
  }
  if (device.kind == "gretap") return kIpv4 + kGre + kEthernet;
  if (device.kind == "gre") return kIpv4 + kGre;
  if (device.kind == "ipip" || device.kind == "sit") return kIpv4;
  if (device.kind.rfind("ip6", 0) == 0) return kIpv6 + kGre + kEthernet;
  return 0;
}

/// Does a device of the calling thread's namespace merge packets that it receives?
bool merges(const std::string& device) {
  const int descriptor = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ethtool_value value{.cmd = ETHTOOL_GGRO, .data = 0};
  ifreq request{};
  std::strncpy(request.ifr_name, device.c_str(), IFNAMSIZ - 1);
  request.ifr_data = reinterpret_cast<char*>(&value);
  const bool known = ioctl(descriptor, SIOCETHTOOL, &request) == 0;
  close(descriptor);
  return known && value.data != 0;
}

bool netfilter_of_bridges() {
  std::ifstream file("/proc/sys/net/bridge/bridge-nf-call-iptables");
  int on = 0;
  return file >> on && on != 0;
}

/// Answers a question inside the namespace of a device; false when it is gone.
bool asked_inside(const Topology& topology, std::size_t device,
                  const std::function<bool()>& question) {
  const auto place =
      os::NetworkNamespace::open(topology.places[topology.devices[device].place].path);
  bool answer = false;
  return place && place->inside([&] { answer = question(); }) && answer;
}

/// Checks of one rule. Each gives the error, or nothing.
struct Checks {
  const Rules& rules;
  const Topology& topology;
  const Rule& rule;
  InBandPath path;

  [[nodiscard]] std::string place(const std::string& field) const {
    return fmt::format("/rules/{}/{}", path.rule, field);
  }
  [[nodiscard]] tl::unexpected<Error> wrong(const std::string& field,
                                            const std::string& why) const {
    return files::bad_value(rules.source, place(field), why);
  }
  [[nodiscard]] tl::unexpected<Error> refused(const std::string& why) const {
    return fail(ErrorCode::kRefused,
                fmt::format("rule '{}': packets are not traced in band: {}", rule.name, why));
  }

  [[nodiscard]] Result<void> check_match() const {
    const Match& match = rule.match;
    for (const auto& [field, prefix] :
         {std::pair{"source", match.source}, std::pair{"destination", match.destination},
          std::pair{"address", match.address}}) {
      constexpr Address kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
      if (!prefix || std::equal(kMapped.begin(), kMapped.begin() + 12, prefix->address.begin())) {
        continue;
      }
      return wrong(fmt::format("match/{}", field),
                   "stamps ride in options of IPv4; trace IPv6 out of "
                   "band");
    }
    if (!match.vni) return {};
    return wrong("match/vni",
                 "the points of an in-band path say already which network it is; remove it");
  }

  Result<void> find_points() {
    if (rule.points.size() < 2 || rule.points.size() > GREYNIC_PATH_POINTS) {
      return wrong("points",
                   fmt::format("an in-band path has 2 to {} points, in the order in which "
                               "packets pass them",
                               GREYNIC_PATH_POINTS));
    }
    for (std::size_t p = 0; p < rule.points.size(); ++p) {
      const PointPattern& pattern = rule.points[p];
      const std::string field = fmt::format("points/{}", p);
      if (pattern.receive == pattern.queue) {
        return wrong(field, "name the direction of this point: \"queue\" or \"receive\"");
      }
      const bool whole = pattern.device.find('/') != std::string::npos;
      std::vector<std::size_t> found;
      for (std::size_t d = 0; d < topology.devices.size(); ++d) {
        if (!whole && topology.devices[d].place != 0) continue;
        const std::string label = whole ? topology.label(d) : topology.devices[d].name;
        if (fnmatch(pattern.device.c_str(), label.c_str(), 0) == 0) found.push_back(d);
      }
      if (found.size() != 1) {
        return wrong(field + "/device",
                     fmt::format("'{}' names {} devices, and a point of an in-band "
                                 "path is one",
                                 pattern.device, found.size()));
      }
      path.points.push_back({found[0], pattern.queue});
    }
    return {};
  }

  [[nodiscard]] Result<void> check_wires() const {
    bool in_tunnel = false;
    for (std::size_t p = 0; p < path.points.size(); ++p) {
      const Device& device = topology.devices[path.points[p].device];
      const bool last = p + 1 == path.points.size();
      const bool end = p == 0 || last;
      const std::string label = topology.label(path.points[p].device);
      if (is_hardware(device) && (!end || (last && in_tunnel))) {
        return refused(
            fmt::format("{} is a real NIC, and stamps must be out of a packet before one; "
                        "end the path before it",
                        label));
      }
      if (tunnel_bytes(device) != 0) {
        in_tunnel = path.points[p].queued;
        if (in_tunnel && last) continue;
        if (in_tunnel && device.lower && is_hardware(topology.devices[*device.lower])) {
          return refused(fmt::format("{} sends through {}, a real NIC; end the path at {}", label,
                                     topology.label(*device.lower), label));
        }
      }
    }
    return {};
  }

  Result<void> check_size() {
    const std::uint32_t carried = smallest_mtu(path, topology);
    const Device& first = topology.devices[path.points[0].device];
    path.most_bytes = rule.most_bytes.value_or(static_cast<std::uint32_t>(first.mtu));
    if (path.most_bytes + GREYNIC_STAMP_BYTES <= carried) return {};
    const std::uint32_t room = carried > GREYNIC_STAMP_BYTES ? carried - GREYNIC_STAMP_BYTES : 0;
    return refused(
        fmt::format("a packet of {} bytes at {} grows by {}, and the path carries {}: it would be "
                    "dropped; give "
                    "the rule \"most_bytes\": {}, and larger packets are left as they are",
                    path.most_bytes, topology.label(path.points[0].device), GREYNIC_STAMP_BYTES,
                    carried, room));
  }

  /// TCP hands several segments down as one packet, whatever `ethtool -K` says, and GRO makes one of
  /// several: each segment of it would carry the same stamps.
  [[nodiscard]] Result<void> check_large_packets() const {
    if (rule.match.protocol != 0 && rule.match.protocol != kTcp) return {};
    std::size_t device = path.points[0].device;
    const auto& peer = topology.devices[device].peer;
    const bool sent_here = path.points[0].queued || peer;
    if (!path.points[0].queued && peer) device = *peer;
    const std::string& name = topology.devices[device].name;
    const bool large = sent_here ? topology.devices[device].gso_segments > 1
                                 : asked_inside(topology, device, [&] { return merges(name); });
    if (!large) return {};
    const std::string remedy = sent_here ? fmt::format("ip link set dev {} gso_max_segs 1", name)
                                         : fmt::format("ethtool -K {} gro off", name);
    return refused(
        fmt::format("{} takes large packets of TCP ({}), whose segments would all carry the "
                    "same stamps; `{}` there, or match another protocol",
                    topology.label(device), sent_here ? "GSO" : "GRO", remedy));
  }

  [[nodiscard]] Result<void> check_netfilter() const {
    if (rule.through_netfilter) return {};
    for (const auto& at : path.points) {
      const auto& bridge = topology.devices[at.device].bridge;
      if (!bridge) continue;
      const bool shown = topology.devices[*bridge].netfilter ||
                         asked_inside(topology, *bridge, netfilter_of_bridges);
      if (!shown) continue;
      return refused(fmt::format(
          "the bridge {} shows packets to netfilter (br_netfilter), whose rules may drop what "
          "carries "
          "an option; `sysctl net.bridge.bridge-nf-call-iptables=0` there, or give the rule "
          "\"through_netfilter\": true when its rules let options pass",
          topology.label(*bridge)));
    }
    return {};
  }

  void find_guards() {
    std::set<std::size_t> places, bridges, passed;
    for (const auto& at : path.points) {
      places.insert(topology.devices[at.device].place);
      if (const auto& bridge = topology.devices[at.device].bridge) bridges.insert(*bridge);
      if (at.queued) passed.insert(at.device);
    }
    for (std::size_t d = 0; d < topology.devices.size(); ++d) {
      const Device& device = topology.devices[d];
      if (passed.count(d) > 0 || !device.ethernet) continue;
      const bool other_port = device.bridge && bridges.count(*device.bridge) > 0;
      if (other_port || (is_hardware(device) && places.count(device.place) > 0)) {
        path.guards.push_back(d);
      }
    }
  }
};

}  // namespace

std::uint32_t smallest_mtu(const InBandPath& path, const Topology& topology) {
  std::uint32_t smallest = 65535;
  std::uint32_t around = 0;  // what tunnels have put in front
  const auto take = [&](std::size_t device) {
    const auto mtu = static_cast<std::uint32_t>(std::max(0, topology.devices[device].mtu));
    smallest = std::min(smallest, mtu > around ? mtu - around : 0);
  };
  for (const auto& at : path.points) {
    const Device& device = topology.devices[at.device];
    const std::uint32_t tunnel = tunnel_bytes(device);
    if (!at.queued) around -= std::min(around, tunnel);
    take(at.device);
    if (device.peer) take(*device.peer);
    if (at.queued) around += tunnel;
    if (at.queued && tunnel != 0 && device.lower) take(*device.lower);
  }
  return smallest;
}

Result<std::vector<InBandPath>> make_in_band_paths(const Rules& rules, const Topology& topology) {
  std::vector<InBandPath> made;
  for (std::size_t i = 0; i < rules.rules.size(); ++i) {
    Checks checks{
        .rules = rules, .topology = topology, .rule = rules.rules[i], .path = {.rule = i}};
    if (auto done = checks.check_match(); !done) return pass_on(done);
    if (auto done = checks.find_points(); !done) return pass_on(done);
    if (auto done = checks.check_wires(); !done) return pass_on(done);
    if (auto done = checks.check_size(); !done) return pass_on(done);
    if (auto done = checks.check_large_packets(); !done) return pass_on(done);
    if (auto done = checks.check_netfilter(); !done) return pass_on(done);
    checks.find_guards();
    made.push_back(std::move(checks.path));
  }
  return made;
}

}  // namespace greynic::trace
