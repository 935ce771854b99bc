#pragma once

/// One observation of the twin: reads the configuration, runs the two modes, names what came out.

#include <array>

#include "fleet/fleet.h"
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
  std::optional<FleetModel> fleet;  ///< unset: two hosts with an RNIC each, packet by packet
  HostLoadOptions options;
  DefectSet defects = usual_defects();
  bool whole_duration = false;
  CounterSink sink;
  std::array<std::optional<GroupWalk>, 4> installed;  ///< by apply, by hop
};

[[nodiscard]] Observation observe(const Settings& settings, const target::MeasureRequest& request);
[[nodiscard]] target::Info describe(const Settings& settings, const std::string& name);

}  // namespace greynic::twin
