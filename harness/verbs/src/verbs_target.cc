#include "greynic/verbs/verbs_target.h"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <future>
#include <thread>

#include "counter_watch.h"
#include "greynic/target/interrupt.h"
#include "greynic/verbs/counters.h"
#include "greynic/verbs/faults.h"
#include "target_options.h"

namespace greynic::verbs {
namespace {

class VerbsTarget final : public target::Target {
 public:
  VerbsTarget(target::Spec spec, TargetOptions options, std::unique_ptr<Peer> peer)
      : spec_(std::move(spec)), options_(std::move(options)), peer_(std::move(peer)) {}

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
    target::Info info;
    info.name = spec_.text;
    info.description = fmt::format("{} to {}", spec_.place, peer_->name());
    info.factors = honoured_factors();
    const DeviceLimits& limits = device_->limits();
    info.limits = {{"qp_count", limits.qp_count},
                   {"send_queue_depth", limits.queue_depth},
                   {"receive_queue_depth", limits.queue_depth},
                   {"sge_count", limits.sge_count},
                   {"mr_count", limits.mr_count},
                   {"mr_bytes", static_cast<double>(limits.mr_bytes)},
                   {"message_bytes", static_cast<double>(limits.message_bytes)}};
    if (const auto port = device_->port_state()) info.limits["mtu_bytes"] = port->active_mtu_bytes;
    info.categories["transport"] = {"RC", "UC", "UD"};
    if (limits.xrc) info.categories["transport"].emplace_back("XRC");
    info.categories["doorbell_sharing"] = {"default"};
    info.categories["completion_mode"] = {"polling", "events", "hybrid"};
    auto& operations = info.categories["operation"];
    operations = {"SEND", "SEND_WITH_IMM", "WRITE", "WRITE_WITH_IMM", "READ"};
    if (limits.memory_windows_2b) operations.emplace_back("SEND_WITH_INV");
    if (limits.atomics) operations.insert(operations.end(), {"ATOMIC", "CAS", "FADD"});
    info.environment = environment();
    for (const Trait& trait : known_traits()) {
      if (device_->driver().starts_with(trait.driver)) {
        info.facts.push_back({std::string(trait.subject), std::string(trait.fact), "", "known",
                              std::string(trait.source)});
      }
    }
    for (const StatusDeparture& known : known_departures()) {
      if (device_->driver().starts_with(known.driver)) {
        info.facts.push_back({fmt::format("status of {} on {}", known.fault, known.operation),
                              std::string(known.status), "", "known", std::string(known.source)});
      }
    }
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
            {"peer", peer_->name()}};
  }

  /// The device is the one that was opened, and its link is up.
  bool usable() const {
    if (!device_ || device_->gone()) return false;
    const auto port = device_->port_state();
    return port && port->active;
  }

