#pragma once

/// A fleet as a target: "twin:cx6?hosts=8000&rnics=40000". N RNICs on a leaf-spine, containers on
/// them, flows among them; of one model, or of several, each with hosts of its own that talk with
/// their like. Packets are not simulated one by one: what an RNIC must
/// hold (flows, masks, contexts) gives the cost of a message there, and a network of queues gives
/// what the fleet carries (placement.h, network.h; docs/fleet.md).

#include <cstdint>

#include "greynic/core/observation.h"
#include "greynic/target/target.h"
#include "parameters/parameter_set.h"

namespace greynic::twin {

struct Settings;

struct FleetParameters {
  double host_count = 0;
  double rnic_count = 0;
  double container_count = 0;
  double hosts_per_leaf = 0;
  double leaf_oversubscription = 0;
  double fabric_hop_ns = 0;
  double service_span_hosts = 0;
  double active_peer_share = 0;
  double rule_shape_count = 0;
  double rnic_gbps_low = 0;        ///< what an RNIC has work for, drawn evenly up to rnic_gbps_high
  double rnic_gbps_high = 0;       ///< 0: as much as it can send
  double flow_starts_per_day = 0;  ///< in the whole fleet; 0: not looked at
  double flow_burst_count = 1;     ///< that start at once on an RNIC
};

struct FleetModel {
  ParameterSet set;
  FleetParameters parameters;
};

/// "cloud", or the path of a file.
[[nodiscard]] Result<FleetModel> load_fleet(const std::string& name_or_path);

/// One observation: means over the RNICs of the fleet. `settings.fleet` must be there.
[[nodiscard]] Observation observe_fleet(const Settings& settings,
                                        const target::MeasureRequest& request);

/// What the optimizer may use: the strictest of the models' limits. Those of lookup recipes are left
/// out where some models have none.
[[nodiscard]] LayoutLimits fleet_limits(const Settings& settings);
/// The fleet's models, those together whose limits are the same.
[[nodiscard]] std::vector<ModelLimits> fleet_models(const Settings& settings);
/// kRefused when no model takes it, or one not that which is made for it.
[[nodiscard]] Result<void> check_fleet_layout(const Settings& settings,
                                              const target::FittedLayout& layout);
/// On the RNICs that take it. Where the layout is for all models, those that do not keep what they
/// have.
void install_on_fleet(const target::FittedLayout& layout, const Traffic* traffic, Hop hop,
                      Settings& settings);

/// Narrows what a twin says of itself to what a fleet honours, and adds the fleet's parameters.
void describe_fleet(const Settings& settings, target::Info& info);

}  // namespace greynic::twin
