#include "greynic/model/workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "pipeline_law.h"
#include "setting.h"

namespace greynic::model {
namespace {

constexpr double kEndless = std::numeric_limits<double>::infinity();
/// A queue whose server is busier than this has no steady state that lasts: the window bounds it.
constexpr double kBusiest = 0.995;

/// One flow in numbers; rates in messages a microsecond, times in microseconds.
struct Flow {
  double bytes = 0.0;
  double weight = 1.0;    ///< QPs
  double window = 1.0;    ///< messages that may be under way
  double own_rate = 0.0;  ///< alone on idle RNICs
  double demand = 0.0;    ///< what it would take: the offer or its own rate
  double service = 0.0;   ///< time one message keeps a side busy
  double turn = 0.0;      ///< the part of it for which a QP keeps others waiting: four packets
  bool limited_by_offer = false;
  int sender = 0;  ///< sides
  int receiver = 0;
  double rate = 0.0;
  int bound_by = -1;  ///< side that filled up first; -1: none
  Prediction alone;

  /// Always has a message waiting.
  [[nodiscard]] bool hungry() const { return !limited_by_offer || bound_by >= 0; }
};

struct Side {
  std::string host;
  bool sends = false;
  double qps = 0.0;
  double threads = 0.0;
  double busy = 0.0;
};

int side_of(std::vector<Side>& sides, const std::string& host, bool sends) {
  for (std::size_t s = 0; s < sides.size(); ++s) {
    if (sides[s].host == host && sides[s].sends == sends) return static_cast<int>(s);
  }
  sides.push_back({host, sends});
  return static_cast<int>(sides.size()) - 1;
}

Configuration with_masks(const WorkloadFlow& flow, const Workload& workload) {
  Configuration configuration = flow.configuration;
  if (!flow.has_packet) return configuration;
  for (const auto& [hop, layout] : workload.layouts) {
    configuration.set(mask_factor(hop),
                      static_cast<double>(look_up(layout, flow.packet).matchers_tried));
  }
  return configuration;
}

Result<double> gbps_of(const Prediction& prediction, const std::string& flow) {
  const auto found = prediction.measures.find(std::string(measure::kBandwidth));
  if (found != prediction.measures.end() && found->second.value > 0.0) return found->second.value;
  return fail(ErrorCode::kBadInput,
              fmt::format("flow '{}': the model predicts no bandwidth there", flow));
}

/// Rates rise together, in proportion to the QPs, until each is held by its demand or a full side.
void share(std::vector<Flow>& flows, std::vector<Side>& sides) {
  std::vector<bool> held(flows.size(), false);
  std::vector<double> free(sides.size(), 1.0);
  for (;;) {
    std::vector<double> slope(sides.size(), 0.0);
    bool any = false;
    for (std::size_t i = 0; i < flows.size(); ++i) {
      if (held[i]) continue;
      any = true;
      for (const int s : {flows[i].sender, flows[i].receiver}) {
        slope[static_cast<std::size_t>(s)] += flows[i].weight * flows[i].service;
      }
    }
    if (!any) return;
    double step = kEndless;
    for (std::size_t s = 0; s < sides.size(); ++s) {
      if (slope[s] > 0.0) step = std::min(step, free[s] / slope[s]);
    }
    for (std::size_t i = 0; i < flows.size(); ++i) {
      if (!held[i]) step = std::min(step, (flows[i].demand - flows[i].rate) / flows[i].weight);
    }
    step = std::max(0.0, step);
    for (std::size_t s = 0; s < sides.size(); ++s) free[s] -= slope[s] * step;
    for (std::size_t i = 0; i < flows.size(); ++i) {
      if (held[i]) continue;
      Flow& flow = flows[i];
      flow.rate += flow.weight * step;
      if (flow.rate >= flow.demand * (1.0 - 1e-12)) {
        held[i] = true;
        continue;
      }
      for (const int s : {flow.sender, flow.receiver}) {
        if (free[static_cast<std::size_t>(s)] > 1e-12) continue;
        held[i] = true;
        flow.bound_by = s;
      }
    }
  }
}

/// The queue that some flows are to each other at one side.
struct Queue {
  double busy = 0.0;   ///< share of time, of flows that do not always have something to send
  double mean = 0.0;   ///< wait of a message behind theirs (Pollaczek-Khinchine)
  double turns = 0.0;  ///< of QPs that always have something to send: each comes before a newcomer

