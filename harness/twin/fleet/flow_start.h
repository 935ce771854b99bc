#pragma once

/// How long a new flow waits until the RNIC forwards it.
///
/// Its first packet is checked against the groups on its way in vain, goes up to the switch of the
/// host, and waits there for its turn. The driver then puts the flow's entry in, `insert_slot_count`
/// entries at once. What else the layout has for the same line of the input follows when no flow
/// waits for its own entry. Flows start in bursts, as collective operations of a training job do: all
/// at once on an RNIC, and bursts at random. A flow that stays in software waits for the switch alone.

#include <cstdint>

#include "fleet/rnic_rules.h"
#include "greynic/core/histogram.h"
#include "switch/switch_parameters.h"

namespace greynic::twin {

struct StartLoad {
  double starts_per_day = 0;  ///< of one RNIC
  double burst_count = 1;     ///< flows that start at once
  double group_ns = 0;        ///< that a packet takes for each group
  std::uint32_t flows = 0;    ///< that are simulated
};

/// Of one RNIC; deterministic in `seed`. `rules.flows` are drawn by their weights; without any, each
/// flow needs one entry in an empty group.
[[nodiscard]] LatencyHistogram flow_start_delays(const Parameters& rnic, const SwitchParameters& s,
                                                 const RnicRules& rules, const StartLoad& load,
                                                 std::uint64_t seed);

}  // namespace greynic::twin
