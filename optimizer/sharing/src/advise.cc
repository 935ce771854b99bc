#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <utility>

#include "greynic/model/workload.h"
#include "greynic/sharing/sharing.h"

namespace greynic::sharing {
namespace {

/// Requests that a broker keeps in one send queue; a few slots are for control.
constexpr double kQueueDepth = 120;
constexpr std::uint32_t kMostQps = 8;
constexpr std::uint64_t kLeastInFlight = 131072, kMostInFlight = 1 << 20;
/// What a law promises beyond this is taken for a gain: it may be wrong by a tenth.
constexpr double kLawError = 1.1;
/// More QPs, or more bytes under way, must gain at least this share.
constexpr double kWorthwhile = 1.005;

struct Total {
  double gbps = 0;
  double log_low = 0, log_high = 0;  ///< of the interval, relative to the value
  std::vector<double> each;          ///< Gbit/s, by demand
  bool extrapolated = false;
};

Configuration of(const Demand& demand, double qps, double depth, double threads, bool dedicated) {
  Configuration configuration;
  configuration.set("operation", std::string(to_string(demand.operation)));
  configuration.set("message_bytes", static_cast<double>(demand.message_bytes));
  configuration.set("qp_count", qps);
  configuration.set("send_queue_depth", depth);
  configuration.set("thread_count", threads);
  configuration.set("doorbell_sharing", std::string(dedicated ? "dedicated" : "default"));
  return configuration;
}

Result<double> gbps_at(const model::Model& model, const Configuration& configuration) {
  const auto prediction = model.predict(configuration);
  if (!prediction) return pass_on(prediction);
  const auto found = prediction->measures.find("bandwidth_gbps");
  if (found == prediction->measures.end() || !(found->second.value > 0)) {
    return fail(ErrorCode::kBadInput,
                "the model predicts no bandwidth; fit one to a run that measured it");
  }
  return found->second.value;
}

/// Time that one thread takes to post and poll one message: that of the smallest messages, which
/// leave the RNIC idle.
Result<double> posting_ns(const model::Model& model, Operation operation) {
  const Demand smallest{.operation = operation, .message_bytes = 64};
  const auto gbps = gbps_at(model, of(smallest, 16, 16, 1, false));
  if (!gbps) return pass_on(gbps);
  return 64 * 8 / *gbps;
}

/// What a way to connect asks of the law.
struct Way {
  const Matrix& matrix;
  bool shared = false, dedicated = false;
  Setting setting;

