#include "fleet/fleet.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "fleet/network.h"
#include "fleet/placement.h"
#include "greynic/statistics/random.h"
#include "stages/pcie.h"
#include "target/measurement.h"

namespace greynic::twin {
namespace {

constexpr double kMostContainers = 1e7;
constexpr std::string_view kFactors[] = {
    "container_count", "host_count",         "operation",          "message_bytes",
    "mtu_bytes",       "client_encap_masks", "server_decap_masks", "counter_poll_ms",
    "flow_idle_ms",    "flow_setup_rate"};

/// What every RNIC of the fleet shares: the packets of a message, and the times of the model.
struct Common {
  const Parameters& p;
  const SwitchParameters& s;
  const HostLoad& w;
  PcieLink pcie;
  double packets;    ///< of a message
  double payload;    ///< of its packets, mean
  double wire_ns;    ///< of its packets, mean
  bool in_sequence;  ///< masks are walked one by one
};

Common common_of(const Settings& settings, const HostLoad& w) {
  const Parameters& p = settings.model.parameters;
  const double bytes = static_cast<double>(w.message_bytes.front());
  const double packets = std::max(1.0, std::ceil(bytes / w.mtu_bytes));
  return {.p = p,
          .s = settings.virtual_switch.parameters,
          .w = w,
          .pcie = {static_cast<int>(p.pcie_generation), static_cast<int>(p.pcie_lanes),
                   static_cast<int>(p.pcie_max_payload_bytes)},
          .packets = packets,
          .payload = bytes / packets,
          .wire_ns = (bytes / packets + packet_overhead_bytes(w.overlay)) * 8 / p.link_rate_gbps,
          .in_sequence = settings.defects.test(kMasksInSequence)};
}

/// Groups a packet is checked against: its own is as likely the first as the last of those there.
double groups_walked(const Common& c, double masks, double more) {
  const double groups = (masks > 0 ? (masks + 1) / 2 : 0.0) + more;
  return c.in_sequence ? groups : std::min(groups, 1.0);
}

double miss_share(double entries, double in_use) {
  return in_use > entries ? 1 - entries / in_use : 0.0;
}

/// Share of flows that the host's virtual switch has no room for, or the RNIC no mask.
double overflow_share(const Common& c, const RnicHolding& holding) {
  const double flows = miss_share(c.s.datapath_flow_limit_count,
                                  holding.host_peering_count * c.s.megaflows_per_peering);
  const double limit = c.p.mask_shape_limit;
  const double masks = limit > 0 ? miss_share(limit, holding.mask_count) : 0.0;
  return 1 - (1 - flows) * (1 - masks);
}

double context_misses(const Common& c, const RnicHolding& holding) {
  return miss_share(c.p.context_entry_count, holding.peering_count);
}

double encap_misses(const Common& c, const RnicHolding& holding) {
  return miss_share(c.p.encap_context_limit, holding.remote_host_count);
}

/// Share of offloaded flows that the switch wrongly has in software, for as many flows as an RNIC
/// has. The more flows, the longer it takes to read their counters, the later these are. RNICs with
/// nearly as many flows share an answer.
class Misjudged {
 public:
  Misjudged(const Common& c, const DefectSet& on, const Configuration& configuration)
      : c_(c), load_(switch_load(configuration, c.p)) {
    const SwitchFaults all = faults_of(on);
    faults_ = {.late_counters = all.late_counters, .stale_is_slow = all.stale_is_slow};
  }

