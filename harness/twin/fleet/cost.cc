#include "fleet/cost.h"

#include <algorithm>
#include <cmath>

namespace greynic::twin {
namespace {

/// Groups a packet is checked against: its own is as likely the first as the last of those there.
double groups_walked(const Common& c, double masks, double more) {
  const double groups = (masks > 0 ? (masks + 1) / 2 : 0.0) + more;
  return c.in_sequence ? groups : std::min(groups, 1.0);
}

/// The same at one hop, where the layout says it if one is installed there.
double groups_at(const Common& c, Hop hop, double masks) {
  const RnicRules* const rules = c.installed[static_cast<std::size_t>(hop)];
  if (rules == nullptr) return groups_walked(c, masks, c.w.walk(hop).groups);
  return c.in_sequence ? rules->groups : std::min(rules->groups, 1.0);
}

/// Share of packets that the layouts send to software.
double sent_to_software(const Common& c) {
  double stay = 1;
  for (const RnicRules* rules : c.installed) stay *= rules ? 1 - rules->software_share : 1.0;
  return 1 - stay;
}

double miss_share(double entries, double in_use) {
  return in_use > entries ? 1 - entries / in_use : 0.0;
}

}  // namespace

Common common_of(const Settings& settings, std::size_t model, const HostLoad& w) {
  const Parameters& p = settings.model_of(model).parameters;
  const double bytes = static_cast<double>(w.message_bytes.front());
  const double packets = std::max(1.0, std::ceil(bytes / w.mtu_bytes));
  std::array<const RnicRules*, 4> installed{};
  for (std::size_t hop = 0; hop < installed.size(); ++hop) {
    const auto& rules = settings.fleet_rules[hop];
    if (!rules.empty() && rules[model]) installed[hop] = &*rules[model];
  }
  return {.p = p,
          .s = settings.virtual_switch.parameters,
          .w = w,
          .pcie = {static_cast<int>(p.pcie_generation), static_cast<int>(p.pcie_lanes),
                   static_cast<int>(p.pcie_max_payload_bytes)},
          .packets = packets,
          .payload = bytes / packets,
          .wire_ns = (bytes / packets + packet_overhead_bytes(w.overlay)) * 8 / p.link_rate_gbps,
          .in_sequence = settings.defects.test(kMasksInSequence),
          .installed = installed};
}

double overflow_share(const Common& c, const RnicHolding& holding) {
  const double flows = miss_share(c.s.datapath_flow_limit_count,
                                  holding.host_peering_count * c.s.megaflows_per_peering);
  // A layout says itself which of its groups the RNIC has a place for.
  const bool by_layout = std::ranges::any_of(c.installed, [](const auto* rules) { return rules; });
  const double limit = by_layout ? 0.0 : c.p.mask_shape_limit;
  const double masks = limit > 0 ? miss_share(limit, holding.mask_count) : 0.0;
  return 1 - (1 - flows) * (1 - masks);
}

double context_misses(const Common& c, const RnicHolding& holding) {
  return miss_share(c.p.context_entry_count, holding.peering_count);
}

double encap_misses(const Common& c, const RnicHolding& holding) {
  return miss_share(c.p.encap_context_limit, holding.remote_host_count);
}

Misjudged::Misjudged(const Common& c, const DefectSet& on, const Configuration& configuration)
    : c_(c), load_(switch_load(configuration, c.p)) {
  const SwitchFaults all = faults_of(on);
  faults_ = {.late_counters = all.late_counters, .stale_is_slow = all.stale_is_slow};
}

double Misjudged::share(double flows) {
  if (!faults_.any() || flows < 1 || load_.counter_poll_ms <= 0) return 0;
  const auto [at, fresh] = known_.emplace(std::lround(32 * std::log2(flows)), 0.0);
  if (fresh) {
    SwitchLoad load = load_;
    load.flow_count = flows;
    load.counter_poll_ms = std::max(load.counter_poll_ms, flows * c_.s.counter_read_us * 1e-3);
    at->second = run_switch(c_.p, c_.s, load, faults_).software_share;
  }
  return at->second;
}

MessageCost cost_of(const Common& c, const RnicHolding& holding, double software) {
  const Parameters& p = c.p;
  const double encaps = groups_at(c, Hop::kClientEncap, holding.mask_count);
  const double decaps = groups_at(c, Hop::kServerDecap, holding.mask_count);
  const double encap_ns = encaps * p.encap_per_group_ns[c.w.operation];
  const double decap_ns = decaps * p.decap_per_group_ns[c.w.operation];
  const auto pipe_ns = [&](double groups) {
    return (p.base_hops_per_packet + groups * p.hops_per_group) * p.cycle_ns() /
           p.steering_pipe_count;
  };
  const double unit_ns =
      1e3 / p.qp_packet_rate_cap_mpps + encaps * p.encap_unit_cycles_per_group * p.cycle_ns();
  double send = std::max(
      {c.wire_ns, c.pcie.read_ns(c.payload), pipe_ns(encaps), unit_ns / p.processing_unit_count});
  if (c.w.overlay && p.loop_window_packets > 0) {
    send =
        std::max(send, (p.loop_base_us * 1e3 + 2 * (encap_ns + decap_ns)) / p.loop_window_packets);
  }
  double receive = std::max({c.wire_ns, c.pcie.write_ns(c.payload), pipe_ns(decaps)});
  if (p.walk_window_packets > 0) receive = std::max(receive, decap_ns / p.walk_window_packets);

  const double contexts = context_misses(c, holding);
  const double fetches = contexts + encap_misses(c, holding);
  const double fetch_ns = p.context_fetch_ns / p.context_fetch_slot_count;
  const double core_ns = 1e3 / (p.slow_path_mpps * c.s.slow_path_core_count);

  MessageCost cost;
  cost.send_ns = std::max(c.packets * send, 1e3 / p.peak_write_mops);
  cost.receive_ns = c.packets * receive;
  cost.send_fetch_ns = fetches * fetch_ns;
  cost.receive_fetch_ns = contexts * fetch_ns;
  cost.software_share = 1 - (1 - software) * (1 - sent_to_software(c));
  cost.software_ns = cost.software_share * c.packets * core_ns;
  // The core's own pace, less the pace at which packets come anyway.
  cost.software_delay_ns =
      p.upcall_us * 1e3 + c.packets * std::max(0.0, core_ns - std::max(send, receive));
  // One QP is served by one unit: a message takes the unit's time even when the wire is idle.
  cost.send_delay_ns = p.base_half_rtt_us * 1e3 + encap_ns + fetches * p.context_fetch_ns +
                       (c.packets - 1) * std::max(0.0, unit_ns - std::max(send, receive));
  cost.receive_delay_ns = decap_ns + contexts * p.context_fetch_ns;
  return cost;
}

}  // namespace greynic::twin