  [[nodiscard]] double qps(const Demand& demand) const {
    if (!shared) return demand.connections;
    const bool bulk = demand.message_bytes > setting.bulk_bytes && setting.bulk_qps > 0;
    return std::min(demand.connections, bulk ? setting.bulk_qps : setting.latency_qps);
  }
  [[nodiscard]] double depth(const Demand& demand) const {
    if (!shared) return demand.outstanding;
    const double asked = std::floor(demand.connections * 1.0 * demand.outstanding / qps(demand));
    // A QP posts while fewer bytes than that are under way, so one message more.
    const double fits = std::floor(static_cast<double>(setting.in_flight_bytes) /
                                   static_cast<double>(demand.message_bytes)) +
                        1;
    return std::max(1.0, std::min({asked, fits, kQueueDepth}));
  }
  [[nodiscard]] double threads() const { return shared ? 1.0 : matrix.threads; }
};

/// A request keeps its place in the queue for a whole trip, which for long messages is longer than
/// the law of rates allows for: there and back for a READ; for a WRITE the payload there, and word
/// of it.
Result<double> own_pace_gbps(const model::Model& model, const Demand& demand, double places) {
  const auto half_trip_us = [&](std::uint64_t bytes) -> Result<double> {
    Demand one = demand;
    one.message_bytes = bytes;
    const auto prediction = model.predict(of(one, 1, 1, 1, false));
    if (!prediction) return pass_on(prediction);
    const auto found = prediction->measures.find("latency_us_p50");
    return found == prediction->measures.end() ? 0.0 : found->second.value;
  };
  const auto there = half_trip_us(demand.message_bytes);
  if (!there) return pass_on(there);
  const auto back = half_trip_us(demand.operation == Operation::kRead ? demand.message_bytes : 64);
  if (!back) return pass_on(back);
  const double trip_ns = 1e3 * (*there + *back);
  return trip_ns > 0 ? places * static_cast<double>(demand.message_bytes) * 8 / trip_ns : 1e9;
}

/// No host has more time than its threads have.
Result<void> limit_by_threads(const model::Model& model, const Way& way, Total& total) {
  std::map<std::string, double> busy;
  std::map<Operation, double> posting;
  for (std::size_t i = 0; i < total.each.size(); ++i) {
    const Demand& demand = way.matrix.demands[i];
    const auto [place, is_new] = posting.try_emplace(demand.operation);
    if (is_new) {
      const auto ns = posting_ns(model, demand.operation);
      if (!ns) return pass_on(ns);
      place->second = *ns + (way.shared ? way.matrix.broker_ns : 0);
    }
    const double per_ns = total.each[i] / 8 / static_cast<double>(demand.message_bytes);
    busy[demand.from] += per_ns * place->second / way.threads();
  }
  total.gbps = 0;
  for (std::size_t i = 0; i < total.each.size(); ++i) {
    total.each[i] /= std::max(1.0, busy[way.matrix.demands[i].from]);
    total.gbps += total.each[i];
  }
  return {};
}

Result<Total> predict(const model::Model& model, const Way& way) {
  model::Workload workload;
  for (const Demand& demand : way.matrix.demands) {
    model::WorkloadFlow flow;
    flow.name = demand.from + " to " + demand.to;
    flow.from = demand.from;
    flow.to = demand.to;
    flow.configuration =
        of(demand, way.qps(demand), way.depth(demand), way.threads(), way.dedicated);
    workload.flows.push_back(std::move(flow));
  }
  const auto prediction = model::predict_workload(model, workload);
  if (!prediction) return pass_on(prediction);
  Total total;
  double low = 0, high = 0;
  for (std::size_t i = 0; i < prediction->flows.size(); ++i) {
    const auto& flow = prediction->flows[i];
    const auto& gbps = flow.bandwidth_gbps;
    const Demand& demand = way.matrix.demands[i];
    const auto pace = own_pace_gbps(model, demand, way.qps(demand) * way.depth(demand));
    if (!pace) return pass_on(pace);
    const double slower = std::min(1.0, *pace / gbps.value);
    total.each.push_back(slower * gbps.value);
    total.gbps += slower * gbps.value;
    low += slower * gbps.low;
    high += slower * gbps.high;
    total.extrapolated = total.extrapolated || flow.extrapolated;
  }
  // One law speaks of all flows, so their errors are taken to go together.
  total.log_low = std::log(std::max(1e-9, low / total.gbps));
  total.log_high = std::log(std::max(1.0, high / total.gbps));
  if (auto limited = limit_by_threads(model, way, total); !limited) return pass_on(limited);
  return total;
}

/// The two errors are taken to be independent: that widens the interval.
model::PredictedMeasure ratio(const Total& over, const Total& under) {
  const double value = over.gbps / under.gbps;
  return {value, value * std::exp(-std::hypot(over.log_low, under.log_high)),
          value * std::exp(std::hypot(over.log_high, under.log_low))};
}

/// A message longer than what crosses the wire in the time of a small one's own trip would double
/// that trip: such messages get QPs of their own.
Result<std::uint64_t> size_of_bulk(const model::Model& model, Operation operation) {
  const Demand small{.operation = operation, .message_bytes = 64};
  const Demand large{.operation = operation, .message_bytes = 65536};
  const auto gbps = gbps_at(model, of(large, 16, 16, 1, false));
  if (!gbps) return pass_on(gbps);
  const auto prediction = model.predict(of(small, 1, 1, 1, false));
  if (!prediction) return pass_on(prediction);
  const auto found = prediction->measures.find("latency_us_p50");
  const double us = found == prediction->measures.end() ? 2.0 : found->second.value;
  const double bytes = std::clamp(2e3 * us * *gbps / 8, 4096.0, 65536.0);
  return std::uint64_t{1} << static_cast<int>(std::lround(std::log2(bytes)));
}

/// The fewest QPs, then the fewest bytes under way, that lose nothing worth having.
Result<std::pair<Setting, Total>> best_setting(const model::Model& model, const Matrix& matrix) {
  const auto bulk_bytes = size_of_bulk(model, matrix.demands.front().operation);
  if (!bulk_bytes) return pass_on(bulk_bytes);
  const auto is_bulk = [&](const Demand& demand) { return demand.message_bytes > *bulk_bytes; };
  const bool two_classes = std::any_of(matrix.demands.begin(), matrix.demands.end(), is_bulk) &&
                           !std::all_of(matrix.demands.begin(), matrix.demands.end(), is_bulk);
  std::pair<Setting, Total> best;
  for (std::uint32_t qps = 1; qps <= kMostQps; qps *= 2) {
    for (std::uint64_t bytes = kLeastInFlight; bytes <= kMostInFlight; bytes *= 2) {
      const Way way{.matrix = matrix,
                    .shared = true,
                    .setting = {.latency_qps = qps,
                                .bulk_qps = two_classes ? qps : 0,
                                .bulk_bytes = *bulk_bytes,
                                .in_flight_bytes = bytes}};
      auto total = predict(model, way);
      if (!total) return pass_on(total);
      if (total->gbps > best.second.gbps * kWorthwhile) best = {way.setting, std::move(*total)};
    }
  }
  return best;
}

std::uint32_t most_qps(const Way& way) {
  std::map<std::string, double> qps;
  std::map<std::pair<std::string, std::string>, std::uint32_t> pairs;
  for (const Demand& demand : way.matrix.demands) {
    if (way.shared) {
      pairs[std::minmax(demand.from, demand.to)] = way.setting.latency_qps + way.setting.bulk_qps;
      continue;
    }
    qps[demand.from] += demand.connections;
    qps[demand.to] += demand.connections;
  }
  for (const auto& [pair, count] : pairs) {
    qps[pair.first] += count;
    qps[pair.second] += count;
  }
  double most = 0;
  for (const auto& [host, count] : qps) most = std::max(most, count);
  return static_cast<std::uint32_t>(most);
}

/// Asks the model that knows a configuration best, the first of those that know it equally.
class Nearest final : public model::Model {
 public:
  explicit Nearest(std::vector<std::unique_ptr<model::Model>> models)
      : models_(std::move(models)) {}
  [[nodiscard]] std::string law() const override { return models_.front()->law(); }
  [[nodiscard]] std::vector<std::string> inputs() const override {
    return models_.front()->inputs();
  }
  [[nodiscard]] Result<model::Prediction> predict(const Configuration& at) const override {
    auto best = models_.front()->predict(at);
    for (std::size_t i = 1; i < models_.size() && best; ++i) {
      auto other = models_[i]->predict(at);
      if (!other || other->distance < best->distance) best = std::move(other);
    }
    return best;
  }
  [[nodiscard]] std::string to_json_text() const override {
    return models_.front()->to_json_text();
  }

