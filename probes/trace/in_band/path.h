#pragma once

/// The paths of rules that are traced in band, and whether packets may grow on them: each reason why
/// they may not is an error that names the remedy.

#include <cstdint>
#include <vector>

#include "greynic/core/result.h"
#include "greynic/trace/rules.h"
#include "kernel/in_band.h"

namespace greynic::trace {

struct InBandPath {
  struct At {
    std::size_t device = 0;
    bool queued = false;
  };
  std::size_t rule = 0;
  std::vector<At> points;        ///< in the order in which packets pass them
  std::uint32_t most_bytes = 0;  ///< of IP, before a packet grows
  /// Devices where packets could leave the hosts of the path before its end, as they are queued there.
  std::vector<std::size_t> guards;
};

/// One path a rule. kBadInput when a rule has no path, with its place in the file; kRefused when
/// packets on it would come to harm: too small an MTU, large packets of TCP, a bridge that shows them
/// to netfilter, a tunnel over a real NIC.
[[nodiscard]] Result<std::vector<InBandPath>> make_in_band_paths(const Rules& rules,
                                                                 const Topology& topology);

/// The largest IP packet that all of a path carries, as its first point sees it.
[[nodiscard]] std::uint32_t smallest_mtu(const InBandPath& path, const Topology& topology);

}  // namespace greynic::trace
