#include "greynic/verbs/verbs_target.h"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <deque>
#include <future>
#include <thread>

#include "counters/counter_watch.h"
#include "greynic/target/interrupt.h"
#include "greynic/verbs/counters.h"
#include "greynic/verbs/faults.h"
#include "greynic/verbs/patience.h"
#include "peer/fan_out.h"
#include "target/device_offer.h"
#include "target/run_observation.h"
#include "target/target_options.h"

namespace greynic::verbs {
namespace {

using Peers = std::vector<std::unique_ptr<Peer>>;

/// What the counters of the peers are while traffic runs, in their order; one may read nothing.
struct PeerCounters {
  std::vector<std::unique_ptr<target::FarCounters>> hosts;  // of the sources
  std::vector<CounterSource> sources;
};

std::string names_of(const Peers& peers) {
  std::vector<std::string> names;
  for (const auto& peer : peers) names.push_back(peer->name());
  return fmt::format("{}", fmt::join(names, ", "));
}

class VerbsTarget final : public target::Target {
 public:
  VerbsTarget(target::Spec spec, TargetOptions options, Peers peers, PeerCounters peer_counters,
              std::unique_ptr<target::CounterArena> arena)
      : spec_(std::move(spec)),
        options_(std::move(options)),
        arena_(std::move(arena)),
        peers_(std::move(peers)),
        peer_counters_(std::move(peer_counters)) {
    self_.push_back(local_peer(spec_.place, options_.port, options_.base.gid_rule));
  }

  /// Opens the device for the first time; later it is opened again only if it vanished.
  Result<void> open_device() {
    auto device = Device::open(spec_.place, options_.port);
    if (!device) return pass_on(device);
    const auto port = device->port_state();
    if (!port) return pass_on(port);
    if (!port->active) {
      return fail(ErrorCode::kMissing, fmt::format("port {} of {} is not active; bring its link up",
                                                   options_.port, spec_.place));
    }
    if (port->ethernet) {
      const auto entries = device->gids();
      if (!entries) return pass_on(entries);
      if (const auto gid = choose_gid(*entries, options_.base.gid_rule); !gid) {
        return gid.error().while_doing("choosing a GID of " + spec_.place);
      }
    }
    if (options_.optional_counters) {
      optional_counters_.reset();  // of a device that was added again: first as it was before
      auto on = OptionalCountersOn::create(spec_.place, options_.port);
      if (!on) return pass_on(on);
      optional_counters_ = std::move(*on);
    }
    device_ = std::make_unique<Device>(std::move(*device));
    return {};
  }

  target::Info info() const override {
    target::Info info = what_it_offers(*device_);
    info.name = spec_.text;
    info.description = fmt::format("{} to {}", spec_.place, names_of(peers_));
    info.environment = environment();
    if (optional_counters_) {
      const auto names = optional_counters_->names();
      info.facts.push_back({"optional counters", std::to_string(names.size()), "", "probed",
                            names.empty()
                                ? "the driver has none"
                                : fmt::format("switched on: {}", fmt::join(names, ", "))});
    }
    info.seconds_per_test = 0.3;
    return info;
  }

  Result<void> measure(std::span<const target::MeasureRequest> requests,
                       const target::ObservationSink& sink) override {
    for (std::size_t i = 0; i < requests.size(); ++i) {
      auto observation = measure_surviving(requests[i]);
      if (!observation) return pass_on(observation);
      if (!sink(i, std::move(*observation))) break;
    }
    return {};
  }

 private:
  std::map<std::string, std::string> environment() const {
    utsname system{};
    uname(&system);
    return {{"host", system.nodename},
            {"kernel", system.release},
            {"device", device_->name()},
            {"driver", device_->driver()},
            {"firmware", device_->limits().firmware},
            {"peer", names_of(peers_)}};
  }

  /// The device is the one that was opened, and its link is up.
  bool usable() const {
    if (!device_ || device_->gone()) return false;
    const auto port = device_->port_state();
    return port && port->active;
  }

  /// A device or link, here or at the peer, that vanishes in the middle says nothing about the
  /// configuration: it is waited for and the measurement repeated. When this end's stays away the
  /// target cannot go on; a peer's is an outcome.
  Result<Observation> measure_surviving(const target::MeasureRequest& request) {
    own_patience_.begin();
    peer_patience_.begin();
    while (true) {
      if (!usable()) {
        device_.reset();
        auto opened = open_device();
        while (!opened && own_patience_.look_again() && !target::interrupted()) {
          std::this_thread::sleep_for(std::chrono::milliseconds(100));
          opened = open_device();
        }
        if (!opened) {
          return opened.error().while_doing(
              "the device or its link vanished during the run (resume when it is back)");
        }
        own_patience_.found();
      }
      Observation observation = measure_once(request);
      if (observation.outcome == Outcome::kMeasured || target::interrupted()) return observation;
      if (peer_device_away_) {
        if (!peer_patience_.look_again()) return observation;
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
      } else if (usable() || !own_patience_.look_again()) {
        return observation;
      }
    }
  }

