#pragma once

/// What carries packets on this host: network namespaces with their devices, how devices are joined
/// (ends of a veth, ports of a bridge, tunnels and what they run over), and whose they are: names of
/// containers from cgroups, of namespaces from /run/netns.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "greynic/core/result.h"
#include "greynic/os/network_namespace.h"

namespace greynic::trace {

/// An IPv6 address, or an IPv4 one as ::ffff:a.b.c.d, in network order.
using Address = std::array<std::uint8_t, 16>;

struct Device {
  std::size_t place = 0;  ///< index of its namespace
  int index = 0;
  std::string name;
  std::string kind;  ///< "veth", "bridge", "vxlan"; empty for hardware
  int mtu = 0;
  std::uint32_t gso_segments = 0;  ///< that it takes as one packet
  bool up = false;
  bool loopback = false;
  bool ethernet = false;
  std::optional<std::size_t> peer;    ///< the other end of a veth
  std::optional<std::size_t> bridge;  ///< that it is a port of
  std::optional<std::size_t> lower;   ///< that it sends through: macvlan, VLAN, tunnel
  std::optional<std::uint32_t> vni;   ///< of a tunnel
  std::optional<std::uint32_t>
      segment;  ///< VNI whose network it is part of, here or at the other end
  std::uint16_t tunnel_port = 0;
  bool over_ipv6 = false;  ///< of a VXLAN or Geneve tunnel
  bool netfilter = false;  ///< of a bridge: it shows IPv4 to netfilter
  std::vector<Address> addresses;
};

struct Place {
  std::uint32_t inode = 0;
  std::string name;                     ///< unique on this host
  std::vector<std::string> containers;  ///< all names that it answers to, `name` first
  std::string runtime;  ///< "host", "netns", "docker", "containerd", "cri-o", "nspawn", "process"
  std::string path;     ///< that opens it
  std::string cgroup;   ///< of the container; empty: none of its own
};

struct Topology {
  std::vector<Place> places;
  std::vector<Device> devices;

  /// "web/eth0": name of the place and of the device.
  [[nodiscard]] std::string label(std::size_t device) const;
  /// The devices of places with such a name alone; their places keep their numbers.
  [[nodiscard]] Topology only(const std::vector<std::string>& patterns) const;
};

/// Looks around. What we may not see (without root, namespaces of others) is left out.
[[nodiscard]] Result<Topology> discover();

/// Tells cheaply that namespaces came or went since the last call: names that appear in /run/netns,
/// and processes that entered one.
class PlaceWatch {
 public:
  PlaceWatch();
  PlaceWatch(const PlaceWatch&) = delete;
  PlaceWatch& operator=(const PlaceWatch&) = delete;
  ~PlaceWatch();
  [[nodiscard]] bool changed();

 private:
  int descriptor_ = -1;
};

}  // namespace greynic::trace
