#include "fleet/fleet.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "fleet/cost.h"
#include "fleet/flow_start.h"
#include "greynic/statistics/random.h"
#include "switch/layout_walk.h"

namespace greynic::twin {
namespace {

constexpr double kMostContainers = 1e7;
constexpr std::string_view kFactors[] = {
    "container_count", "host_count",         "operation",          "message_bytes",
    "mtu_bytes",       "client_encap_masks", "server_decap_masks", "counter_poll_ms",
    "flow_idle_ms",    "flow_setup_rate"};

FleetTraffic traffic_of(const Common& c, const FleetParameters& f, const FleetSize& size,
                        std::uint64_t seed) {
  const double rnics_per_leaf =
      f.hosts_per_leaf * static_cast<double>(size.rnic_count) / size.host_count;
  FleetTraffic traffic;
  traffic.active_peer_share = f.active_peer_share;
  traffic.leaf_link_ns = c.packets * c.wire_ns * f.leaf_oversubscription / rnics_per_leaf;
  traffic.away_delay_ns = 2 * f.fabric_hop_ns;
  traffic.return_ns = c.p.one_way_ns + c.p.pcie_post_ns;
  if (f.rnic_gbps_high > 0) {
    // Each RNIC has work for so much, and its link lets through no more.
    statistics::Random random(statistics::split_mix(~seed));
    const double bits = c.packets * c.payload * 8;
    for (std::uint32_t r = 0; r < size.rnic_count; ++r) {
      const double wanted =
          f.rnic_gbps_low + random.uniform() * (f.rnic_gbps_high - f.rnic_gbps_low);
      traffic.most_per_ns.push_back(std::min(wanted, c.p.link_rate_gbps) / bits);
    }
  }
  return traffic;
}

/// The RNICs of one model with their hosts, below leaves of their own: they talk with their like.
struct Part {
  HostLoad load;
  std::optional<Common> common;
  FleetSize size;
  std::vector<RnicHolding> holdings;
  std::vector<MessageCost> costs;
  FleetFlow flow;
  LatencyHistogram starts;  ///< of new flows, from the first packet until the RNIC forwards
};

/// So many flows are started to see how long they wait: their 99.9th percentile has 200 beyond it.
constexpr std::uint32_t kFlowsStarted = 200'000;

void solve(const Settings& settings, const target::MeasureRequest& request, std::size_t model,
           Part& part) {
  const FleetParameters& f = settings.fleet->parameters;
  const std::uint64_t seed =
      model == 0 ? request.seed
                 : statistics::split_mix(request.seed ^ statistics::split_mix(model));
  const FleetPlacement placement = place_fleet(part.size, seed);
  part.holdings = holdings_of(placement, static_cast<std::uint32_t>(f.rule_shape_count), seed);
  part.common.emplace(common_of(settings, model, part.load));
  const Common& common = *part.common;
  part.costs.reserve(part.holdings.size());
  Misjudged misjudged(common, settings.defects, request.configuration);
  for (const RnicHolding& holding : part.holdings) {
    const double over = overflow_share(common, holding);
    const double offloaded = holding.peering_count * common.s.megaflows_per_peering * (1 - over);
    part.costs.push_back(cost_of(common, holding, over + (1 - over) * misjudged.share(offloaded)));
  }
  part.flow = solve_fleet(placement, part.costs, traffic_of(common, f, part.size, seed));
  if (f.flow_starts_per_day <= 0) return;
  const RnicRules* const decap = common.installed[static_cast<std::size_t>(Hop::kServerDecap)];
  const RnicRules* const encap = common.installed[static_cast<std::size_t>(Hop::kClientEncap)];
  static const RnicRules kNone;
  const RnicRules& rules = encap ? *encap : decap ? *decap : kNone;
  const PerOperation& group_ns = encap ? common.p.encap_per_group_ns : common.p.decap_per_group_ns;
  part.starts = flow_start_delays(
      common.p, common.s, rules,
      {.starts_per_day = f.flow_starts_per_day / f.rnic_count,
       .burst_count = f.flow_burst_count,
       .group_ns = group_ns[part.load.operation],
       .flows = static_cast<std::uint32_t>(kFlowsStarted / settings.model_count())},
      seed);
}

/// Adds the messages of a part of the fleet, which sends `total` messages a second.
void add_latencies(const FleetFlow& flow, double total, LatencyHistogram& histogram) {
  constexpr double kSamples = 1e9;
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
}

void put(Observation& observation, std::string_view name, double value,
         std::optional<double> error = std::nullopt) {
  observation.measures[std::string(name)] = {value, error};
}

/// Goodput of one RNIC of a model, for fleets of several.
std::string of_model(std::string_view measure, const RnicModel& model) {
  return fmt::format("{}.{}", measure, model.id);
}

void report_rates(const Settings& settings, const std::vector<Part>& parts,
                  Observation& observation) {
  double rnics = 0;
  double sum = 0;
  double squares = 0;
  for (std::size_t m = 0; m < parts.size(); ++m) {
    double own = 0;
    for (const double rate : parts[m].flow.sent_per_second) {
      own += rate;
      squares += rate * rate;
    }
    sum += own;
    const auto count = static_cast<double>(parts[m].flow.sent_per_second.size());
    rnics += count;
    if (parts.size() == 1) continue;
    const Common& c = *parts[m].common;
    put(observation, of_model(measure::kBandwidth, settings.model_of(m)),
        own / count * c.packets * c.payload * 8e-9);
  }
  const Common& c = *parts.front().common;  // messages are alike everywhere
  const double mean = sum / rnics;
  const double variance = std::max(0.0, squares / rnics - mean * mean);
  const double error = std::sqrt(variance / rnics);
  const double gigabits = c.packets * c.payload * 8e-9;
  put(observation, measure::kBandwidth, mean * gigabits, error * gigabits);
  put(observation, measure::kMessageRate, mean * 1e-6, error * 1e-6);
  put(observation, measure::kPacketRate, mean * c.packets * 1e-6, error * c.packets * 1e-6);
  put(observation, "fleet_bandwidth_gbps", sum * gigabits, error * rnics * gigabits);
}

void report_latency(const Settings& settings, const std::vector<Part>& parts,
                    Observation& observation) {
  double total = 0;
  double sum = 0;
  for (std::size_t m = 0; m < parts.size(); ++m) {
    double own = 0;
    double own_sum = 0;
    for (const FleetFlow::Class& c : parts[m].flow.classes) {
      own += c.per_second;
      own_sum += c.per_second * c.latency_ns;
    }
    total += own;
    sum += own_sum;
    if (parts.size() > 1 && own > 0) {
      put(observation, of_model(measure::kLatencyMean, settings.model_of(m)), own_sum / own * 1e-3);
    }
  }
  if (total <= 0) return;
  for (const Part& part : parts) add_latencies(part.flow, total, observation.latency);
  put(observation, measure::kLatencyMean, sum / total * 1e-3);
  put(observation, measure::kLatencyP50, observation.latency.quantile_ns(0.5) * 1e-3);
  put(observation, measure::kLatencyP99, observation.latency.quantile_ns(0.99) * 1e-3);
  put(observation, measure::kLatencyP999, observation.latency.quantile_ns(0.999) * 1e-3);
}

void report_starts(const std::vector<Part>& parts, Observation& observation) {
  LatencyHistogram starts;
  for (const Part& part : parts) starts.merge(part.starts);
  if (starts.empty()) return;
  put(observation, "flow_start_us_mean", starts.mean_ns() * 1e-3);
  static constexpr std::pair<const char*, double> kQuantiles[] = {{"flow_start_us_p10", 0.1},
                                                                  {"flow_start_us_p50", 0.5},
                                                                  {"flow_start_us_p90", 0.9},
                                                                  {"flow_start_us_p99", 0.99},
                                                                  {"flow_start_us_p999", 0.999}};
  for (const auto& [name, q] : kQuantiles) put(observation, name, starts.quantile_ns(q) * 1e-3);
}

/// Means over the RNICs, as their drivers and switches would count over `seconds`.
void report_counters(const std::vector<Part>& parts, double seconds, Observation& observation) {
  std::map<std::string, double> sum;
  double rnics = 0;
  for (const Part& part : parts) {
    const Common& c = *part.common;
    rnics += static_cast<double>(part.holdings.size());
    for (std::size_t r = 0; r < part.holdings.size(); ++r) {
      const RnicHolding& holding = part.holdings[r];
      const double messages = part.flow.sent_per_second[r] * seconds;
      const double packets = messages * c.packets;
      sum["tx_vport_rdma_unicast_packets"] += packets;
      sum["tx_vport_rdma_unicast_bytes"] += packets * c.payload;
      sum["icm_context_cache_miss"] +=
          messages * (2 * context_misses(c, holding) + encap_misses(c, holding));
      sum["datapath_flows"] += holding.host_peering_count * c.s.megaflows_per_peering;
      sum["flow_groups"] += holding.mask_count;
      sum["encap_contexts"] += holding.remote_host_count;
      sum["software_forwarded_packets"] += 2 * packets * part.costs[r].software_share;
    }
  }
  for (const auto& [name, value] : sum) {
    observation.counters_before[name] = 0;
    observation.counters_after[name] = value / rnics;
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

Layout hardware_of(const Layout& layout) {
  Layout hardware;
  for (const LayoutTable& table : layout.tables) {
    if (!table.software) hardware.tables.push_back(table);
  }
  return hardware;
}

/// Whether RNICs of the model hold it. What a single table has beyond their recipes goes to software:
/// groups that are held come first there.
Result<void> takes(const RnicModel& model, const Layout& layout) {
  LayoutLimits limits = layout_limits(model.parameters);
  if (layout.tables.size() == 1) {
    limits.most_recipes = limits.most_chained = LayoutLimits::kNoLimit;
  }
  auto kept = keeps_to(hardware_of(layout), limits);
  if (kept) return kept;
  return fail(ErrorCode::kRefused, model.name + ": " + kept.error().message);
}

/// That of the model, or the one for all; null where models have their own, and this one has none.
const Layout* layout_for(const RnicModel& model, const target::FittedLayout& layout) {
  if (!layout.by_model()) return &layout.layout();
  const auto own = std::ranges::find_if(layout.parts(), [&](const ModelLayout& part) {
    return std::ranges::count(part.models, model.id) > 0;
  });
  return own == layout.parts().end() ? nullptr : &own->layout;
}

/// What a packet costs that the host's cores forward, in groups of the RNIC: the way up and a core's
/// time for it.
double slow_path_matchers(const Parameters& p) {
  const double group_ns = p.decap_per_group_ns[Operation::kWrite];
  return group_ns > 0 ? (p.upcall_us * 1e3 + 1e3 / p.slow_path_mpps) / group_ns : 0.0;
}

/// Hosts, RNICs and containers of one model: as many as of any other, give or take one.
FleetSize part_of(const FleetSize& whole, std::size_t models, std::size_t model) {
  const auto share = [&](std::uint64_t total) {
    return static_cast<std::uint32_t>((model + 1) * total / models - model * total / models);
  };
  FleetSize part = whole;
  part.host_count = share(whole.host_count);
  part.rnic_count = std::max(part.host_count, share(whole.rnic_count));
  part.container_count = share(whole.container_count);
  return part;
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
      {"rnic_gbps_low", &P::rnic_gbps_low, 0, 1e6},
      {"rnic_gbps_high", &P::rnic_gbps_high, 0, 1e6},
      {"flow_starts_per_day", &P::flow_starts_per_day, 0, 1e12},
      {"flow_burst_count", &P::flow_burst_count, 1, 1e6},
  };
  auto set = load_parameter_set("fleets", name_or_path);
  if (!set) return pass_on(set);
  auto parameters = take_parameters<P>(*set, kTable);
  if (!parameters) return pass_on(parameters);
  if (parameters->rnic_gbps_low > parameters->rnic_gbps_high) {
    return fail(ErrorCode::kBadInput,
                fmt::format("{}: /parameters/rnic_gbps_low/value: {} is above rnic_gbps_high, {}; "
                            "swap them",
                            set->source, parameters->rnic_gbps_low, parameters->rnic_gbps_high));
  }
  return FleetModel{std::move(*set), *parameters};
}

Observation observe_fleet(const Settings& settings, const target::MeasureRequest& request) {
  Observation observation;
  const FleetParameters& f = settings.fleet->parameters;
  const auto refused = [&](const std::string& reason) {
    observation.outcome = Outcome::kRefused;
    observation.reason = reason;
    return observation;
  };
  const auto size = size_of(f, request.configuration);
  if (!size) return refused(size.error());
  const std::size_t models = settings.model_count();
  if (size->host_count < 2 * models || size->container_count < 2 * models) {
    return refused(fmt::format("EINVAL: {} models need {} hosts and containers, as each has two",
                               models, 2 * models));
  }
  std::vector<Part> parts(models);
  for (std::size_t m = 0; m < models; ++m) {
    auto load =
        read_host_load(request.configuration, settings.model_of(m).parameters, settings.options);
    if (!load) return refused(load.error().reason);
    if (!load->carries_data_in_request()) return refused("EOPNOTSUPP: a fleet sends or writes");
    parts[m].load = std::move(*load);
    parts[m].size = part_of(*size, models, m);
  }
  bool converged = true;
  for (std::size_t m = 0; m < models; ++m) {
    solve(settings, request, m, parts[m]);
    converged = converged && parts[m].flow.converged;
  }

  report_rates(settings, parts, observation);
  report_latency(settings, parts, observation);
  report_starts(parts, observation);
  if (!settings.layout_taken.empty()) {
    double with = 0;
    double all = 0;
    for (std::size_t m = 0; m < models; ++m) {
      all += parts[m].size.rnic_count;
      with += settings.layout_taken[m] ? parts[m].size.rnic_count : 0;
    }
    put(observation, "layout_share", with / all);
  }
  report_counters(parts, static_cast<double>(request.duration.count()) * 1e-9, observation);
  Configuration granted = request.configuration;
  granted.set("container_count", static_cast<double>(size->container_count));
  granted.set("host_count", static_cast<double>(size->host_count));
  observation.granted = granted;
  observation.steady =
      SteadyState{.settled = converged, .warmup_share = 0, .test = "fixed point of mean values"};
  observation.outcome = Outcome::kMeasured;
  return observation;
}

LayoutLimits fleet_limits(const Settings& settings) {
  std::vector<LayoutLimits> all;
  bool some_without_recipes = false;
  for (std::size_t m = 0; m < settings.model_count(); ++m) {
    all.push_back(layout_limits(settings.model_of(m).parameters));
    some_without_recipes |= all.back().most_recipes == LayoutLimits::kNoLimit;
  }
  LayoutLimits limits = strictest(all);
  if (some_without_recipes) {
    limits.most_recipes = limits.most_chained = LayoutLimits::kNoLimit;
    limits.recipes_of = {};
  }
  return limits;
}

std::vector<ModelLimits> fleet_models(const Settings& settings) {
  const auto alike = [](const Parameters& a, const Parameters& b) {
    const auto key = [](const Parameters& p) {
      // What software costs is of interest where an RNIC may be too small for a layout.
      const double own = p.mask_shape_limit > 0 ? slow_path_matchers(p) : 0.0;
      return std::tuple(p.table_limit, p.table_rule_limit, p.table_rejoin, p.range_field_count,
                        p.mask_shape_limit, p.recipe_word_count, p.recipe_chain_limit, own);
    };
    return key(a) == key(b);
  };
  std::vector<ModelLimits> groups;
  std::vector<const Parameters*> first;
  for (std::size_t m = 0; m < settings.model_count(); ++m) {
    const RnicModel& model = settings.model_of(m);
    const auto known = std::ranges::find_if(
        first, [&](const Parameters* other) { return alike(*other, model.parameters); });
    if (known != first.end()) {
      groups[static_cast<std::size_t>(known - first.begin())].models.push_back(model.id);
      continue;
    }
    first.push_back(&model.parameters);
    groups.push_back(
        {{model.id}, layout_limits(model.parameters), slow_path_matchers(model.parameters), true});
  }
  return groups;
}

Result<void> check_fleet_layout(const Settings& settings, const target::FittedLayout& layout) {
  std::string why_not;
  for (std::size_t m = 0; m < settings.model_count(); ++m) {
    const RnicModel& model = settings.model_of(m);
    const Layout* const own = layout_for(model, layout);
    if (own == nullptr) {
      return fail(ErrorCode::kRefused, "there is no layout for the " + model.name);
    }
    auto taken = takes(model, *own);
    if (layout.by_model()) {
      if (!taken) return taken;
      continue;
    }
    if (taken) return {};
    why_not += (why_not.empty() ? "" : "; ") + taken.error().message;
  }
  return layout.by_model() ? Result<void>() : fail(ErrorCode::kRefused, why_not);
}

void install_on_fleet(const target::FittedLayout& layout, const Traffic* traffic, Hop hop,
                      Settings& settings) {
  std::vector<std::optional<RnicRules>>& rules =
      settings.fleet_rules[static_cast<std::size_t>(hop)];
  rules.resize(settings.model_count());
  settings.layout_taken.assign(settings.model_count(), true);
  for (std::size_t m = 0; m < settings.model_count(); ++m) {
    const RnicModel& model = settings.model_of(m);
    const Layout* const own = layout_for(model, layout);
    if (own != nullptr && takes(model, *own)) {
      rules[m] = rules_of(*own, traffic, layout_limits(model.parameters));
    } else {
      settings.layout_taken[m] = false;
    }
  }
}

void describe_fleet(const Settings& settings, target::Info& info) {
  const FleetParameters& f = settings.fleet->parameters;
  std::string names;
  for (std::size_t m = 0; m < settings.model_count(); ++m) {
    names += (m == 0 ? "" : ", ") + settings.model_of(m).name;
  }
  info.description = fmt::format("{:g} hosts with {:g} virtual {}, {}", f.host_count, f.rnic_count,
                                 names, settings.fleet->set.name);
  info.environment.insert_or_assign("nic", names);
  info.factors.assign(std::begin(kFactors), std::end(kFactors));
  info.categories = {{"operation", {"SEND", "WRITE"}}};
  info.environment.emplace("fleet", settings.fleet->set.id);
}

}  // namespace greynic::twin