  Observation measure_once(const target::MeasureRequest& request) {
    const auto begin = std::chrono::steady_clock::now();
    peer_device_away_ = false;
    Observation observation;
    observation.asked = request.configuration;
    observation.repeat = request.repeat;
    observation.seed = request.seed;
    observation.environment = environment();
    const std::string fault = request.configuration.text("fault");
    if (fault.empty() || fault == "none") {
      run(request, observation);
    } else {
      run_fault(fault, request.configuration, observation);
    }
    if (observation.outcome != Outcome::kMeasured) {
      for (const auto& peer : peers_) peer->abandon();
      self_.front()->abandon();
    }
    observation.elapsed_seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return observation;
  }

  void run_fault(const std::string& fault, const Configuration& configuration,
                 Observation& observation) {
    const std::string operation = configuration.text("operation");
    const FaultRow* row = find_fault(fault, operation);
    if (row == nullptr || configuration.text("transport") != row->transport) {
      return end(observation, Outcome::kRefused,
                 fmt::format("fault {} is not defined for {} on {}", fault, operation,
                             configuration.text("transport")));
    }
    Peer& peer = *peers_for(configuration).front();
    const TrafficPlan plan = fault_plan(*row, options_.base);
    auto mine = Endpoint::create(*device_, plan, {.requests = true, .answers = false});
    if (!mine) return end(observation, mine.error());
    const auto theirs = peer.open(plan, lease_of(plan, {}));
    if (!theirs) return end(observation, theirs.error());
    if (auto done = mine->connect(*theirs, fault_timers()); !done) {
      return end(observation, done.error());
    }
    if (auto done = peer.connect(mine->describe(), {}); !done) {
      return end(observation, done.error());
    }
    const auto result = provoke(*mine, *row, device_->driver());
    // The other end saw a fault as well; what is asked is what the requester was told.
    const auto far = peer.finish({});
    if (!result) return end(observation, result.error());
    if (!far) return end(observation, far.error());
    observation.outcome = Outcome::kMeasured;
    observation.measures["status_as_expected_share"] = {result->as_expected ? 1.0 : 0.0, {}};
    observation.measures["status_by_the_book_share"] = {result->by_the_book ? 1.0 : 0.0, {}};
    observation.environment["expected_status"] = result->expected;
    observation.environment["book_status"] = row->expected;
    observation.environment["observed_status"] = result->observed;
    if (far->answers.failure) observation.environment["peer_status"] = far->answers.failure->reason;
  }

  /// How long the other end may live without a word.
  static std::chrono::seconds lease_of(const TrafficPlan& plan, std::chrono::nanoseconds duration) {
    return std::chrono::ceil<std::chrono::seconds>(duration) +
           std::chrono::ceil<std::chrono::seconds>(plan.stall_limit) + std::chrono::seconds(10);
  }

  /// Loopback is traffic from the device to itself, whoever else is there.
  const Peers& peers_for(const Configuration& configuration) const {
    return configuration.text("direction") == "loopback" ? self_ : peers_;
  }

  /// Connects both ends; rdma_cm needs them at the same time.
  static Result<void> meet(Part& part, std::chrono::nanoseconds duration) {
    Endpoint& mine = *part.mine;
    if (!mine.plan().connection_manager) {
      if (auto done = mine.connect(part.theirs); !done) return done;
      return part.peer->connect(mine.describe(), duration);
    }
    auto answer = std::async(std::launch::async,
                             [&] { return part.peer->connect(mine.describe(), duration); });
    const auto near = mine.connect(part.theirs);
    const auto far = answer.get();
    if (near || far) return near ? far : near;
    return fail(near.error().code, near.error().message + "; the peer: " + far.error().message);
  }

