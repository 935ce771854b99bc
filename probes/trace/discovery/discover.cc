#include <fmt/core.h>
#include <fnmatch.h>
#include <linux/if.h>
#include <linux/if_arp.h>
#include <linux/if_link.h>
#include <linux/net_namespace.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "discovery/places.h"
#include "greynic/os/netlink.h"

namespace greynic::trace {
namespace {

/// A device as its own namespace tells of it, with references that others must resolve.
struct Seen {
  Device device;
  int link = 0;                   ///< index of the other end, or of what it sends through
  std::optional<int> link_place;  ///< the local number of the namespace where that is
  int master = 0;
};

struct Inside {
  std::vector<Seen> seen;
  std::map<int, std::uint32_t> neighbours;  ///< local number of a namespace -> inode
};

void read_tunnel(os::ByteView data, bool vxlan, Device& device) {
  os::each_attribute(data, [&](std::uint16_t type, os::ByteView value) {
    const bool id = vxlan ? type == IFLA_VXLAN_ID : type == IFLA_GENEVE_ID;
    const bool port = vxlan ? type == IFLA_VXLAN_PORT : type == IFLA_GENEVE_PORT;
    if (id) device.vni = static_cast<std::uint32_t>(os::native_number(value));
    const bool far_end = vxlan ? type == IFLA_VXLAN_GROUP6 || type == IFLA_VXLAN_LOCAL6
                               : type == IFLA_GENEVE_REMOTE6;
    device.over_ipv6 = device.over_ipv6 || far_end;
    if (port && value.size() == 2) {
      device.tunnel_port = static_cast<std::uint16_t>(value[0] << 8 | value[1]);
    }
  });
}

/// The key that a GRE tunnel sends is its VNI; 0 is what tunnels without a key tell.
void read_gre(os::ByteView data, Device& device) {
  constexpr std::uint16_t kOutputKey = 5;  // IFLA_GRE_OKEY; its header clashes with those of IP
  os::each_attribute(data, [&](std::uint16_t type, os::ByteView value) {
    if (type != kOutputKey || value.size() != 4) return;
    std::uint32_t key = 0;
    for (const std::uint8_t byte : value) key = key << 8 | byte;
    if (key != 0) device.vni = key;
  });
}

void read_link_info(os::ByteView info, Device& device) {
  os::each_attribute(info, [&](std::uint16_t type, os::ByteView value) {
    if (type == IFLA_INFO_KIND) device.kind = os::text_of(value);
  });
  os::each_attribute(info, [&](std::uint16_t type, os::ByteView value) {
    if (type != IFLA_INFO_DATA) return;
    if (device.kind == "vxlan" || device.kind == "geneve") {
      read_tunnel(value, device.kind == "vxlan", device);
    } else if (device.kind.find("gre") != std::string::npos) {
      read_gre(value, device);
    } else if (device.kind == "bridge") {
      os::each_attribute(value, [&](std::uint16_t own, os::ByteView setting) {
        if (own == IFLA_BR_NF_CALL_IPTABLES) device.netfilter = os::native_number(setting) != 0;
      });
    }
  });
}

Seen read_link(os::ByteView payload) {
  ifinfomsg header{};
  std::memcpy(&header, payload.data(), sizeof header);
  Seen seen;
  seen.device.index = header.ifi_index;
  seen.device.up = (header.ifi_flags & IFF_UP) != 0;
  seen.device.loopback = (header.ifi_flags & IFF_LOOPBACK) != 0;
  seen.device.ethernet = header.ifi_type == ARPHRD_ETHER || header.ifi_type == ARPHRD_LOOPBACK;
  os::each_attribute(payload.subspan(sizeof header), [&](std::uint16_t type, os::ByteView value) {
    const auto number = static_cast<int>(os::native_number(value));
    if (type == IFLA_IFNAME) seen.device.name = os::text_of(value);
    if (type == IFLA_MTU) seen.device.mtu = number;
    if (type == IFLA_GSO_MAX_SEGS) seen.device.gso_segments = static_cast<std::uint32_t>(number);
    if (type == IFLA_LINK) seen.link = number;
    if (type == IFLA_LINK_NETNSID) seen.link_place = number;
    if (type == IFLA_MASTER) seen.master = number;
    if (type == IFLA_LINKINFO) read_link_info(value, seen.device);
  });
  return seen;
}

void read_addresses(os::NetlinkSocket& socket, std::vector<Seen>& seen) {
  const auto answers = socket.dump(os::NetlinkMessage(RTM_GETADDR, 0, ifaddrmsg{}));
  if (!answers) return;
  for (const os::NetlinkAnswer& answer : *answers) {
    if (answer.type != RTM_NEWADDR || answer.payload.size() < sizeof(ifaddrmsg)) continue;
    ifaddrmsg header{};
    std::memcpy(&header, answer.payload.data(), sizeof header);
    std::optional<Address> own;
    os::each_attribute(os::ByteView(answer.payload).subspan(sizeof header),
                       [&](std::uint16_t type, os::ByteView value) {
                         // IFA_LOCAL is the own address where both are given.
                         if (type != IFA_LOCAL && (type != IFA_ADDRESS || own)) return;
                         Address address{};
                         if (value.size() == 4) address[10] = address[11] = 0xff;
                         if (value.size() != 4 && value.size() != 16) return;
                         std::copy(value.begin(), value.end(),
                                   address.end() - static_cast<std::ptrdiff_t>(value.size()));
                         own = address;
                       });
    for (Seen& one : seen) {
      if (own && one.device.index == static_cast<int>(header.ifa_index)) {
        one.device.addresses.push_back(*own);
      }
    }
  }
}

/// Which namespaces the local numbers mean that devices name: the kernel tells the number of a
/// namespace that it is shown, so all are shown until every number is known.
void read_neighbours(os::NetlinkSocket& socket, const std::vector<Place>& places,
                     const std::vector<os::NetworkNamespace>& open, Inside& inside) {
  std::vector<int> wanted;
  for (const Seen& one : inside.seen) {
    if (one.link_place &&
        std::find(wanted.begin(), wanted.end(), *one.link_place) == wanted.end()) {
      wanted.push_back(*one.link_place);
    }
  }
  for (std::size_t i = 0; i < places.size() && inside.neighbours.size() < wanted.size(); ++i) {
    os::NetlinkMessage question(RTM_GETNSID, 0, rtgenmsg{.rtgen_family = AF_UNSPEC});
    question.put_value(NETNSA_FD, static_cast<std::uint32_t>(open[i].descriptor()));
    const auto answers = socket.ask(std::move(question));
    if (!answers || answers->empty() || (*answers)[0].payload.size() < sizeof(rtgenmsg)) continue;
    const os::ByteView payload = (*answers)[0].payload;
    constexpr std::size_t kHeader = (sizeof(rtgenmsg) + 3) & ~std::size_t{3};
    os::each_attribute(payload.subspan(kHeader), [&](std::uint16_t type, os::ByteView value) {
      const auto number = static_cast<int>(os::native_number(value));
      if (type == NETNSA_NSID && number >= 0) inside.neighbours[number] = places[i].inode;
    });
  }
}

Inside look_inside(const std::vector<Place>& places,
                   const std::vector<os::NetworkNamespace>& open) {
  Inside inside;
  auto socket = os::NetlinkSocket::create();
  if (!socket) return inside;
  const auto answers = socket->dump(os::NetlinkMessage(RTM_GETLINK, 0, ifinfomsg{}));
  if (!answers) return inside;
  for (const os::NetlinkAnswer& answer : *answers) {
    if (answer.type == RTM_NEWLINK && answer.payload.size() >= sizeof(ifinfomsg)) {
      inside.seen.push_back(read_link(answer.payload));
    }
  }
  read_addresses(*socket, inside.seen);
  read_neighbours(*socket, places, open, inside);
  return inside;
}

/// Devices of one network: from a VXLAN device over its bridge to the bridge's ports, and to the
/// other ends of those that are veths.
void spread_segments(std::vector<Device>& devices) {
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (!devices[i].vni) continue;
    const auto vni = devices[i].vni;
    devices[i].segment = vni;
    if (!devices[i].bridge) continue;
    devices[*devices[i].bridge].segment = vni;
    for (Device& port : devices) {
      if (port.bridge != devices[i].bridge) continue;
      port.segment = vni;
      if (port.peer && !devices[*port.peer].bridge) devices[*port.peer].segment = vni;
    }
  }
}

Topology joined(std::vector<Place> places, std::vector<Inside> insides) {
  Topology topology;
  std::map<std::pair<std::uint32_t, int>, std::size_t> numbers;
  for (std::size_t p = 0; p < places.size(); ++p) {
    for (const Seen& one : insides[p].seen) {
      numbers[{places[p].inode, one.device.index}] = topology.devices.size();
      topology.devices.push_back(one.device);
      topology.devices.back().place = p;
    }
  }
  const auto find = [&](std::uint32_t inode, int index) -> std::optional<std::size_t> {
    const auto found = numbers.find({inode, index});
    if (found == numbers.end()) return std::nullopt;
    return found->second;
  };
  std::size_t next = 0;
  for (std::size_t p = 0; p < places.size(); ++p) {
    for (const Seen& one : insides[p].seen) {
      Device& device = topology.devices[next++];
      if (one.master != 0) device.bridge = find(places[p].inode, one.master);
      if (one.link == 0) continue;
      std::uint32_t inode = places[p].inode;
      if (one.link_place) {
        const auto neighbour = insides[p].neighbours.find(*one.link_place);
        if (neighbour == insides[p].neighbours.end()) continue;
        inode = neighbour->second;
      }
      const auto other = find(inode, one.link);
      (device.kind == "veth" || device.kind == "netkit" ? device.peer : device.lower) = other;
    }
  }
  topology.places = std::move(places);
  spread_segments(topology.devices);
  return topology;
}

}  // namespace