 private:
  std::vector<std::unique_ptr<model::Model>> models_;
};

}  // namespace

std::unique_ptr<model::Model> nearest_of(std::vector<std::unique_ptr<model::Model>> models) {
  return std::make_unique<Nearest>(std::move(models));
}

Result<Advice> advise(const model::Model& model, const Matrix& matrix) {
  const Way own{.matrix = matrix};
  const Way doorbells{.matrix = matrix, .dedicated = true};
  const auto own_total = predict(model, own);
  if (!own_total) return pass_on(own_total);
  const auto doorbell_total = predict(model, doorbells);
  if (!doorbell_total) return pass_on(doorbell_total);
  const auto shared = best_setting(model, matrix);
  if (!shared) return pass_on(shared);

  Advice advice;
  advice.setting = shared->first;
  advice.if_shared = ratio(shared->second, *own_total);
  const model::PredictedMeasure by_doorbells = ratio(*doorbell_total, *own_total);
  const Total* advised = &*own_total;
  if (by_doorbells.value > kLawError) {
    advice.choice = Choice::kOwnDoorbells;
    advice.gain = by_doorbells;
    advised = &*doorbell_total;
  }
  if (advice.if_shared.value > kLawError * advice.gain.value) {
    advice.choice = Choice::kShare;
    advice.gain = advice.if_shared;
    advised = &shared->second;
  }
  const Way way{
      .matrix = matrix, .shared = advice.choice == Choice::kShare, .setting = advice.setting};
  for (std::size_t i = 0; i < matrix.demands.size(); ++i) {
    advice.demands.push_back({own_total->each[i], advised->each[i]});
  }
  advice.own_qps = most_qps(own);
  advice.advised_qps = most_qps(way);
  advice.extrapolated = own_total->extrapolated || advised->extrapolated;
  return advice;
}

}  // namespace greynic::sharing
