#include "tc/tc_target.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <set>

#include "common/measured_traffic.h"
#include "tc/flower_mask_traffic.h"

namespace greynic::flows {
namespace {

constexpr std::size_t kReplayPackets = 4096;

constexpr std::array<std::string_view, 4> kFactors = {"server_decap_masks", "rules_per_mask",
                                                      "flow_count", "message_bytes"};

std::size_t preferences_of(const RuleSet& rules) {
  std::set<std::pair<std::uint32_t, RulePriority>> seen;
  for (const FlowRule& rule : rules.rules) seen.emplace(rule.table, rule.priority);
  return seen.size();
}

/// A filter on the port of a new wire; the kernel loads its classifier, or says that it has none.
Result<Offer> try_flower(TcDriver& driver) {
  auto offer = driver.probe();
  if (!offer) return offer;
  if (offer->fields.empty()) {
    return fail(ErrorCode::kMissing, "the kernel has no flower classifier (CONFIG_NET_CLS_FLOWER)");
  }
  return offer;
}

Result<std::unique_ptr<TcDriver>> driver_on(const VethWire& wire, TcPlace place) {
  Result<std::unique_ptr<TcDriver>> driver = fail(ErrorCode::kInternal, "not opened");
  const auto entered = wire.place().inside(
      [&] { driver = TcDriver::open(VethWire::kPort, place, Journal::in_memory()); });
  if (!entered) return pass_on(entered);
  return driver;
}

}  // namespace

TcObstacle tc_obstacle() {
  const std::string vm = "; tests/vm/run gives a small machine with both";
  auto wire = VethWire::create();
  if (!wire) return {wire.error().message, "run as root on a kernel with veth" + vm};
  auto driver = driver_on(**wire, TcPlace::kBoth);
  if (!driver) return {driver.error().message, "run as root" + vm};
  if (auto offer = try_flower(**driver); !offer) {
    return {offer.error().message, "run a kernel that has cls_flower, as Debian's does" + vm};
  }
  return {};
}

TcTarget::TcTarget(std::string name, std::unique_ptr<VethWire> wire,
                   std::unique_ptr<TcDriver> driver)
    : name_(std::move(name)), wire_(std::move(wire)), driver_(std::move(driver)) {}

Result<std::unique_ptr<target::Target>> TcTarget::open(const target::Spec& spec, TcPlace place) {
  auto wire = VethWire::create();
  if (!wire) return pass_on(wire);
  auto driver = driver_on(**wire, place);
  if (!driver) return pass_on(driver);
  auto offer = try_flower(**driver);
  if (!offer) return pass_on(offer);
  std::unique_ptr<TcTarget> made(new TcTarget(spec.text, std::move(*wire), std::move(*driver)));
  made->offer_ = std::move(*offer);
  return std::unique_ptr<target::Target>(std::move(made));
}

target::Info TcTarget::info() const {
  target::Info info;
  info.name = name_;
  info.description = "tc flower on a veth pair of greynic's own";
  info.factors.assign(kFactors.begin(), kFactors.end());
  info.limits = {{"server_decap_masks", kMostFlowerMasks},
                 {"rules_per_mask", 4096},
                 {"flow_count", kMostFlows},
                 {"message_bytes", kMostPayloadBytes}};
  info.environment = host_environment();
  info.facts = facts_of(offer_);
  info.seconds_per_test = 0.3;
  return info;
}

Result<void> TcTarget::ensure_sinks(const RuleSet& rules) {
  return for_each_port(rules, [&](const std::string& port) { return wire_->ensure_sink(port); });
}

Result<void> TcTarget::set_up(const target::MeasureRequest& request) {
  const Configuration& wanted = request.configuration;
  const std::string key = wanted.name() + "#" + std::to_string(request.seed);
  if (key == ready_) return {};
  ready_.clear();
  Traffic traffic = traffic_;
  if (!laid_out_) {
    auto own = flower_mask_traffic(shape_of(wanted), request.seed);
    if (!own) return pass_on(own);
    if (auto installed = driver_->apply(own->rules); !installed) return installed;
    preferences_ = preferences_of(own->rules);
    traffic = std::move(own->traffic);
  }
  auto frames = frames_of(traffic, kReplayPackets, static_cast<std::size_t>(payload_of(wanted)),
                          request.seed);
  if (!frames) return pass_on(frames);
  frames_ = std::move(*frames);
  ready_ = key;
  return {};
}

Result<Observation> TcTarget::measure_request(const target::MeasureRequest& request) {
  Observation observation;
  observation.asked = request.configuration;
  observation.repeat = request.repeat;
  observation.seed = request.seed;
  observation.environment = host_environment();
  observation.outcome = Outcome::kRefused;
  observation.reason = unsupported(request.configuration, kFactors, "tc flower");
  if (!observation.reason.empty()) return observation;
  const auto start = std::chrono::steady_clock::now();
  if (auto ready = set_up(request); !ready) {
    observation.reason = ready.error().message;
    return observation;
  }
  const auto counted = [&]() -> Result<double> {
    auto rows = driver_->counters();
    if (!rows) return pass_on(rows);
    double packets = 0;
    for (const RuleCount& row : *rows) packets += static_cast<double>(row.packets);
    return packets;
  };
  const auto before = counted();
  if (!before) return pass_on(before);
  auto times = wire_->time(frames_, request.duration);
  if (!times) {
    if (times.error().code != ErrorCode::kRefused) return pass_on(times);
    observation.reason = times.error().message;
    return observation;
  }
  const auto after = counted();
  if (!after) return pass_on(after);
  observation.measures["packet_cost_ns"] = times->cost_ns;
  observation.measures[std::string(measure::kPacketRate)] = {
      times->packets / times->wall_seconds * 1e-6, {}};
  observation.measures["preferences"] = {static_cast<double>(preferences_), {}};
  observation.counters_before = {{"rule_hits", *before}};
  observation.counters_after = {{"rule_hits", *after}};
  observation.steady = times->steady;
  observation.granted = request.configuration;
  // flower searches for every packet: no cache is in front, whatever a factor's standard says.
  observation.granted.set("exact_match_cache", false);
  observation.granted.set("signature_match_cache", false);
  if (laid_out_) {
    observation.granted.set("server_decap_masks", static_cast<double>(preferences_));
    observation.granted.set("flow_count", static_cast<double>(traffic_.flows.size()));
  } else if (*after - *before < times->packets) {
    // Every packet of mask factors has its rule, so each must have been counted.
    observation.reason = fmt::format("of {} packets only {} were counted by a rule", times->packets,
                                     *after - *before);
    return observation;
  }
  observation.outcome = Outcome::kMeasured;
  observation.reason.clear();
  observation.elapsed_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return observation;
}

Result<void> TcTarget::measure(std::span<const target::MeasureRequest> requests,
                               const target::ObservationSink& sink) {
  return measure_each(requests, sink, [this](const target::MeasureRequest& request) {
    return measure_request(request);
  });
}

Result<void> TcTarget::check(const target::FittedLayout& layout,
                             const target::Placement& placement) {
  if (placement.hop != Hop::kServerDecap) {
    return fail(ErrorCode::kUnsupported, "an interface has one mask sequence: server_decap");
  }
  const RuleSet rules = rules_of(layout.layout());
  if (auto made = ensure_sinks(rules); !made) return made;
  return driver_->check(rules);
}

Result<void> TcTarget::install(const target::FittedLayout& layout, const Traffic* traffic,
                               const target::Placement& placement) {
  if (auto accepted = check(layout, placement); !accepted) return accepted;
  const RuleSet rules = rules_of(layout.layout());
  auto sent = sendable(traffic, rules);
  if (!sent) return pass_on(sent);
  ready_.clear();
  if (auto installed = driver_->apply(rules); !installed) return installed;
  laid_out_ = true;
  preferences_ = preferences_of(rules);
  traffic_ = std::move(*sent);
  return {};
}

Result<void> TcTarget::check_traffic(const Traffic& traffic) const {
  return check_sendable(traffic);
}

Result<void> TcTarget::roll_back() {
  ready_.clear();
  laid_out_ = false;
  return driver_->roll_back();
}

}  // namespace greynic::flows
