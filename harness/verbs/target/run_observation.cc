#include "target/run_observation.h"

#include <fmt/core.h>

#include <algorithm>

namespace greynic::verbs {

void end(Observation& observation, Outcome outcome, std::string reason) {
  observation.outcome = outcome;
  observation.reason = std::move(reason);
}

void end(Observation& observation, const Error& error) {
  const bool no = error.code == ErrorCode::kRefused || error.code == ErrorCode::kUnsupported ||
                  error.code == ErrorCode::kBadInput;
  end(observation, no ? Outcome::kRefused : Outcome::kFailed, error.message);
}

void note_granted(std::deque<Part>& parts, const TrafficPlan& plan, Observation& observation) {
  observation.granted = observation.asked;
  if (plan.transport == Transport::kXRC) observation.granted.set("shared_receive_queue", true);
  const QueuePairOptions& granted = parts.front().mine->qp(0).granted();
  std::uint32_t threads = 0;
  std::uint32_t regions = 0;
  for (const Part& part : parts) {
    threads += part.plan.thread_count;
    regions += part.plan.mr_count;
  }
  const auto note = [&](const char* name, double value) {
    if (observation.asked.contains(name)) observation.granted.set(name, value);
  };
  note("send_queue_depth", granted.send_depth);
  if (!plan.shared_receive_queue) note("receive_queue_depth", granted.receive_depth);
  note("sge_count", granted.send_sge);
  note("inline_bytes", granted.inline_bytes);
  note("qps_per_cq", parts.front().plan.qps_per_cq);
  note("thread_count", threads);
  note("mr_count", regions);
  note("signal_every", plan.signal_every);
  note("post_batch", plan.post_batch);
  note("receive_post_batch", plan.receive_batch);
  const std::string mix = observation.asked.text("message_mix");
  if (is_atomic(plan.operation) || mix != "uniform") note("message_bytes", plan.mean_message());
  if (is_atomic(plan.operation) && mix != "uniform") {
    observation.granted.set("message_mix", std::string("uniform"));
  }
  if (plan.mode == Mode::kLatency) {
    note("offered_rate", 0);
    if (observation.asked.text("direction") == "bidirectional") {
      observation.granted.set("direction", "unidirectional");
    }
  }
  observation.environment["posting"] = granted.extended ? "ibv_wr" : "ibv_post_send";
}

void note_measures(const TrafficPlan& plan, const RequestReport& report, const PeerReport& far,
                   const AnswerReport& near, Observation& observation) {
  const std::uint64_t wrong = report.payload_errors + far.answers.payload_errors +
                              near.payload_errors +
                              (far.requests ? far.requests->payload_errors : 0);
  if (wrong > 0) {
    return end(observation, Outcome::kFailed, fmt::format("{} payloads arrived wrong", wrong));
  }
  if (report.completed == 0 || report.messages_per_second <= 0) {
    std::string remedy = "measure longer";
    if (plan.signal_every > 1) {
      remedy += fmt::format(", or lower signal_every: a QP reports each {}th message only",
                            plan.signal_every);
    }
    return end(observation, Outcome::kTooShort,
               "nothing completed within the measured time; " + remedy);
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
  observation.counters_before.insert(far.counters_before.begin(), far.counters_before.end());
  observation.counters_after.insert(far.counters_after.begin(), far.counters_after.end());
}

}  // namespace greynic::verbs
