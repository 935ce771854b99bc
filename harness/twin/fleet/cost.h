#pragma once

/// What a message costs at an RNIC of a fleet, from what that RNIC must hold and from the layout that
/// is installed.

#include <map>
#include <optional>

#include "fleet/network.h"
#include "fleet/placement.h"
#include "fleet/rnic_rules.h"
#include "parameters/host_load.h"
#include "stages/pcie.h"
#include "target/measurement.h"

namespace greynic::twin {

/// What all RNICs of one model share: the packets of a message, and the times of the model.
struct Common {
  const Parameters& p;
  const SwitchParameters& s;
  const HostLoad& w;
  PcieLink pcie;
  double packets;                             ///< of a message
  double payload;                             ///< of its packets, mean
  double wire_ns;                             ///< of its packets, mean
  bool in_sequence;                           ///< masks are walked one by one
  std::array<const RnicRules*, 4> installed;  ///< by hop; null: rules follow from containers
};

[[nodiscard]] Common common_of(const Settings& settings, std::size_t model, const HostLoad& w);

/// Share of flows that the host's virtual switch has no room for, or the RNIC no mask.
[[nodiscard]] double overflow_share(const Common& c, const RnicHolding& holding);
[[nodiscard]] double context_misses(const Common& c, const RnicHolding& holding);
[[nodiscard]] double encap_misses(const Common& c, const RnicHolding& holding);

/// Share of offloaded flows that the switch wrongly has in software, for as many flows as an RNIC
/// has. The more flows, the longer it takes to read their counters, the later these are. RNICs with
/// nearly as many flows share an answer.
class Misjudged {
 public:
  Misjudged(const Common& c, const DefectSet& on, const Configuration& configuration);
  [[nodiscard]] double share(double flows);

 private:
  const Common& c_;
  SwitchLoad load_;
  SwitchFaults faults_;
  std::map<long, double> known_;
};

/// `software`: share of flows that switch or RNIC have no room for.
[[nodiscard]] MessageCost cost_of(const Common& c, const RnicHolding& holding, double software);

}  // namespace greynic::twin
