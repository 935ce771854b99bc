#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <utility>

#include "greynic/sharing/sharing.h"
#include "network.h"

namespace greynic::sharing {
namespace {

constexpr std::uint32_t kMostQps = 8;
constexpr std::uint64_t kLeastInFlight = 131072, kMostInFlight = 1 << 20;
/// What a law promises beyond this is taken for a gain: it may be wrong by a tenth.
constexpr double kLawError = 1.1;
/// READs of fewer of a host's QPs than this share do not decide which end is slower.
constexpr double kFewReads = 0.1;
/// More QPs, or more bytes under way, must gain at least this share.
constexpr double kWorthwhile = 1.005;

struct Total {
  double gbps = 0;
  double log_low = 0, log_high = 0;  ///< of the interval, relative to the value
  std::vector<double> each;          ///< Gbit/s, by demand
  bool extrapolated = false;
};

/// QPs of each host.
std::map<std::string, double> qps_of(const Matrix& matrix, const Way& way) {
  std::map<std::string, double> qps;
  std::map<std::pair<std::string, std::string>, bool> pairs;
  for (const Demand& demand : matrix.demands) {
    const bool is_new = pairs.try_emplace(std::minmax(demand.from, demand.to), true).second;
    double count = demand.connections;
    if (way.shared) count = is_new ? way.shared->latency_qps + way.shared->bulk_qps : 0;
    qps[demand.from] += count;
    qps[demand.to] += count;
  }
  return qps;
}

std::uint32_t most_qps(const Matrix& matrix, const Way& way) {
  double most = 0;
  for (const auto& [host, count] : qps_of(matrix, way)) most = std::max(most, count);
  return static_cast<std::uint32_t>(most);
}

/// Do more than a few of the QPs of a host READ, that has more of them than its chip holds? There a context that came
/// in with a request may be gone before the answer comes, and whether it is decides which end is slower: near the point
/// where one end takes over from the other a law of rates does not tell.
bool reads_compete(const Matrix& matrix, double contexts) {
  struct Count {
    double reads = 0, all = 0;
  };
  std::map<std::string, Count> hosts;
  for (const Demand& demand : matrix.demands) {
    for (const std::string& host : {demand.from, demand.to}) {
      hosts[host].all += demand.connections;
      if (demand.operation == Operation::kRead) hosts[host].reads += demand.connections;
    }
  }
  return std::any_of(hosts.begin(), hosts.end(), [contexts](const auto& host) {
    return host.second.all > contexts && host.second.reads > kFewReads * host.second.all;
  });
}

/// The network tells the rates, the law how sure it is of such rates on such RNICs.
Result<Total> predict(const model::Model& model, const Matrix& matrix, const Way& way) {
  auto each = play(model, matrix, way);
  if (!each) return pass_on(each);
  Total total{.each = std::move(*each)};
  const auto qps = qps_of(matrix, way);
  double low = 0, high = 0;
  for (std::size_t i = 0; i < total.each.size(); ++i) {
    const Demand& demand = matrix.demands[i];
    const auto prediction =
        ask(model, demand, std::max(qps.at(demand.from), qps.at(demand.to)), demand.outstanding,
            way.shared ? 1 : matrix.threads, way.own_doorbells || way.shared);
    if (!prediction) return pass_on(prediction);
    const auto& gbps = prediction->measures.at("bandwidth_gbps");
    total.gbps += total.each[i];
    low += total.each[i] * gbps.low / gbps.value;
    high += total.each[i] * gbps.high / gbps.value;
    total.extrapolated = total.extrapolated || prediction->extrapolated;
  }
  if (!(total.gbps > 0)) {
    return fail(ErrorCode::kBadInput, "the model predicts that nothing gets through");
  }
  // One law speaks of all demands, so their errors are taken to go together.
  total.log_low = std::log(std::max(1e-9, low / total.gbps));
  total.log_high = std::log(std::max(1.0, high / total.gbps));
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
  const auto small = times_of(model, {.operation = operation, .message_bytes = 64});
  if (!small) return pass_on(small);
  const auto large = times_of(model, {.operation = operation, .message_bytes = 65536});
  if (!large) return pass_on(large);
  const double bytes = 65536 * (small->trip_ns + small->wire_ns) / large->wire_ns;
  return std::uint64_t{1} << std::lround(std::log2(std::clamp(bytes, 4096.0, 65536.0)));
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
      const Setting setting{.latency_qps = qps,
                            .bulk_qps = two_classes ? qps : 0,
                            .bulk_bytes = *bulk_bytes,
                            .in_flight_bytes = bytes};
      auto total = predict(model, matrix, {.shared = setting});
      if (!total) return pass_on(total);
      if (total->gbps > best.second.gbps * kWorthwhile) best = {setting, std::move(*total)};
    }
  }
  return best;
}

/// Asks the model that was fitted nearest to a configuration. One setting may be as far from all of them, as
/// sixteen threads are: then the one that is surest, and the first of those that are equally sure.
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
      if (!other ||
          std::pair(other->distance, doubt(*other)) < std::pair(best->distance, doubt(*best))) {
        best = std::move(other);
      }
    }
    return best;
  }
  /// How wide the interval of the rate is.
  static double doubt(const model::Prediction& prediction) {
    const auto found = prediction.measures.find("bandwidth_gbps");
    return found == prediction.measures.end() ? 0 : found->second.high / found->second.low;
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
  const auto own = predict(model, matrix, {});
  if (!own) return pass_on(own);
  const auto doorbells = predict(model, matrix, {.own_doorbells = true});
  if (!doorbells) return pass_on(doorbells);
  const auto shared = best_setting(model, matrix);
  if (!shared) return pass_on(shared);

  Advice advice;
  advice.setting = shared->first;
  advice.if_shared = ratio(shared->second, *own);
  const model::PredictedMeasure by_doorbells = ratio(*doorbells, *own);
  const Total* advised = &*own;
  Way way;
  if (by_doorbells.value > kLawError) {
    advice.choice = Choice::kOwnDoorbells;
    advice.gain = by_doorbells;
    advised = &*doorbells;
  }
  const auto contexts = contexts_of(model);
  if (!contexts) return pass_on(contexts);
  if (advice.if_shared.value > kLawError * advice.gain.value) {
    advice.choice = Choice::kShare;
    advice.gain = advice.if_shared;
    advised = &shared->second;
    way.shared = advice.setting;
    advice.unsure = reads_compete(matrix, contexts->entries);
  }
  for (std::size_t i = 0; i < matrix.demands.size(); ++i) {
    advice.demands.push_back({own->each[i], advised->each[i]});
  }
  advice.own_qps = most_qps(matrix, {});
  advice.advised_qps = most_qps(matrix, way);
  advice.extrapolated = own->extrapolated || advised->extrapolated;
  return advice;
}

}  // namespace greynic::sharing