  /// Wait that one message in 1 / (1 - share) passes: P(wait > x) is close to
  /// busy * exp(-x busy / mean).
  [[nodiscard]] double quantile(double share) const {
    const double beyond = busy / (1.0 - share);
    return beyond > 1.0 ? mean / busy * std::log(beyond) : 0.0;
  }
};

/// Of the flows that use all of `sides`.
Queue queue_of(std::initializer_list<int> sides, const std::vector<Flow>& flows) {
  Queue queue;
  double squares = 0.0;
  for (const Flow& flow : flows) {
    const auto uses = [&](int side) { return flow.sender == side || flow.receiver == side; };
    if (!std::all_of(sides.begin(), sides.end(), uses)) continue;
    if (flow.hungry()) {
      queue.turns += flow.weight * flow.turn;
      continue;
    }
    queue.busy += flow.rate * flow.service;
    squares += flow.rate * flow.service * flow.service;
  }
  queue.busy = std::min(queue.busy, kBusiest);
  queue.mean = 0.5 * squares / (1.0 - queue.busy);
  return queue;
}

struct Wait {
  double median = 0.0;
  double p99 = 0.0;
};

/// Of a message at both sides. What comes from one sender comes in single file, so that it does not
/// wait for its own at the receiver once more: messages leave there when they would if all of them
/// had been sent straight to it, and of that wait the part behind those of the same sender is over
/// already.
Wait wait_of(const Flow& flow, const std::vector<Flow>& flows) {
  const Queue out = queue_of({flow.sender}, flows);
  const Queue in = queue_of({flow.receiver}, flows);
  const Queue common = queue_of({flow.sender, flow.receiver}, flows);
  const double turns = out.turns + std::max(0.0, in.turns - common.turns);
  const double more_in = std::max(0.0, in.mean - common.mean);
  const double more_out = std::max(0.0, out.mean - common.mean);
  // Both together as one queue for the median; for the tail, which both seldom have at once, the
  // longer of the two and what the other adds on average.
  const Queue both{std::max(out.busy, in.busy), out.mean + more_in, 0.0};
  return {turns + both.quantile(0.5),
          turns + std::max(out.quantile(0.99) + more_in, in.quantile(0.99) + more_out)};
}

PredictedMeasure scaled(const PredictedMeasure& alone, double value) {
  if (alone.value <= 0.0) return {value, value, value};
  return {value, value * alone.low / alone.value, value * alone.high / alone.value};
}

/// Latencies keep the relative width of the interval that the flow has alone.
FlowPrediction describe(const WorkloadFlow& asked, const Flow& flow, const std::vector<Flow>& flows,
                        const std::vector<Side>& sides) {
  FlowPrediction result;
  result.name = asked.name;
  result.extrapolated = flow.alone.extrapolated;
  result.distance = flow.alone.distance;
  const double gbps = flow.rate * flow.bytes * 8e-3;
  if (flow.limited_by_offer && flow.bound_by < 0) {
    result.bandwidth_gbps = {gbps, std::min(gbps, flow.alone.measures.at("bandwidth_gbps").low),
                             gbps};
    result.limited_by = "offer";
  } else {
    result.bandwidth_gbps = scaled(flow.alone.measures.at("bandwidth_gbps"), gbps);
    result.limited_by =
        flow.bound_by < 0
            ? "itself"
            : fmt::format(
                  "{} {}", sides[static_cast<std::size_t>(flow.bound_by)].host,
                  sides[static_cast<std::size_t>(flow.bound_by)].sends ? "sends" : "receives");
  }
  if (asked.offered_gbps > 0.0) result.share_granted = std::min(1.0, gbps / asked.offered_gbps);

  const auto median = flow.alone.measures.find(std::string(measure::kLatencyP50));
  if (median == flow.alone.measures.end()) return result;
  const auto tail = flow.alone.measures.find(std::string(measure::kLatencyP99));
  const double base99 =
      tail == flow.alone.measures.end() ? median->second.value : tail->second.value;
  if (flow.hungry()) {
    // The window is always full: rate x latency = messages under way, there and back.
    const double under_way = 0.5 * flow.window / std::max(1e-12, flow.rate);
    const double value = std::max(median->second.value, under_way);
    result.latency_us_p50 = scaled(median->second, value);
    result.latency_us_p99 = scaled(median->second, std::max(base99, value));
    return result;
  }
  const Wait wait = wait_of(flow, flows);
  result.latency_us_p50 = scaled(median->second, median->second.value + wait.median);
  result.latency_us_p99 = scaled(median->second, base99 + wait.p99);
  return result;
}

}  // namespace

Result<WorkloadPrediction> predict_workload(const Model& model, const Workload& workload) {
  std::vector<Side> sides;
  std::vector<Flow> flows;
  std::vector<Configuration> configurations;
  for (const WorkloadFlow& asked : workload.flows) {
    Configuration configuration = with_masks(asked, workload);
    auto alone = model.predict(configuration);
    if (!alone) return alone.error().while_doing("flow '" + asked.name + "'");
    const auto gbps = gbps_of(*alone, asked.name);
    if (!gbps) return pass_on(gbps);
    const auto setting = read_setting(configuration, {});
    if (!setting) return setting.error().while_doing("flow '" + asked.name + "'");
    Flow flow;
    flow.bytes = setting->bytes;
    flow.weight = setting->qps;
    flow.window = setting->qps * setting->depth;
    flow.own_rate = *gbps / (setting->bytes * 8e-3);
    flow.limited_by_offer = asked.offered_gbps > 0.0 && asked.offered_gbps < *gbps;
    flow.demand =
        flow.limited_by_offer ? asked.offered_gbps / (setting->bytes * 8e-3) : flow.own_rate;
    // A READ's payload runs from the host that is asked.
    const bool read = setting->operation == Operation::kRead;
    flow.sender = side_of(sides, read ? asked.to : asked.from, true);
    flow.receiver = side_of(sides, read ? asked.from : asked.to, false);
    for (const int s : {flow.sender, flow.receiver}) {
      sides[static_cast<std::size_t>(s)].qps += setting->qps;
      sides[static_cast<std::size_t>(s)].threads += setting->threads;
    }
    flow.alone = std::move(*alone);
    flows.push_back(std::move(flow));
    configurations.push_back(std::move(configuration));
  }
  for (std::size_t i = 0; i < flows.size(); ++i) {
    // What a message takes from the RNIC itself: with all its QPs and as many threads as may be, so
    // that neither one thread nor one QP is what holds it up.
    const Side& out = sides[static_cast<std::size_t>(flows[i].sender)];
    const Side& in = sides[static_cast<std::size_t>(flows[i].receiver)];
    const double qps = std::max({out.qps, in.qps, 16.0});
    Configuration busy = configurations[i];
    busy.set("qp_count", qps);
    busy.set("thread_count", std::max({out.threads, in.threads, 16.0}));
    busy.set("doorbell_sharing", std::string("dedicated"));
    const auto prediction = model.predict(busy);
    if (!prediction) return prediction.error().while_doing("flow '" + workload.flows[i].name + "'");
    const auto gbps = gbps_of(*prediction, workload.flows[i].name);
    if (!gbps) return pass_on(gbps);
    flows[i].service = flows[i].bytes * 8e-3 / *gbps;
    const auto setting = read_setting(configurations[i], {});
    if (!setting) return pass_on(setting);
    flows[i].turn = flows[i].service * std::min(1.0, pipeline::kBurstPackets / setting->packets());
  }
  share(flows, sides);
  WorkloadPrediction result;
  for (const Flow& flow : flows) {
    for (const int s : {flow.sender, flow.receiver}) {
      sides[static_cast<std::size_t>(s)].busy += flow.rate * flow.service;
    }
  }
  for (std::size_t i = 0; i < flows.size(); ++i) {
    result.flows.push_back(describe(workload.flows[i], flows[i], flows, sides));
  }
  for (const Side& side : sides) result.sides.push_back({side.host, side.sends, side.busy});
  return result;
}

}  // namespace greynic::model
