#pragma once

/// One observation of the twin: reads the configuration, runs the two modes, names what came out.

#include <array>
#include <chrono>

#include "fleet/fleet.h"
#include "fleet/rnic_rules.h"
#include "greynic/core/observation.h"
#include "greynic/target/target.h"
#include "greynic/twin/twin.h"
#include "parameters/host_load.h"
#include "parameters/parameters.h"
#include "switch/switch_parameters.h"
#include "target/defects.h"

namespace greynic::twin {

struct Settings {
  RnicModel model;
  SwitchModel virtual_switch;
  std::vector<RnicModel> other_models;  ///< of a fleet, besides `model`
  std::optional<FleetModel> fleet;      ///< unset: two hosts with an RNIC each, packet by packet
  HostLoadOptions options;
  DefectSet defects = usual_defects();
  bool whole_duration = false;
  std::chrono::nanoseconds burst_delay{
      0};  ///< in front of the server; more is a burst; 0: unmeasured
  CounterSink sink;
  target::CounterArenas arenas;
  std::array<std::optional<GroupWalk>, 4> installed;  ///< by apply, by hop
  /// The same of a fleet, by hop and model; without a value where nothing is installed.
  std::array<std::vector<std::optional<RnicRules>>, 4> fleet_rules;
  std::vector<bool> layout_taken;  ///< by model: the layout that was installed last

  [[nodiscard]] std::size_t model_count() const { return 1 + other_models.size(); }
  [[nodiscard]] const RnicModel& model_of(std::size_t place) const {
    return place == 0 ? model : other_models[place - 1];
  }
};

/// What a device keeps from one measurement to the next, until it is reset.
struct DeviceState {
  bool offload_is_off = false;  ///< defect S9
};

[[nodiscard]] Observation observe(const Settings& settings, const target::MeasureRequest& request,
                                  DeviceState& device);
/// burst_count, burst_p99_us and victim_share of the queue in front of the server, where they can be
/// had: all senders write in a closed loop, on a fabric.
void observe_bursts(const Settings& settings, const HostLoad& load,
                    const target::MeasureRequest& request, Observation& observation);
[[nodiscard]] target::Info describe(const Settings& settings, const std::string& name);

}  // namespace greynic::twin