  /// Both ends of each part, connected and ready.
  Result<void> set_up(std::deque<Part>& parts, const TrafficPlan& plan, const Peers& peers,
                      std::chrono::nanoseconds duration) {
    const auto shares = deal(plan, peers.size());
    if (!shares) return pass_on(shares);
    // Of several peers, which one it was; an agent says so itself.
    const auto named = [&](const Part& part, const Error& error) {
      const std::string name = part.peer->name();
      const bool said = peers.size() == 1 || error.message.find(name) != std::string::npos;
      return said ? tl::unexpected<Error>(error) : error.while_doing(name);
    };
    for (std::size_t i = 0; i < peers.size(); ++i) {
      Part& part = parts.emplace_back();
      part.peer = peers[i].get();
      part.plan = (*shares)[i];
      auto mine =
          Endpoint::create(*device_, part.plan, {.requests = true, .answers = plan.both_ways()});
      if (!mine) return pass_on(mine);
      part.mine.emplace(std::move(*mine));
      auto theirs = part.peer->open(part.plan, lease_of(part.plan, duration));
      if (!theirs) {
        peer_device_away_ = theirs.error().code == ErrorCode::kMissing;
        return named(part, theirs.error());
      }
      peer_patience_.found();
      part.theirs = std::move(*theirs);
    }
    for (Part& part : parts) {
      if (auto done = meet(part, duration); !done) return named(part, done.error());
    }
    for (Part& part : parts) {
      if (plan.direction != Direction::kBidirectional) continue;
      part.answerer.emplace(*part.mine);
      part.answerer->start();
    }
    return {};
  }

  void run(const target::MeasureRequest& request, Observation& observation) {
    TrafficPlan base = options_.base;
    base.seed = request.seed;
    const auto plan = plan_from(request.configuration, base);
    if (!plan) return end(observation, plan.error());
    const Peers& peers = peers_for(request.configuration);
    observation.environment["peer"] = names_of(peers);
    observation.counters_before = read_counters(device_->name(), device_->port());
    std::deque<Part> parts;
    if (auto done = set_up(parts, *plan, peers, request.duration); !done) {
      return end(observation, done.error());
    }
    std::map<std::string, CounterWatch> far_watches;  // by the prefix of their names
    for (std::size_t i = 0; request.sample_every.count() > 0 && i < parts.size(); ++i) {
      if (&peers == &self_ || !peer_counters_.sources[i].read) continue;
      far_watches.try_emplace(counter_prefix(i, parts.size()), peer_counters_.sources[i],
                              request.duration, request.sample_every);
    }
    CounterWatch watch(counters_of_device(device_->name(), device_->port()), request.duration,
                       request.sample_every, arena_.get());
    drive(parts, request.duration);
    const auto rates = watch.rates();
    observation.counter_samples = watch.samples();
    for (auto& [prefix, far_watch] : far_watches) {
      for (auto& [name, samples] : far_watch.samples()) {
        observation.counter_samples.emplace(prefix + name, std::move(samples));
      }
    }
    std::vector<RequestReport> reports;
    std::vector<PeerReport> far_reports;
    std::vector<AnswerReport> near_reports;
    std::optional<Error> lost;
    for (Part& part : parts) {
      const auto far = part.peer->finish(part.report);
      if (part.answerer) {
        const bool know = far && far->requests;
        near_reports.push_back(
            part.answerer->finish(know ? far->requests->completed_by_lane
                                       : std::vector<std::uint64_t>(part.plan.qp_count)));
      }
      if (!far && !lost) lost = far.error();
      if (far) far_reports.push_back(*far);
      reports.push_back(std::move(part.report));
    }
    observation.counters_after = read_counters(device_->name(), device_->port());
    note_granted(parts, *plan, observation);
    if (lost) return end(observation, *lost);
    const RequestReport report = merged(reports);
    const PeerReport far = merged(far_reports);
    const AnswerReport near = merged(near_reports);
    // The requester's status says more than what the failure looked like from afar, unless all that
    // it saw was silence.
    if (report.failure && report.failure->outcome == Outcome::kTimedOut && far.answers.failure) {
      return end(observation, far.answers.failure->outcome, far.answers.failure->reason);
    }
    for (const auto& failure : {report.failure, far.answers.failure, near.failure,
                                far.requests ? far.requests->failure : std::nullopt}) {
      if (failure) return end(observation, failure->outcome, failure->reason);
    }
    note_measures(*plan, report, far, near, observation);
    if (observation.outcome == Outcome::kMeasured) {
      observation.measures.insert(rates.begin(), rates.end());
    }
  }

