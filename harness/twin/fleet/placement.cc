#include "fleet/placement.h"

#include <algorithm>
#include <cmath>

#include "greynic/statistics/random.h"

namespace greynic::twin {
namespace {

/// Counts by place that are cleared as fast as they were filled.
class Tally {
 public:
  explicit Tally(std::size_t places) : counts_(places, 0) {}
  void add(std::uint32_t place, std::uint32_t count) {
    if (counts_[place] == 0) touched_.push_back(place);
    counts_[place] += count;
  }
  [[nodiscard]] std::uint32_t at(std::uint32_t place) const { return counts_[place]; }
  [[nodiscard]] std::size_t place_count() const { return touched_.size(); }
  void clear() {
    for (const std::uint32_t place : touched_) counts_[place] = 0;
    touched_.clear();
  }

 private:
  std::vector<std::uint32_t> counts_;
  std::vector<std::uint32_t> touched_;
};

std::uint32_t spread_evenly(std::uint64_t total, std::uint64_t parts, std::uint64_t part) {
  return static_cast<std::uint32_t>((part + 1) * total / parts - part * total / parts);
}

void count_peers(FleetPlacement& placement) {
  Tally on_host(placement.host_count);
  Tally on_leaf(placement.leaf_count);
  for (std::size_t s = 0; s + 1 < placement.first.size(); ++s) {
    std::uint32_t total = 0;
    for (std::uint32_t g = placement.first[s]; g < placement.first[s + 1]; ++g) {
      const FleetGroup& group = placement.groups[g];
      on_host.add(placement.host_of[group.rnic], group.container_count);
      on_leaf.add(placement.leaf_of[group.rnic], group.container_count);
      total += group.container_count;
    }
    for (std::uint32_t g = placement.first[s]; g < placement.first[s + 1]; ++g) {
      FleetGroup& group = placement.groups[g];
      group.peers_remote = total - on_host.at(placement.host_of[group.rnic]);
      group.peers_away = total - on_leaf.at(placement.leaf_of[group.rnic]);
    }
    on_host.clear();
    on_leaf.clear();
  }
}

}  // namespace

FleetPlacement place_fleet(const FleetSize& size, std::uint64_t seed) {
  FleetPlacement placement;
  placement.host_count = size.host_count;
  placement.leaf_count = (size.host_count + size.hosts_per_leaf - 1) / size.hosts_per_leaf;
  std::vector<std::uint32_t> first_rnic(size.host_count + 1, 0);
  for (std::uint32_t host = 0; host < size.host_count; ++host) {
    const std::uint32_t own = spread_evenly(size.rnic_count, size.host_count, host);
    first_rnic[host + 1] = first_rnic[host] + own;
    for (std::uint32_t i = 0; i < own; ++i) {
      placement.host_of.push_back(host);
      placement.leaf_of.push_back(host / size.hosts_per_leaf);
    }
  }

  const double per_host = static_cast<double>(size.container_count) / size.host_count;
  const double members = std::max(2.0, std::round(size.service_span_hosts * per_host));
  const auto services = static_cast<std::uint64_t>(
      std::max(1.0, std::round(static_cast<double>(size.container_count) / members)));
  statistics::Random random(seed);
  std::vector<std::uint32_t> on_host(size.host_count, 0);
  std::vector<std::uint32_t> rnics;
  placement.first.push_back(0);
  for (std::uint64_t service = 0; service < services; ++service) {
    rnics.resize(spread_evenly(size.container_count, services, service));
    for (std::uint32_t& rnic : rnics) {
      const std::uint32_t one = random.below(size.host_count);
      const std::uint32_t other = random.below(size.host_count);
      const std::uint32_t host = on_host[one] <= on_host[other] ? one : other;
      rnic = first_rnic[host] + on_host[host]++ % (first_rnic[host + 1] - first_rnic[host]);
    }
    std::sort(rnics.begin(), rnics.end());
    for (std::size_t i = 0; i < rnics.size(); ++i) {
      if (i == 0 || rnics[i] != rnics[i - 1]) placement.groups.push_back({.rnic = rnics[i]});
      ++placement.groups.back().container_count;
    }
    placement.first.push_back(static_cast<std::uint32_t>(placement.groups.size()));
  }
  count_peers(placement);
  return placement;
}

std::vector<RnicHolding> holdings_of(const FleetPlacement& placement,
                                     std::uint32_t rule_shape_count, std::uint64_t seed) {
  const std::size_t rnics = placement.rnic_count();
  std::vector<RnicHolding> holdings(rnics);
  std::vector<double> on_host(placement.host_count, 0.0);
  const std::size_t words = (rule_shape_count + 63) / 64;
  std::vector<std::uint64_t> shapes(rnics * words, 0);
  // Hosts that none of an RNIC's services is on, as a share: services are placed independently.
  std::vector<double> nowhere(rnics, 1.0);
  Tally hosts(placement.host_count);
  for (std::size_t s = 0; s < placement.service_count(); ++s) {
    const std::uint64_t shape =
        statistics::split_mix(seed ^ statistics::split_mix(s)) % rule_shape_count;
    for (std::uint32_t g = placement.first[s]; g < placement.first[s + 1]; ++g) {
      hosts.add(placement.host_of[placement.groups[g].rnic], 1);
    }
    const double others = std::max(1.0, static_cast<double>(placement.host_count) - 1);
    const double absent = 1.0 - (static_cast<double>(hosts.place_count()) - 1) / others;
    for (std::uint32_t g = placement.first[s]; g < placement.first[s + 1]; ++g) {
      const FleetGroup& group = placement.groups[g];
      RnicHolding& holding = holdings[group.rnic];
      const double pairs = static_cast<double>(group.container_count) * group.peers_remote;
      holding.container_count += group.container_count;
      holding.peering_count += pairs;
      on_host[placement.host_of[group.rnic]] += pairs;
      if (group.peers_remote == 0) continue;
      shapes[group.rnic * words + shape / 64] |= 1ULL << (shape % 64);
      nowhere[group.rnic] *= absent;
    }
    hosts.clear();
  }
  for (std::size_t rnic = 0; rnic < rnics; ++rnic) {
    RnicHolding& holding = holdings[rnic];
    holding.host_peering_count = on_host[placement.host_of[rnic]];
    for (std::size_t w = 0; w < words; ++w) {
      holding.mask_count += __builtin_popcountll(shapes[rnic * words + w]);
    }
    holding.remote_host_count =
        (static_cast<double>(placement.host_count) - 1) * (1.0 - nowhere[rnic]);
  }
  return holdings;
}

}  // namespace greynic::twin