  double share(double flows) {
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

 private:
  const Common& c_;
  SwitchLoad load_;
  SwitchFaults faults_;
  std::map<long, double> known_;
};

MessageCost cost_of(const Common& c, const RnicHolding& holding, double software) {
  const Parameters& p = c.p;
  const double encaps = groups_walked(c, holding.mask_count, c.w.walk(Hop::kClientEncap).groups);
  const double decaps = groups_walked(c, holding.mask_count, c.w.walk(Hop::kServerDecap).groups);
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
  cost.software_share = software;
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

FleetTraffic traffic_of(const Common& c, const FleetParameters& f, const FleetSize& size) {
  const double rnics_per_leaf =
      f.hosts_per_leaf * static_cast<double>(size.rnic_count) / size.host_count;
  FleetTraffic traffic;
  traffic.active_peer_share = f.active_peer_share;
  traffic.leaf_link_ns = c.packets * c.wire_ns * f.leaf_oversubscription / rnics_per_leaf;
  traffic.away_delay_ns = 2 * f.fabric_hop_ns;
  traffic.return_ns = c.p.one_way_ns + c.p.pcie_post_ns;
  return traffic;
}

LatencyHistogram latencies_of(const FleetFlow& flow) {
  constexpr double kSamples = 1e9;
  double total = 0;
  for (const FleetFlow::Class& c : flow.classes) total += c.per_second;
  LatencyHistogram histogram;
  for (const FleetFlow::Class& c : flow.classes) {
    if (c.per_second <= 0) continue;
    for (const bool sender : {false, true}) {
      for (const bool receiver : {false, true}) {
        const double share = (sender ? c.send_share : 1 - c.send_share) *
                             (receiver ? c.receive_share : 1 - c.receive_share);
        const double ns = c.hardware_ns + (sender ? c.send_software_ns : 0.0) +
                          (receiver ? c.receive_software_ns : 0.0);
        const double count = std::round(c.per_second / total * share * kSamples);
        if (count > 0) {
          histogram.record(static_cast<std::uint64_t>(std::llround(ns)),
                           static_cast<std::uint64_t>(count));
        }
      }
    }
  }
  return histogram;
}

void put(Observation& observation, std::string_view name, double value,
         std::optional<double> error = std::nullopt) {
  observation.measures[std::string(name)] = {value, error};
}

void report_rates(const Common& c, const FleetFlow& flow, Observation& observation) {
  const double rnics = static_cast<double>(flow.sent_per_second.size());
  double sum = 0;
  double squares = 0;
  for (const double rate : flow.sent_per_second) {
    sum += rate;
    squares += rate * rate;
  }
  const double mean = sum / rnics;
  const double variance = std::max(0.0, squares / rnics - mean * mean);
  const double error = std::sqrt(variance / rnics);
  const double gigabits = c.packets * c.payload * 8e-9;
  put(observation, measure::kBandwidth, mean * gigabits, error * gigabits);
  put(observation, measure::kMessageRate, mean * 1e-6, error * 1e-6);
  put(observation, measure::kPacketRate, mean * c.packets * 1e-6, error * c.packets * 1e-6);
  put(observation, "fleet_bandwidth_gbps", sum * gigabits, error * rnics * gigabits);
}

void report_latency(const FleetFlow& flow, Observation& observation) {
  double total = 0;
  double sum = 0;
  for (const FleetFlow::Class& c : flow.classes) {
    total += c.per_second;
    sum += c.per_second * c.latency_ns;
  }
  if (total <= 0) return;
  observation.latency = latencies_of(flow);
  put(observation, measure::kLatencyMean, sum / total * 1e-3);
  put(observation, measure::kLatencyP50, observation.latency.quantile_ns(0.5) * 1e-3);
  put(observation, measure::kLatencyP99, observation.latency.quantile_ns(0.99) * 1e-3);
  put(observation, measure::kLatencyP999, observation.latency.quantile_ns(0.999) * 1e-3);
}

/// Means over the RNICs, as their drivers and switches would count over `seconds`.
void report_counters(const Common& c, const std::vector<RnicHolding>& holdings,
                     const std::vector<MessageCost>& costs, const FleetFlow& flow, double seconds,
                     Observation& observation) {
  std::map<std::string, double> sum;
  for (std::size_t r = 0; r < holdings.size(); ++r) {
    const RnicHolding& holding = holdings[r];
    const double messages = flow.sent_per_second[r] * seconds;
    const double packets = messages * c.packets;
    sum["tx_vport_rdma_unicast_packets"] += packets;
    sum["tx_vport_rdma_unicast_bytes"] += packets * c.payload;
    sum["icm_context_cache_miss"] +=
        messages * (2 * context_misses(c, holding) + encap_misses(c, holding));
    sum["datapath_flows"] += holding.host_peering_count * c.s.megaflows_per_peering;
    sum["flow_groups"] += holding.mask_count;
    sum["encap_contexts"] += holding.remote_host_count;
    sum["software_forwarded_packets"] += 2 * packets * costs[r].software_share;
  }
  for (const auto& [name, value] : sum) {
    observation.counters_before[name] = 0;
    observation.counters_after[name] = value / static_cast<double>(holdings.size());
  }
}

/// The size that a configuration asks for, or why there is none.
tl::expected<FleetSize, std::string> size_of(const FleetParameters& f, const Configuration& c) {
  const auto asked = [&](const char* factor, double otherwise) {
    return c.contains(factor) ? c.number(factor) : otherwise;
  };
  const double hosts = asked("host_count", f.host_count);
  const double rnics = std::max(hosts, std::round(f.rnic_count * hosts / f.host_count));
  const double containers = asked("container_count", f.container_count * hosts / f.host_count);
  if (containers < 2 || containers > kMostContainers) {
    return tl::unexpected(fmt::format("EINVAL: a fleet runs 2 to {:g} containers, not {:g}",
                                      kMostContainers, containers));
  }
  return FleetSize{.host_count = static_cast<std::uint32_t>(hosts),
                   .rnic_count = static_cast<std::uint32_t>(rnics),
                   .container_count = static_cast<std::uint32_t>(containers),
                   .hosts_per_leaf = static_cast<std::uint32_t>(f.hosts_per_leaf),
                   .service_span_hosts = f.service_span_hosts};
}

}  // namespace

Result<FleetModel> load_fleet(const std::string& name_or_path) {
  using P = FleetParameters;
  static constexpr ParameterRow<P> kTable[] = {
      {"host_count", &P::host_count, 2, 1e6},
      {"rnic_count", &P::rnic_count, 2, 1e7},
      {"container_count", &P::container_count, 2, kMostContainers},
      {"hosts_per_leaf", &P::hosts_per_leaf, 1, 1e6},
      {"leaf_oversubscription", &P::leaf_oversubscription, 0.001, 1000},
      {"fabric_hop_ns", &P::fabric_hop_ns, 0, 1e9},
      {"service_span_hosts", &P::service_span_hosts, 0.001, 1e6},
      {"active_peer_share", &P::active_peer_share, 0, 1},
      {"rule_shape_count", &P::rule_shape_count, 1, 4096},
  };
  auto set = load_parameter_set("fleets", name_or_path);
  if (!set) return pass_on(set);
  auto parameters = take_parameters<P>(*set, kTable);
  if (!parameters) return pass_on(parameters);
  return FleetModel{std::move(*set), *parameters};
}

Observation observe_fleet(const Settings& settings, const target::MeasureRequest& request) {
  Observation observation;
  const FleetParameters& f = settings.fleet->parameters;
  auto load = read_host_load(request.configuration, settings.model.parameters, settings.options);
  const auto refused = [&](const std::string& reason) {
    observation.outcome = Outcome::kRefused;
    observation.reason = reason;
    return observation;
  };
  if (!load) return refused(load.error().reason);
  const auto size = size_of(f, request.configuration);
  if (!size) return refused(size.error());
  if (!load->carries_data_in_request()) return refused("EOPNOTSUPP: a fleet sends or writes");

  const FleetPlacement placement = place_fleet(*size, request.seed);
  const auto holdings =
      holdings_of(placement, static_cast<std::uint32_t>(f.rule_shape_count), request.seed);
  const Common common = common_of(settings, *load);
  std::vector<MessageCost> costs;
  costs.reserve(holdings.size());
  Misjudged misjudged(common, settings.defects, request.configuration);
  for (const RnicHolding& holding : holdings) {
    const double over = overflow_share(common, holding);
    const double offloaded = holding.peering_count * common.s.megaflows_per_peering * (1 - over);
    costs.push_back(cost_of(common, holding, over + (1 - over) * misjudged.share(offloaded)));
  }
  const FleetFlow flow = solve_fleet(placement, costs, traffic_of(common, f, *size));

  report_rates(common, flow, observation);
  report_latency(flow, observation);
  report_counters(common, holdings, costs, flow,
                  static_cast<double>(request.duration.count()) * 1e-9, observation);
  Configuration granted = request.configuration;
  granted.set("container_count", static_cast<double>(size->container_count));
  granted.set("host_count", static_cast<double>(size->host_count));
  observation.granted = granted;
  observation.steady = SteadyState{
      .settled = flow.converged, .warmup_share = 0, .test = "fixed point of mean values"};
  observation.outcome = Outcome::kMeasured;
  return observation;
}

void describe_fleet(const Settings& settings, target::Info& info) {
  const FleetParameters& f = settings.fleet->parameters;
  info.description = fmt::format("{:g} hosts with {:g} virtual {}, {}", f.host_count, f.rnic_count,
                                 settings.model.name, settings.fleet->set.name);
  info.factors.assign(std::begin(kFactors), std::end(kFactors));
  info.categories = {{"operation", {"SEND", "WRITE"}}};
  info.environment.emplace("fleet", settings.fleet->set.id);
}

}  // namespace greynic::twin
