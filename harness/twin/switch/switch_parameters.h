#pragma once

/// The parameters of the virtual switch of a host and of the driver below it: configs/switches,
/// docs/formats/parameter_set.md. What one RNIC and its firmware need stands in the RNIC's model.

#include "parameters/parameter_set.h"

namespace greynic::twin {

struct SwitchParameters {
  double datapath_flow_limit_count = 0;
  double megaflows_per_peering = 0;
  double slow_path_core_count = 0;
  double revalidator_ms = 0;
  double rebalance_ms = 0;
  double counter_read_us = 0;
  double insert_slot_count = 0;
  double insert_doubling_count = 0;
  double search_slowdown = 1;
  double port_event_us = 0;
  double unbind_grace_ms = 0;
  double device_probe_ms = 0;
};

struct SwitchModel {
  ParameterSet set;
  SwitchParameters parameters;
};

/// "ovs", or the path of a file.
[[nodiscard]] Result<SwitchModel> load_switch(const std::string& name_or_path);

}  // namespace greynic::twin