  target::Spec spec_;
  TargetOptions options_;
  std::unique_ptr<target::CounterArena> arena_;  ///< null: counters are kept as they are read
  std::unique_ptr<OptionalCountersOn> optional_counters_;  ///< where they were asked for
  Peers peers_;
  Peers self_;  ///< the own device as its peer
  PeerCounters peer_counters_;
  std::unique_ptr<Device> device_;
  bool peer_device_away_ = false;  ///< the last measurement failed for that
  Patience own_patience_{options_.patience};
  Patience peer_patience_{options_.patience};
};

/// "a,b" as its parts.
std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t comma = text.find(',');
    parts.emplace_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

/// The monitors beside the peers that are agents.
Result<void> open_far_counters(const target::Spec& spec, const std::string& asked,
                               std::size_t peers, const target::FarCountersOpener& far,
                               PeerCounters& counters) {
  const std::vector<std::string> monitors = split(asked);
  if (!far) {
    return fail(ErrorCode::kMissing,
                "option peer_counters: this build has no gRPC; scripts/setup.sh installs it");
  }
  if (!spec.options.contains("peer") || monitors.size() != peers) {
    return fail(
        ErrorCode::kBadInput,
        fmt::format("option peer_counters names {} monitors, option peer {} agents; give one "
                    "for each, in the same order",
                    monitors.size(), spec.options.contains("peer") ? peers : 0));
  }
  for (const std::string& one : monitors) {
    auto opened = far(one, spec.options);
    if (!opened) return opened.error().while_doing("option peer_counters");
    counters.hosts.push_back(std::move(*opened));
    counters.sources.push_back(counters_of_host(*counters.hosts.back()));
  }
  return {};
}

Result<std::unique_ptr<target::Target>> open_target(const target::Spec& spec,
                                                    const PeerConnector& connect,
                                                    const target::CounterArenas& arenas,
                                                    const target::FarCountersOpener& far) {
  auto read = read_options(spec.options);
  if (!read) return read.error().while_doing("target '" + spec.text + "'");
  TargetOptions options = std::move(*read);
  Peers peers;
  PeerCounters peer_counters;
  if (const auto address = spec.options.find("peer"); address != spec.options.end()) {
    if (!connect) {
      return fail(
          ErrorCode::kMissing,
          "this build has no gRPC, so it cannot reach a peer; scripts/setup.sh installs it");
    }
    for (const std::string& one : split(address->second)) {
      auto reached = connect(one, spec.options);
      if (!reached) return pass_on(reached);
      peers.push_back(std::move(*reached));
    }
  } else {
    if (options.peer_device.empty()) options.peer_device = spec.place;
    for (const std::string& one : split(options.peer_device)) {
      peers.push_back(local_peer(one, options.port, options.peer_gid));
      // The own device's counters are sampled anyway.
      peer_counters.sources.push_back(one == spec.place ? CounterSource{}
                                                        : counters_of_device(one, options.port));
    }
  }
  if (!options.peer_counters.empty()) {
    auto opened = open_far_counters(spec, options.peer_counters, peers.size(), far, peer_counters);
    if (!opened) return pass_on(opened);
  }
  peer_counters.sources.resize(peers.size());
  if (!arenas && !options.counters.empty()) {
    return fail(ErrorCode::kUnsupported, "option counters: this program publishes no counters");
  }
  auto target =
      std::make_unique<VerbsTarget>(spec, options, std::move(peers), std::move(peer_counters),
                                    arenas ? arenas(options.counters) : nullptr);
  if (auto done = target->open_device(); !done) return pass_on(done);
  return target;
}

std::vector<target::Candidate> probe() {
  std::vector<target::Candidate> found;
  for (const std::string& name : device_names()) {
    target::Candidate candidate{.spec = "verbs:" + name};
    const auto device = Device::open(name);
    const auto port = device ? device->port_state() : Result<PortState>(pass_on(device));
    if (!port) {
      candidate.what = "RDMA device";
      candidate.why_not = port.error().message;
      candidate.remedy = "run as a user who may open /dev/infiniband/*";
    } else {
      candidate.available = port->active;
      candidate.what = fmt::format("RDMA device, {}, {} Gbit/s, MTU {}", device->driver(),
                                   port->link_gbps, port->active_mtu_bytes);
      if (!port->active) {
        candidate.why_not = "its port is not active";
        candidate.remedy = "ip link set INTERFACE up, or connect the cable";
      }
    }
    found.push_back(std::move(candidate));
  }
  if (found.empty()) {
    found.push_back({.spec = "verbs:DEVICE",
                     .available = false,
                     .what = "RDMA traffic",
                     .why_not = "no RDMA device here",
                     .remedy =
                         "modprobe crc32_generic rdma_rxe; rdma link add rxe0 type rxe netdev "
                         "INTERFACE; or run in the small machine: tests/vm/run --setup "
                         "soft-roce COMMAND"});
  }
  return found;
}

}  // namespace

target::Kind verbs_kind(PeerConnector connect, target::CounterArenas arenas,
                        target::FarCountersOpener far) {
  return {.name = "verbs",
          .open = [connect = std::move(connect), arenas = std::move(arenas), far = std::move(far)](
                      const target::Spec& spec) { return open_target(spec, connect, arenas, far); },
          .probe = probe};
}

}  // namespace greynic::verbs
