#include "target/measurement.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>

#include "engine/engine.h"
#include "greynic/core/units.h"
#include "switch/layout_walk.h"
#include "target/counters.h"
#include "target/faults.h"

namespace greynic::twin {
namespace {

constexpr std::uint64_t kMostBandwidthPackets = 400'000;
constexpr std::uint64_t kMostLatencyPackets = 300'000;
constexpr std::uint64_t kMostLatencyRounds = 4'000;

void put(Observation& observation, std::string_view name, double value,
         std::optional<double> error = std::nullopt) {
  observation.measures[std::string(name)] = {value, error};
}

void put_latency(LatencyResult result, Observation& observation) {
  if (result.histogram.empty()) return;
  observation.latency = std::move(result.histogram);
  const auto us = [&](double q) { return observation.latency.quantile_ns(q) * 1e-3; };
  // The median of n trips is 1.25 times less sure than their mean.
  const double error = result.mean_error_ns * 1e-3;
  put(observation, measure::kLatencyP50, us(0.5), 1.25 * error);
  put(observation, measure::kLatencyP99, us(0.99));
  put(observation, measure::kLatencyP999, us(0.999));
  put(observation, measure::kLatencyMean, result.mean_ns * 1e-3, error);
  // An observation has settled when all that it measured has.
  if (observation.steady && !result.steady.settled) observation.steady->settled = false;
}

CounterGroups groups_of(const HostLoad& load) {
  const bool lossy = load.loss > 0 || !load.pfc;
  return {.recovery = lossy,
          .errors = lossy || load.retries.rnr_retry < Retries{}.rnr_retry,
          .discards = !load.pfc,
          .congestion = load.dcqcn};
}

/// QPs that went to error end a run, as they end perftest. `why`: what the others did not answer.
void judge_failures(const Engine& engine, const HostLoad& load, const std::string& why,
                    Observation& observation) {
  std::uint64_t silent = 0, not_ready = 0, flushed = 0;
  for (const NicCounters& rnic : engine.all_counters()) {
    silent += rnic.retries_exceeded;
    not_ready += rnic.rnr_retries_exceeded;
    flushed += rnic.flushed;
  }
  if (silent + not_ready == 0) return;
  observation.outcome = Outcome::kFailed;
  observation.measures.clear();
  observation.reason =
      silent > 0
          ? fmt::format("IBV_WC_RETRY_EXC_ERR: no answer to {} tries of {:g} ms{}",
                        load.retries.retry_count + 1, load.retries.ack_timeout_ns() * 1e-6, why)
          : fmt::format("IBV_WC_RNR_RETRY_EXC_ERR: no receive WQE for {} tries, {:g} ms apart",
                        load.retries.rnr_retry + 1, load.retries.rnr_timer_ns() * 1e-6);
  observation.reason += fmt::format("; {} of {} QPs failed, {} requests flushed",
                                    silent + not_ready, load.qp_count * load.sender_count, flushed);
}

/// Nothing arrived and nothing was lost: a rate of zero would be a claim that nobody has tested.
void judge_time(const BandwidthResult& result, Time duration, Observation& observation) {
  if (observation.outcome != Outcome::kNotRun || result.packets > 0 || result.loss_share > 0)
    return;
  observation.outcome = Outcome::kTooShort;
  observation.measures.clear();
  observation.reason = fmt::format(
      "nothing arrived within {:g} us of virtual time; raise measure.seconds", duration * 1e-3);
}

/// What becomes of open QPs when the device of the other end goes down, `resets` times. Packets of
/// UC and UD are lost meanwhile, and nobody waits for them.
void live_through_outage(const Settings& settings, const HostLoad& load, double outage_ms,
                         double resets, const target::MeasureRequest& request,
                         Observation& observation) {
  if (outage_ms <= 0 || load.transport != Transport::kRC) return;
  Engine engine(settings.model.parameters, load, {}, statistics::split_mix(request.seed + 1));
  engine.run_outage(outage_ms * 1e6);
  judge_failures(engine, load, fmt::format(" while the device was down for {:g} ms", outage_ms),
                 observation);
  const auto counters = name_counters(engine.all_counters(), 1, {.errors = true});
  static constexpr std::string_view kOfOutage[] = {"local_ack_timeout_err",
                                                   "req_transport_retries_exceeded",
                                                   "req_cqe_error", "req_cqe_flush_error"};
  // Who fails does so once; who lives meets the next outage as well.
  const double times = observation.outcome == Outcome::kFailed ? 1 : resets;
  for (const auto& [name, value] : counters) {
    if (std::ranges::find(kOfOutage, name) == std::end(kOfOutage)) continue;
    observation.counters_before[name] = 0;
    observation.counters_after[name] = value * times;
  }
}

/// How several clients share the server: what each has sent, again apart, over the whole run.
void put_shares(const std::vector<NicCounters>& rnics, Time time, Observation& observation) {
  double least = kNever, most = 0, sum = 0, squares = 0;
  for (std::size_t i = 0; i < rnics.size(); ++i) {
    if (i == 1) continue;  // the server
    const auto bytes = static_cast<double>(rnics[i].tx_bytes - rnics[i].retransmitted_bytes);
    least = std::min(least, bytes);
    most = std::max(most, bytes);
    sum += bytes;
    squares += bytes * bytes;
  }
  if (sum <= 0) return;
  put(observation, "sender_gbps_min", least * 8 / time);
  put(observation, "sender_gbps_max", most * 8 / time);
  // Jain's index: 1 when all have the same, 1 / n when one has everything.
  put(observation, "fairness", sum * sum / (static_cast<double>(rnics.size() - 1) * squares));
}

void run_bandwidth(const Settings& settings, const HostLoad& load, const Effects& effects,
                   const target::MeasureRequest& request, Observation& observation) {
  const Parameters& p = settings.model.parameters;
  Engine engine(p, load, effects, statistics::split_mix(request.seed));
  RunLimits limits;
  limits.duration = static_cast<Time>(request.duration.count());
  limits.most_packets = kMostBandwidthPackets;
  limits.whole_duration = settings.whole_duration;
  const auto named = [&] {
    return name_counters(engine.all_counters(), p.steering_pipe_count, groups_of(load));
  };
  bool published = false;
  const auto publish = [&](Time t) {
    const auto counters = named();
    settings.sink({std::chrono::nanoseconds(static_cast<std::int64_t>(t)), counters});
    published = true;
  };
  const double poll_ms = request.configuration.number("counter_poll_ms");
  const bool watched = settings.sink && poll_ms > 0;
  if (watched) engine.on_period(poll_ms * 1e6, publish);
  std::unique_ptr<target::CounterArena> arena;  // most measurements are over before a sample
  if (request.sample_every.count() > 0) {
    engine.on_period(static_cast<Time>(request.sample_every.count()), [&](Time t) {
      target::CounterReading reading{static_cast<std::int64_t>(t), named()};
      if (settings.arenas && !arena) arena = settings.arenas("");
      if (arena) {
        arena->publish(reading);
        reading = arena->look();
      }
      for (const auto& [name, value] : reading.counters) {
        observation.counter_samples[name].push_back({reading.time_ns, value});
      }
    });
  }
  for (const auto& [name, value] : named()) observation.counters_before.emplace(name, 0.0);
  const BandwidthResult result = engine.run_bandwidth(limits);
  if (watched && !published) publish(result.virtual_time);  // it was over before the first period
  for (const auto& [name, value] : named()) observation.counters_after[name] += value;
  keep_what_moved(observation.counter_samples);
  judge_failures(engine, load, "", observation);
  judge_time(result, limits.duration, observation);
  if (observation.outcome != Outcome::kNotRun) return;
  // A run too slow for statistics has a mean and no error.
  const auto error = [&](double value) {
    return result.steady.mean > 0 ? std::optional(value) : std::nullopt;
  };
  put(observation, measure::kBandwidth, result.gbps, error(result.gbps_error));
  put(observation, measure::kPacketRate, result.packets_per_second * 1e-6,
      error(result.packets_error * 1e-6));
  put(observation, measure::kMessageRate, result.messages_per_second * 1e-6,
      error(result.messages_error * 1e-6));
  put(observation, measure::kLoss, result.loss_share);
  put(observation, "pause_share", result.pause_share);
  if (load.sender_count > 1) put_shares(engine.all_counters(), result.virtual_time, observation);
  observation.steady = SteadyState{.settled = result.steady.settled,
                                   .warmup_share = result.warmup_share,
                                   .test = "MSER-5, 20 batch means"};
  if (load.offered_rate > 0) put_latency(engine.latency(), observation);
}

void run_latency(const Settings& settings, const HostLoad& load, const Effects& effects,
                 const target::MeasureRequest& request, Observation& observation) {
  Engine engine(settings.model.parameters, load, effects, statistics::split_mix(~request.seed));
  RunLimits limits;
  limits.duration = static_cast<Time>(request.duration.count());
  limits.most_packets = kMostLatencyPackets;
  limits.target_error = 0.002;
  put_latency(engine.run_latency(limits, kMostLatencyRounds), observation);
}

/// What switch and driver count, over the time that was asked for; a switch at rest counts nothing.
void count_switch(const SwitchReport& report, double seconds, Observation& observation) {
  if (report.upcalls <= 0 && report.driver_timeouts <= 0) return;
  const auto count = [&](const char* name, double rate) {
    observation.counters_before[name] = 0;
    observation.counters_after[name] = rate * seconds;
  };
  count("upcalls", report.upcalls);
  count("flow_deletions", report.deletions);
  count("driver_timeouts", report.driver_timeouts);
  if (report.kernel_stalls > 0) count("kernel_stalls", report.kernel_stalls);
  if (report.device_resets <= 0) return;
  count("device_resets", report.device_resets);
  count("flows_lost", report.flows_lost);
}

void add_facts(const std::vector<ParameterFact>& facts, target::Info& info) {
  for (const ParameterFact& fact : facts) {
    std::string value = fact.value ? number_to_string(*fact.value) : "none";
    for (const auto& [operation, own] : fact.by_operation) {
      value += fmt::format(" {}={}", operation, number_to_string(own));
    }
    info.facts.push_back({fact.name, value, fact.unit, fact.grade, fact.source});
  }
}

double most_masks(const Configuration& configuration) {
  double most = 0;
  for (std::size_t hop = 0; hop < 4; ++hop) {
    most = std::max(most, configuration.number(mask_factor(static_cast<Hop>(hop))));
  }
  return most;
}

Observation observe_pair(const Settings& settings, const target::MeasureRequest& request,
                         DeviceState& device) {
  Observation observation;
  auto load = read_host_load(request.configuration, settings.model.parameters, settings.options);
  if (!load) {
    observation.outcome = Outcome::kRefused;
    observation.reason = load.error().reason;
    return observation;
  }
  if (auto refusal = add_senders(request.configuration, *load)) {
    observation.outcome = Outcome::kRefused;
    observation.reason = std::move(refusal->reason);
    return observation;
  }
  // What had to be cut to the depth of the queue.
  const auto grant = [&](const char* factor, std::uint32_t granted) {
    if (request.configuration.contains(factor) &&
        request.configuration.number(factor) != static_cast<double>(granted)) {
      if (observation.granted.empty()) observation.granted = request.configuration;
      observation.granted.set(factor, static_cast<double>(granted));
    }
  };
  grant("signal_every", load->signal_every);
  grant("post_batch", load->post_batch);
  for (std::size_t hop = 0; hop < 4; ++hop) {
    if (settings.installed[hop]) load->walks[hop] = *settings.installed[hop];
  }
  if (load->operation == Operation::kSend && load->transport == Transport::kRC &&
      load->receive_depth == 0 && load->retries.rnr_retry == Retries{}.rnr_retry) {
    observation.outcome = Outcome::kTimedOut;
    observation.reason =
        fmt::format("no receive WQE is ever posted, and rnr_retry={} asks for one without end",
                    load->retries.rnr_retry);
    return observation;
  }
  SwitchLoad asked = switch_load(request.configuration, settings.model.parameters);
  asked.lone_rule_share =
      lone_rule_share(most_masks(request.configuration), settings.options.grouping);
  asked.offload_is_off = device.offload_is_off;
  const SwitchReport vswitch =
      run_switch(settings.model.parameters, settings.virtual_switch.parameters, asked,
                 faults_of(settings.defects));
  device.offload_is_off = vswitch.offload_is_off;
  if (vswitch.outcome != Outcome::kMeasured) {
    observation.outcome = vswitch.outcome;
    observation.reason = vswitch.reason;
    return observation;
  }
  Effects effects = effects_of(settings.defects, request.configuration);
  effects.slow_path_share = vswitch.software_share;
  effects.frozen_share = vswitch.frozen_share;
  const double seconds = static_cast<double>(request.duration.count()) * 1e-9;
  count_switch(vswitch, seconds, observation);
  live_through_outage(settings, *load, vswitch.outage_ms, vswitch.device_resets * seconds, request,
                      observation);
  if (observation.outcome == Outcome::kFailed) return observation;
  put(observation, "rule_insert_us", vswitch.rule_insert_us);
  put(observation, "rule_delete_us", vswitch.rule_delete_us);
  run_bandwidth(settings, *load, effects, request, observation);
  if (observation.outcome != Outcome::kNotRun) return observation;
  // In an open loop latency is that of the load itself.
  if (load->offered_rate <= 0) run_latency(settings, *load, effects, request, observation);
  if (settings.burst_delay.count() > 0) observe_bursts(settings, *load, request, observation);
  observation.outcome = Outcome::kMeasured;
  return observation;
}

}  // namespace

Observation observe(const Settings& settings, const target::MeasureRequest& request,
                    DeviceState& device) {
  const auto began = std::chrono::steady_clock::now();
  Observation observation = request.configuration.text("fault") != "none"
                                ? observe_fault(request.configuration)
                            : settings.fleet ? observe_fleet(settings, request)
                                             : observe_pair(settings, request, device);
  observation.asked = request.configuration;
  observation.repeat = request.repeat;
  observation.seed = request.seed;
  observation.environment.merge(describe(settings, "").environment);
  if (observation.outcome == Outcome::kMeasured) {
    observation.elapsed_seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  }
  return observation;
}

target::Info describe(const Settings& settings, const std::string& name) {
  const RnicModel& model = settings.model;
  const Parameters& p = model.parameters;
  target::Info info;
  info.name = name;
  info.description =
      fmt::format("virtual {} pair, profile {}, {} parameters fitted to published curves",
                  model.name, model.profile, model.free_parameter_count());
  // What a pair has no model of: the caches of a software switch, completion queues.
  static constexpr std::string_view kNotVaried[] = {"exact_match_cache", "signature_match_cache",
                                                    "completion_mode", "qps_per_cq"};
  for (const FactorInfo& factor : known_factors()) {
    if (std::ranges::find(kNotVaried, factor.name) == std::end(kNotVaried)) {
      info.factors.emplace_back(factor.name);
    }
  }
  info.categories = {{"transport", {"RC", "UC", "UD"}}};
  if (p.atomic_rate_mops <= 0) info.categories["operation"] = {"SEND", "WRITE", "READ"};
  const double most_masks = p.mask_shape_limit;
  if (most_masks >= 0) {
    for (const Hop hop :
         {Hop::kClientEncap, Hop::kServerDecap, Hop::kServerEncap, Hop::kClientDecap}) {
      info.limits[std::string(mask_factor(hop))] = most_masks;
    }
  }
  info.limits["inline_bytes"] = p.max_inline_bytes[Operation::kWrite];
  info.environment = {{"nic", model.name}, {"twin_profile", model.profile}};
  add_facts(model.facts, info);
  add_facts(settings.virtual_switch.set.facts, info);
  if (settings.fleet) {
    add_facts(settings.fleet->set.facts, info);
    describe_fleet(settings, info);
  }
  info.virtual_time = true;
  return info;
}

}  // namespace greynic::twin