  /// A device or link, here or at the peer, that vanishes in the middle says nothing about the
  /// configuration: it is waited for and the measurement repeated. When it stays away the target
  /// cannot go on.
  Result<Observation> measure_surviving(const target::MeasureRequest& request) {
    const auto give_up = std::chrono::steady_clock::now() + options_.patience;
    while (true) {
      if (!usable()) {
        device_.reset();
        auto opened = open_device();
        while (!opened && std::chrono::steady_clock::now() < give_up && !target::interrupted()) {
          std::this_thread::sleep_for(std::chrono::milliseconds(100));
          opened = open_device();
        }
        if (!opened) {
          return opened.error().while_doing(
              "the device or its link vanished during the run (resume when it is back)");
        }
      }
      Observation observation = measure_once(request);
      const bool vanished =
          observation.outcome != Outcome::kMeasured && (!usable() || peer_device_away_);
      if (peer_device_away_) std::this_thread::sleep_for(std::chrono::milliseconds(200));
      if (!vanished || target::interrupted() || std::chrono::steady_clock::now() > give_up)
        return observation;
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
    if (observation.outcome != Outcome::kMeasured) peer_->abandon();
    observation.elapsed_seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return observation;
  }

  static void end(Observation& observation, Outcome outcome, std::string reason) {
    observation.outcome = outcome;
    observation.reason = std::move(reason);
  }

  static void end(Observation& observation, const Error& error) {
    const bool no = error.code == ErrorCode::kRefused || error.code == ErrorCode::kUnsupported ||
                    error.code == ErrorCode::kBadInput;
    end(observation, no ? Outcome::kRefused : Outcome::kFailed, error.message);
  }

  void run_fault(const std::string& fault, const Configuration& configuration,
                 Observation& observation) {
    const std::string operation = configuration.text("operation");
    const FaultRow* row = find_fault(fault, operation);
    if (row == nullptr || configuration.text("transport") != "RC") {
      return end(observation, Outcome::kRefused,
                 fmt::format("fault {} is not defined for {} on {}", fault, operation,
                             configuration.text("transport")));
    }
    const TrafficPlan plan = fault_plan(*row, options_.base);
    auto mine = Endpoint::create(*device_, plan, {.requests = true, .answers = false});
    if (!mine) return end(observation, mine.error());
    const auto theirs = peer_->open(plan, lease_of(plan, {}));
    if (!theirs) return end(observation, theirs.error());
    if (auto done = mine->connect(*theirs, fault_timers()); !done) {
      return end(observation, done.error());
    }
    if (auto done = peer_->connect(mine->describe(), {}); !done) {
      return end(observation, done.error());
    }
    const auto result = provoke(*mine, *row, device_->driver());
    // The other end saw a fault as well; what is asked is what the requester was told.
    const auto far = peer_->finish({});
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

  /// Connects both ends; rdma_cm needs them at the same time.
  Result<void> meet(Endpoint& mine, const EndpointDescription& theirs,
                    std::chrono::nanoseconds duration) {
    if (!mine.plan().connection_manager) {
      if (auto done = mine.connect(theirs); !done) return done;
      return peer_->connect(mine.describe(), duration);
    }
    auto answer =
        std::async(std::launch::async, [&] { return peer_->connect(mine.describe(), duration); });
    const auto near = mine.connect(theirs);
    const auto far = answer.get();
    if (near || far) return near ? far : near;
    return fail(near.error().code, near.error().message + "; the peer: " + far.error().message);
  }

  void run(const target::MeasureRequest& request, Observation& observation) {
    TrafficPlan base = options_.base;
    base.seed = request.seed;
    const auto plan = plan_from(request.configuration, base);
    if (!plan) return end(observation, plan.error());
    auto mine = Endpoint::create(*device_, *plan, {.requests = true, .answers = plan->both_ways()});
    if (!mine) return end(observation, mine.error());
    const auto theirs = peer_->open(*plan, lease_of(*plan, request.duration));
    if (!theirs) {
      peer_device_away_ = theirs.error().code == ErrorCode::kMissing;
      return end(observation, theirs.error());
    }
    observation.counters_before = read_counters(device_->name(), device_->port());
    if (auto done = meet(*mine, *theirs, request.duration); !done) {
      return end(observation, done.error());
    }
    std::optional<Answerer> answerer;
    if (plan->direction == Direction::kBidirectional) answerer.emplace(*mine).start();
    std::atomic<bool> stop = false;
    CounterWatch watch(device_->name(), device_->port(), request.duration);
    const RequestReport report = run_requests(*mine, request.duration, stop);
    const auto rates = watch.rates();
    const auto far = peer_->finish(report);
    AnswerReport near;
    if (answerer) {
      const bool know = far && far->requests;
      near = answerer->finish(know ? far->requests->completed_by_lane
                                   : std::vector<std::uint64_t>(plan->qp_count));
    }
    observation.counters_after = read_counters(device_->name(), device_->port());
    set_granted(*mine, *plan, observation);
    if (!far) return end(observation, far.error());
    // The requester's status says more than what the failure looked like from afar, unless all that
    // it saw was silence.
    if (report.failure && report.failure->outcome == Outcome::kTimedOut && far->answers.failure) {
      return end(observation, far->answers.failure->outcome, far->answers.failure->reason);
    }
    for (const auto& failure : {report.failure, far->answers.failure, near.failure,
                                far->requests ? far->requests->failure : std::nullopt}) {
      if (failure) return end(observation, failure->outcome, failure->reason);
    }
    fill(*plan, report, *far, near, observation);
    if (observation.outcome == Outcome::kMeasured) {
      observation.measures.insert(rates.begin(), rates.end());
    }
  }

  static void set_granted(Endpoint& mine, const TrafficPlan& plan, Observation& observation) {
    observation.granted = observation.asked;
    if (plan.transport == Transport::kXRC) observation.granted.set("shared_receive_queue", true);
    const QueuePairOptions& granted = mine.qp(0).granted();
    const auto note = [&](const char* name, double value) {
      if (observation.asked.contains(name)) observation.granted.set(name, value);
    };
    note("send_queue_depth", granted.send_depth);
    if (!plan.shared_receive_queue) note("receive_queue_depth", granted.receive_depth);
    note("sge_count", granted.send_sge);
    note("inline_bytes", granted.inline_bytes);
    note("thread_count", plan.thread_count);
    note("signal_every", plan.signal_every);
    note("post_batch", plan.post_batch);
    observation.environment["posting"] = granted.extended ? "ibv_wr" : "ibv_post_send";
  }

  static void fill(const TrafficPlan& plan, const RequestReport& report, const PeerReport& far,
                   const AnswerReport& near, Observation& observation) {
    const std::uint64_t wrong = report.payload_errors + far.answers.payload_errors +
                                near.payload_errors +
                                (far.requests ? far.requests->payload_errors : 0);
    if (wrong > 0) {
      return end(observation, Outcome::kFailed, fmt::format("{} payloads arrived wrong", wrong));
    }
    if (report.completed == 0 || report.messages_per_second <= 0) {
      return end(observation, Outcome::kTimedOut,
                 "nothing completed within the measured time; measure longer");
    }
    observation.outcome = Outcome::kMeasured;
    observation.steady = report.steady;
    observation.latency = report.latency;
    // Completion of an unreliable send says that it left, not that it arrived.
    double delivered = 1.0;
    if (!is_reliable(plan.transport) && takes_receive(plan.operation)) {
      std::uint64_t sent = report.completed;
      std::uint64_t arrived = far.answers.received;
      if (far.requests) {
        sent += far.requests->completed;
        arrived += near.received;
      }
      if (sent > 0) {
        delivered = std::min(1.0, static_cast<double>(arrived) / static_cast<double>(sent));
      }
      observation.measures[std::string(measure::kLoss)] = {1.0 - delivered, {}};
    }
    const double both = far.requests ? far.requests->messages_per_second : 0.0;
    const double rate = report.messages_per_second + both;
    const double bits = 8.0 * plan.mean_message();
    const auto put = [&](std::string_view name, double value, double per_message) {
      Measure& measured = observation.measures[std::string(name)];
      measured.value = value;
      if (report.rate_standard_error) {
        measured.standard_error = *report.rate_standard_error * per_message;
      }
    };
    put(measure::kBandwidth, rate * bits * delivered * 1e-9, bits * delivered * 1e-9);
    put(measure::kMessageRate, rate * delivered * 1e-6, delivered * 1e-6);
    put("sent_gbps", rate * bits * 1e-9, bits * 1e-9);
    observation.measures["cpu_ns_per_message"] = {report.cpu_ns_per_message, {}};
    if (!report.latency.empty()) {
      const LatencyHistogram& h = report.latency;
      observation.measures[std::string(measure::kLatencyP50)] = {h.quantile_ns(0.5) * 1e-3, {}};
      observation.measures[std::string(measure::kLatencyP99)] = {h.quantile_ns(0.99) * 1e-3, {}};
      observation.measures[std::string(measure::kLatencyP999)] = {h.quantile_ns(0.999) * 1e-3, {}};
      observation.measures[std::string(measure::kLatencyMean)] = {h.mean_ns() * 1e-3, {}};
    }
    if (plan.mode == Mode::kLatency && report.posted > 0) {
      observation.measures[std::string(measure::kLoss)] = {
          static_cast<double>(report.lost) / static_cast<double>(report.posted), {}};
    }
    for (const auto& [name, value] : far.counters_before) {
      observation.counters_before["peer." + name] = value;
    }
    for (const auto& [name, value] : far.counters_after) {
      observation.counters_after["peer." + name] = value;
    }
  }

  target::Spec spec_;
  TargetOptions options_;
  std::unique_ptr<OptionalCountersOn> optional_counters_;  ///< where they were asked for
  std::unique_ptr<Peer> peer_;
  std::unique_ptr<Device> device_;
  bool peer_device_away_ = false;  ///< the last measurement failed for that
};

Result<std::unique_ptr<target::Target>> open_target(const target::Spec& spec,
                                                    const PeerConnector& connect) {
  auto read = read_options(spec.options);
  if (!read) return read.error().while_doing("target '" + spec.text + "'");
  TargetOptions options = std::move(*read);
  std::unique_ptr<Peer> peer;
  if (const auto address = spec.options.find("peer"); address != spec.options.end()) {
    if (!connect) {
      return fail(
          ErrorCode::kMissing,
          "this build has no gRPC, so it cannot reach a peer; scripts/setup.sh installs it");
    }
    auto reached = connect(address->second, spec.options);
    if (!reached) return pass_on(reached);
    peer = std::move(*reached);
  } else {
    if (options.peer_device.empty()) options.peer_device = spec.place;
    peer = local_peer(options.peer_device, options.port, options.peer_gid);
  }
  auto target = std::make_unique<VerbsTarget>(spec, options, std::move(peer));
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

target::Kind verbs_kind(PeerConnector connect) {
  return {.name = "verbs",
          .open = [connect = std::move(connect)](
                      const target::Spec& spec) { return open_target(spec, connect); },
          .probe = probe};
}

}  // namespace greynic::verbs
