#include "ovs/ovs_target.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <set>

#include "common/measured_traffic.h"
#include "common/packet_bytes.h"
#include "greynic/files/output_file.h"
#include "greynic/flows/few_masks.h"
#include "ovs/packet_cost.h"

namespace greynic::flows {
namespace {

constexpr const char* kSink = "sink";
constexpr std::size_t kReplayPackets = 8192;

/// Subtables are sorted by hits once a second; a layout's traffic hits them unevenly, so it has to
/// be waited for. Traffic of mask factors is even: order does not matter to it.
constexpr std::chrono::milliseconds kSortedWarmup{2200};
constexpr std::chrono::milliseconds kEvenWarmup{200};
constexpr double kRoundsToFill = 4;  ///< of the replay, until the exact-match cache has what it can

constexpr std::array<std::string_view, 6> kFactors = {
    "server_decap_masks", "rules_per_mask",    "flow_count",
    "message_bytes",      "exact_match_cache", "signature_match_cache"};

std::map<std::string, std::string> environment_of(const PrivateSwitch& ovs) {
  auto environment = host_environment();
  environment["device"] = ovs.version();
  environment["packet_cpu"] = std::to_string(ovs.cpu());
  return environment;
}

std::set<std::uint32_t> ends_of_tunnels(const Traffic& traffic) {
  std::set<std::uint32_t> ends;
  for (const TrafficFlow& flow : traffic.flows) {
    if (!is_tunnelled(flow.packet)) continue;
    ends.insert(end_of_tunnel(flow.packet, PrivateSwitch::kTunnelEnd));
  }
  return ends;
}

}  // namespace

PrivateOvsTarget::PrivateOvsTarget(std::string name, std::unique_ptr<PrivateSwitch> ovs)
    : name_(std::move(name)),
      ovs_(std::move(ovs)),
      driver_(
          ovs_->folder() + "/" + ovs_->bridge() + ".mgmt", [this] { return ovs_->ports(); },
          Journal::in_memory()) {
  if (auto offer = driver_.probe()) offer_ = std::move(*offer);
}

Result<std::unique_ptr<target::Target>> PrivateOvsTarget::open(const target::Spec& spec) {
  PrivateSwitchOptions options;
  if (!spec.place.empty()) options.bridge = spec.place;
  for (const auto& [name, value] : spec.options) {
    auto cpu = name == "cpu" ? parse_factor_value(FactorType::kNumeric, value)
                             : Result<FactorValue>(fail(ErrorCode::kBadInput, ""));
    if (!cpu) {
      return fail(ErrorCode::kBadInput,
                  fmt::format("target '{}': option {}={} is not one of cpu=NUMBER, rundir=FOLDER",
                              spec.text, name, value));
    }
    options.cpu = static_cast<int>(std::get<double>(*cpu));
  }
  auto ovs = PrivateSwitch::start(options);
  if (!ovs) return pass_on(ovs);
  return std::unique_ptr<target::Target>(new PrivateOvsTarget(spec.text, std::move(*ovs)));
}

target::Info PrivateOvsTarget::info() const {
  target::Info info;
  info.name = name_;
  info.description = "Open vSwitch, userspace datapath, started by greynic for itself";
  info.factors.assign(kFactors.begin(), kFactors.end());
  info.limits = {{"server_decap_masks", kMostMasks},
                 {"rules_per_mask", 4096},
                 {"flow_count", kMostFlows},
                 {"message_bytes", kMostPayloadBytes}};
  info.environment = environment_of(*ovs_);
  info.facts = facts_of(offer_);
  info.seconds_per_test = 0.6;
  return info;
}

Result<void> PrivateOvsTarget::ensure_sinks(const RuleSet& rules) {
  return for_each_port(rules, [&](const std::string& port) {
    return port == PrivateSwitch::kSource ? Result<void>() : ovs_->ensure_sink(port);
  });
}

Result<void> PrivateOvsTarget::send(const Traffic& traffic, std::size_t payload_bytes,
                                    std::uint64_t seed) {
  const auto ends = ends_of_tunnels(traffic);
  if (!ends.empty()) {
    if (auto ended = ovs_->end_tunnels(ends); !ended) return ended;
  }
  const auto slots = std::max(kReplayPackets, traffic.flows.size());
  auto frames = frames_of(traffic, slots, payload_bytes, seed, &PrivateSwitch::kTunnelEnd);
  if (!frames) return pass_on(frames);
  // What one flow too many rounded up would not fit any more.
  if (frames->size() > kMostFlows) frames->resize(static_cast<std::size_t>(kMostFlows));
  round_packets_ = static_cast<double>(frames->size());
  if (auto quickly = ovs_->learn_quickly(true); !quickly) return quickly;
  const std::string path = ovs_->folder() + "/traffic.pcap";
  if (auto written = files::write_text(path, pcap_of(*frames)); !written) return written;
  return ovs_->start_traffic(path, !ends.empty());
}

Result<void> PrivateOvsTarget::set_up(const target::MeasureRequest& request) {
  const Configuration& wanted = request.configuration;
  const std::string key = wanted.name() + "#" + std::to_string(request.seed);
  if (key == running_) return {};
  running_.clear();
  const auto payload = static_cast<std::size_t>(payload_of(wanted));
  if (auto quiet = ovs_->stop_traffic(); !quiet) return quiet;
  const std::pair caches(wanted.flag("exact_match_cache"), wanted.flag("signature_match_cache"));
  if (caches_ != caches) {
    if (auto set = ovs_->set_caches(caches.first, caches.second); !set) return set;
    caches_ = caches;
  }
  Traffic traffic = traffic_;
  if (!laid_out_) {
    auto own = mask_traffic(shape_of(wanted), kSink, request.seed);
    if (!own) return pass_on(own);
    if (auto made = ensure_sinks(own->rules); !made) return made;
    if (auto installed = driver_.apply(own->rules); !installed) return installed;
    traffic = std::move(own->traffic);
  }
  if (auto forgotten = ovs_->forget_megaflows(); !forgotten) return forgotten;
  if (auto sent = send(traffic, payload, request.seed); !sent) return sent;
  running_ = key;
  return {};
}

void PrivateOvsTarget::fill(Observation& observation, const PacketTimes& times) {
  const PmdStats& stats = times.stats;
  // A packet out of a tunnel is looked up twice, wrapped and unwrapped.
  const double packets = std::max(1.0, stats.packets + stats.recirculations);
  auto& measures = observation.measures;
  measures["packet_cost_ns"] = times.cost_ns;
  measures["packet_cost_cycles"] = {times.cost_cycles, {}};
  measures[std::string(measure::kPacketRate)] = {times.packets / times.wall_seconds * 1e-6, {}};
  measures["subtable_lookups_per_packet"] = {stats.lookups_per_packet(), {}};
  measures["exact_match_hit_share"] = {stats.exact_match_hits / packets, {}};
  measures["signature_match_hit_share"] = {stats.signature_match_hits / packets, {}};
  measures["megaflow_hit_share"] = {stats.megaflow_hits / packets, {}};
  measures["simple_match_hit_share"] = {stats.simple_match_hits / packets, {}};
  measures["miss_share"] = {stats.misses / packets, {}};
  observation.counters_before = {{"packets", 0}, {"megaflow_hits", 0}, {"misses", 0}};
  observation.counters_after = {
      {"packets", stats.packets}, {"megaflow_hits", stats.megaflow_hits}, {"misses", stats.misses}};
  observation.steady = times.steady;
}

Result<Observation> PrivateOvsTarget::measure_request(const target::MeasureRequest& request) {
  Observation observation;
  observation.asked = request.configuration;
  observation.repeat = request.repeat;
  observation.seed = request.seed;
  observation.environment = environment_of(*ovs_);
  if (std::string reason = unsupported(request.configuration, kFactors, "a switch");
      !reason.empty()) {
    observation.outcome = Outcome::kRefused;
    observation.reason = std::move(reason);
    return observation;
  }
  const auto start = std::chrono::steady_clock::now();
  const auto refused = [&](const Error& error) {
    observation.outcome = Outcome::kRefused;
    observation.reason = error.message;
    return observation;
  };
  if (auto ready = set_up(request); !ready) {
    if (ready.error().code == ErrorCode::kMissing) return pass_on(ready);
    return refused(ready.error());
  }
  auto times = time_packets(*ovs_, request.duration,
                            {laid_out_ ? kSortedWarmup : kEvenWarmup,
                             caches_->first ? kRoundsToFill * round_packets_ : 0});
  if (!times) {
    if (times.error().code != ErrorCode::kRefused) return pass_on(times);
    return refused(times.error());
  }
  fill(observation, *times);
  auto dump = ovs_->ask("dpctl/dump-flows");
  if (!dump) return pass_on(dump);
  const MegaflowCount count = count_megaflows(*dump);
  observation.measures["megaflow_masks"] = {static_cast<double>(count.masks), {}};
  observation.measures["megaflows"] = {static_cast<double>(count.flows), {}};
  auto upcalls = ovs_->ask("upcall/show");
  if (!upcalls) return pass_on(upcalls);
  const auto revalidators = parse_revalidators(*upcalls);
  if (!revalidators) return pass_on(revalidators);
  observation.measures["revalidator_dump_ms"] = {revalidators->dump_ms, {}};
  observation.measures["revalidator_flow_limit"] = {revalidators->flow_limit, {}};
  observation.granted = request.configuration;
  if (laid_out_) {
    observation.granted.set("server_decap_masks", static_cast<double>(count.masks));
    observation.granted.set("flow_count", static_cast<double>(traffic_.flows.size()));
  } else if (const double masks = request.configuration.number("server_decap_masks");
             request.configuration.number("flow_count") < masks) {
    observation.granted.set("flow_count", masks);  // every mask is in use
  }
  observation.outcome = Outcome::kMeasured;
  observation.elapsed_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return observation;
}

Result<void> PrivateOvsTarget::measure(std::span<const target::MeasureRequest> requests,
                                       const target::ObservationSink& sink) {
  auto measured = measure_each(requests, sink, [this](const target::MeasureRequest& request) {
    return measure_request(request);
  });
  if (!measured) return measured;
  // The packet thread burns a CPU as long as packets come: none are left running between calls.
  running_.clear();
  return ovs_->stop_traffic();
}

Result<void> PrivateOvsTarget::check(const target::FittedLayout& layout,
                                     const target::Placement& placement) {
  if (placement.hop != Hop::kServerDecap) {
    return fail(ErrorCode::kUnsupported, "a switch has one mask sequence: server_decap");
  }
  const RuleSet rules = rules_of(layout.layout());
  if (auto made = ensure_sinks(rules); !made) return made;
  return driver_.check(rules);
}

Result<void> PrivateOvsTarget::install(const target::FittedLayout& layout, const Traffic* traffic,
                                       const target::Placement& placement) {
  if (auto accepted = check(layout, placement); !accepted) return accepted;
  const RuleSet rules = rules_of(layout.layout());
  auto sent = sendable(traffic, rules, &PrivateSwitch::kTunnelEnd);
  if (!sent) return pass_on(sent);
  if (auto can = check_traffic(*sent); !can) return can;
  if (auto quiet = ovs_->stop_traffic(); !quiet) return quiet;
  running_.clear();
  if (auto installed = driver_.apply(rules); !installed) return installed;
  laid_out_ = true;
  traffic_ = std::move(*sent);
  return {};
}

Result<void> PrivateOvsTarget::check_traffic(const Traffic& traffic) const {
  if (auto can = check_sendable(traffic, &PrivateSwitch::kTunnelEnd); !can) return can;
  const std::size_t ends = ends_of_tunnels(traffic).size();
  if (ends <= PrivateSwitch::kMostTunnelEnds) return {};
  return fail(ErrorCode::kTooBig,
              fmt::format("traffic through tunnels that end at {} addresses (tunnel_ipv4_dst): "
                          "this switch is given at most {}",
                          ends, PrivateSwitch::kMostTunnelEnds));
}

Layout PrivateOvsTarget::fastest(Layout layout) const {
  if (has_reading_table(layout)) return layout;
  return few_masks(layout).value_or(std::move(layout));
}

Result<void> PrivateOvsTarget::roll_back() {
  if (auto quiet = ovs_->stop_traffic(); !quiet) return quiet;
  running_.clear();
  laid_out_ = false;
  return driver_.roll_back();
}

}  // namespace greynic::flows
