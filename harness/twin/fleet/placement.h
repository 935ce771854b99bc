#pragma once

/// Who runs where in a fleet. Containers belong to services; a container talks with the containers
/// of its service on other hosts (those on its own host share memory). A scheduler spreads them:
/// each goes to the emptier of two hosts drawn at random, and there to the host's RNICs in turn.
/// No flow is ever written down: what an RNIC must hold follows from how many containers of which
/// service lie behind it, so memory and time grow with containers, not with pairs of them.

#include <cstdint>
#include <vector>

namespace greynic::twin {

struct FleetSize {
  std::uint32_t host_count = 0;
  std::uint32_t rnic_count = 0;  ///< at least one a host
  std::uint32_t container_count = 0;
  std::uint32_t hosts_per_leaf = 1;
  double service_span_hosts = 1;  ///< a service has the containers of so many hosts
};

/// The containers of one service behind one RNIC.
struct FleetGroup {
  std::uint32_t rnic = 0;
  std::uint32_t container_count = 0;
  std::uint32_t peers_remote = 0;  ///< of each of them: on other hosts
  std::uint32_t peers_away = 0;    ///< of these, below other leaves
};

struct FleetPlacement {
  std::uint32_t host_count = 0;
  std::uint32_t leaf_count = 0;
  std::vector<FleetGroup> groups;      ///< by service, in it by RNIC
  std::vector<std::uint32_t> first;    ///< group of each service; one more at the end
  std::vector<std::uint32_t> host_of;  ///< by RNIC
  std::vector<std::uint32_t> leaf_of;  ///< by RNIC
  [[nodiscard]] std::size_t service_count() const { return first.size() - 1; }
  [[nodiscard]] std::size_t rnic_count() const { return host_of.size(); }
};

/// Deterministic in `seed`.
[[nodiscard]] FleetPlacement place_fleet(const FleetSize& size, std::uint64_t seed);

/// What one RNIC, and the virtual switch of its host, must hold.
struct RnicHolding {
  double container_count = 0;
  double peering_count = 0;       ///< (container, remote peer) pairs behind the RNIC
  double host_peering_count = 0;  ///< behind all RNICs of its host
  double mask_count = 0;          ///< different rule shapes of the services behind it
  double remote_host_count = 0;   ///< tunnel ends it sends to: encapsulation contexts
};

/// By RNIC. `rule_shape_count` different shapes are spread over the services.
[[nodiscard]] std::vector<RnicHolding> holdings_of(const FleetPlacement& placement,
                                                   std::uint32_t rule_shape_count,
                                                   std::uint64_t seed);

}  // namespace greynic::twin
