#include "greynic/model/workload.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "data/setting.h"
#include "pipeline/law.h"
#include "prediction/waiting.h"

namespace greynic::model {
namespace {

constexpr double kEndless = std::numeric_limits<double>::infinity();

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

  /// Messages it sends while each of its QPs has one turn.
  [[nodiscard]] double pace() const { return weight * turn / service; }
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

/// QPs take turns, so that turns rise together until each flow is held by its demand or a full
/// side.
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
        slope[static_cast<std::size_t>(s)] += flows[i].weight * flows[i].turn;
      }
    }
    if (!any) return;
    double step = kEndless;
    for (std::size_t s = 0; s < sides.size(); ++s) {
      if (slope[s] > 0.0) step = std::min(step, free[s] / slope[s]);
    }
    for (std::size_t i = 0; i < flows.size(); ++i) {
      if (!held[i]) step = std::min(step, (flows[i].demand - flows[i].rate) / flows[i].pace());
    }
    step = std::max(0.0, step);
    for (std::size_t s = 0; s < sides.size(); ++s) free[s] -= slope[s] * step;
    for (std::size_t i = 0; i < flows.size(); ++i) {
      if (held[i]) continue;
      Flow& flow = flows[i];
      flow.rate += flow.pace() * step;
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

Stream stream_of(const Flow& flow) { return {flow.rate, flow.service, flow.turn, flow.weight}; }

/// QPs that send from one host take turns.
Wait wait_at_sender(const Flow& own, const std::vector<Flow>& flows) {
  std::vector<Stream> streams = {stream_of(own)};
  Restless restless;
  for (const Flow& flow : flows) {
    if (flow.sender != own.sender || &flow == &own) continue;
    if (flow.hungry()) {
      restless.qps += flow.weight;
      restless.turns += flow.weight * flow.turn;
    } else {
      streams.push_back(stream_of(flow));
    }
  }
  return wait_for_turns(streams.front(), streams, restless);
}

/// A host takes packets as they come.
struct Line {
  Wait wait;
  double others = 0.0;  ///< share of its time for what other senders send
  double turns = 0.0;   ///< one of each of their QPs that never rest
};

Line line_at_receiver(const Flow& own, const std::vector<Flow>& flows) {
  std::map<int, std::vector<Stream>> by_sender;
  Line line;
  for (const Flow& flow : flows) {
    if (flow.receiver != own.receiver) continue;
    const bool other = flow.sender != own.sender;
    if (flow.hungry()) {
      line.turns += other ? flow.weight * flow.turn : 0.0;
    } else {
      by_sender[flow.sender].push_back(stream_of(flow));
      line.others += other ? flow.rate * flow.service : 0.0;
    }
  }
  std::vector<std::vector<Stream>> senders;
  for (auto& [sender, streams] : by_sender) senders.push_back(std::move(streams));
  line.wait = wait_in_line(senders);
  return line;
}

struct Quantiles {
  double median = 0.0;
  double p99 = 0.0;
};

/// Of the wait at both sides. While a message leaves its sender, which keeps the receiver busy all
/// that time, the line there grows by what others send.
Quantiles wait_of(const Flow& flow, const std::vector<Flow>& flows) {
  const Wait out = wait_at_sender(flow, flows);
  const Line line = line_at_receiver(flow, flows);
  const Wait& in = line.wait;
  const double grown = line.turns + line.others * (out.mean + flow.service - flow.turn);
  const Wait both{1.0 - (1.0 - out.some) * (1.0 - in.some), out.mean + in.mean,
                  out.variance + in.variance};
  const double p99 =
      std::max({out.quantile(0.99) + in.mean, in.quantile(0.99) + out.mean, both.quantile(0.99)});
  return {both.quantile(0.5) + grown, p99 + grown};
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
  const Quantiles wait = wait_of(flow, flows);
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
