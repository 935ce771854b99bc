#include "switch/switch_parameters.h"

namespace greynic::twin {

Result<SwitchModel> load_switch(const std::string& name_or_path) {
  using P = SwitchParameters;
  static constexpr ParameterRow<P> kTable[] = {
      {"datapath_flow_limit_count", &P::datapath_flow_limit_count, 1, 1e9},
      {"megaflows_per_peering", &P::megaflows_per_peering, 0.01, 1000},
      {"slow_path_core_count", &P::slow_path_core_count, 0.01, 1024},
      {"revalidator_ms", &P::revalidator_ms, 1, 1e6},
      {"rebalance_ms", &P::rebalance_ms, 1, 1e6},
      {"counter_read_us", &P::counter_read_us, 0, 1e6},
      {"insert_slot_count", &P::insert_slot_count, 1, 1024},
      {"insert_doubling_count", &P::insert_doubling_count, 1, 1e9},
      {"search_slowdown", &P::search_slowdown, 1, 1000},
      {"port_event_us", &P::port_event_us, 0, 1e9},
      {"unbind_grace_ms", &P::unbind_grace_ms, 0, 1e9},
      {"device_probe_ms", &P::device_probe_ms, 1, 1e9},
  };
  auto set = load_parameter_set("switches", name_or_path);
  if (!set) return pass_on(set);
  auto parameters = take_parameters<P>(*set, kTable);
  if (!parameters) return pass_on(parameters);
  return SwitchModel{std::move(*set), *parameters};
}

}  // namespace greynic::twin
