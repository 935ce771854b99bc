#pragma once

/// Times the packet thread of a private switch: how much CPU time a packet costs once traffic has
/// settled. Wall time is no part of it, so other work on the machine disturbs little.

#include <chrono>
#include <map>
#include <string>

#include "greynic/core/observation.h"
#include "ovs/datapath_counts.h"
#include "ovs/private_switch.h"

namespace greynic::flows {

struct PacketTimes {
  Measure cost_ns;         ///< CPU time of the packet thread for one packet
  double cost_cycles = 0;  ///< the same by the switch's own cycle counter, waiting taken out
  double packets = 0;
  double wall_seconds = 0;
  PmdStats stats;  ///< of the timed part
  SteadyState steady;
};

/// What has to pass before packets are timed, at least.
struct Warmup {
  std::chrono::milliseconds time{0};
  double packets = 0;  ///< to fill a cache
};

/// Waits until no packet misses the megaflows any more (and at least for `least`), lets the
/// exact-match cache learn as usual, then counts for `duration`. kRefused when that takes more than
/// ten seconds.
[[nodiscard]] Result<PacketTimes> time_packets(PrivateSwitch& ovs,
                                               std::chrono::nanoseconds duration,
                                               const Warmup& least);

}  // namespace greynic::flows