std::string Topology::label(std::size_t device) const {
  return places[devices[device].place].name + "/" + devices[device].name;
}

Topology Topology::only(const std::vector<std::string>& patterns) const {
  if (patterns.empty()) return *this;
  Topology made;
  made.places = places;
  std::map<std::size_t, std::size_t> numbers;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const std::string& name = places[devices[i].place].name;
    if (std::none_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
          return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
        })) {
      continue;
    }
    numbers[i] = made.devices.size();
    made.devices.push_back(devices[i]);
  }
  for (Device& device : made.devices) {
    for (auto* other : {&device.peer, &device.bridge, &device.lower}) {
      if (!*other) continue;
      const auto found = numbers.find(**other);
      *other = found == numbers.end() ? std::nullopt : std::optional(found->second);
    }
  }
  return made;
}

Result<Topology> discover() {
  std::vector<Place> places;
  std::vector<os::NetworkNamespace> open;
  for (Place& place : find_places()) {
    auto opened = os::NetworkNamespace::open(place.path);
    if (!opened) continue;  // gone meanwhile, or not ours to see
    open.push_back(std::move(*opened));
    places.push_back(std::move(place));
  }
  if (places.empty()) {
    return fail(ErrorCode::kMissing, "cannot open this host's network namespaces; run as root");
  }
  std::vector<Inside> insides(places.size());
  std::vector<Place> kept;
  std::vector<Inside> seen;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const auto looked = open[i].inside([&] { insides[i] = look_inside(places, open); });
    if (!looked) {
      if (i == 0) insides[i] = look_inside(places, open);  // our own needs no right to enter
      if (insides[i].seen.empty()) continue;
    }
    kept.push_back(places[i]);
    seen.push_back(std::move(insides[i]));
  }
  return joined(std::move(kept), std::move(seen));
}

}  // namespace greynic::trace
