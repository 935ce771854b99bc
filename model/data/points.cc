#include "data/points.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

namespace greynic::model {
namespace {

const Configuration& configuration_of(const Observation& observation) {
  return observation.granted.empty() ? observation.asked : observation.granted;
}

std::optional<double> positive(const Observation& observation, std::string_view name) {
  const auto value = observation.value(name);
  if (!value || !std::isfinite(*value) || *value <= 0.0) return std::nullopt;
  return value;
}

double relative_error(const Observation& observation, std::string_view name) {
  const auto found = observation.measures.find(std::string(name));
  if (found == observation.measures.end() || !found->second.standard_error) return 0.0;
  const double share = *found->second.standard_error / found->second.value;
  return std::isfinite(share) && share > 0.0 ? share : 0.0;
}

/// Levels that a question may leave open because every fitted point had nearly the same.
constexpr std::string_view kAssumable[] = {"qp_count",   "send_queue_depth", "inline_bytes",
                                           "mtu_bytes",  "transport",        "thread_count",
                                           "post_batch", "doorbell_sharing", "vxlan_contexts",
                                           "mr_count",   "mr_bytes",         "flow_setup_rate"};

Configuration most_common(std::span<const Observation> observations,
                          const std::vector<Point>& points, pipeline::Output output) {
  Configuration result;
  for (const std::string_view name : kAssumable) {
    std::map<FactorValue, int> votes;
    for (const Point& point : points) {
      if (point.output != output) continue;
      const FactorValue* value = configuration_of(observations[point.observation]).find(name);
      if (value != nullptr) ++votes[*value];
    }
    if (votes.empty()) continue;
    const auto winner =
        std::max_element(votes.begin(), votes.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    result.set(name, winner->first);
  }
  return result;
}

std::map<std::string, Ratio> read_tails(std::span<const Observation> observations) {
  std::map<std::string, Ratio> tails;
  for (const std::string_view name :
       {measure::kLatencyMean, measure::kLatencyP99, measure::kLatencyP999}) {
    std::vector<double> logs;
    for (const Observation& observation : observations) {
      const auto tail = positive(observation, name);
      const auto median = positive(observation, measure::kLatencyP50);
      if (tail && median) logs.push_back(std::log(*tail / *median));
    }
    if (logs.size() < 3) continue;
    double sum = 0.0;
    for (const double x : logs) sum += x;
    const double mean = sum / static_cast<double>(logs.size());
    double squares = 0.0;
    for (const double x : logs) squares += (x - mean) * (x - mean);
    tails[std::string(name)] = {mean, std::sqrt(squares / static_cast<double>(logs.size() - 1))};
  }
  return tails;
}

}  // namespace

Result<Points> read_points(std::span<const Observation> observations) {
  Points result;
  std::map<std::array<double, 4>, int> mask_settings;
  std::map<std::array<double, 6>, int> runs;
  std::size_t not_measured = 0;
  std::size_t unreadable = 0;
  std::size_t offered = 0;
  std::string why_unreadable;
  for (std::size_t i = 0; i < observations.size(); ++i) {
    const Observation& observation = observations[i];
    if (observation.outcome != Outcome::kMeasured) {
      ++not_measured;
      continue;
    }
    if (configuration_of(observation).number("offered_rate") > 0.0) {
      ++offered;
      continue;
    }
    const auto setting = read_setting(configuration_of(observation), {});
    if (!setting) {
      ++unreadable;
      why_unreadable = setting.error().message;
      continue;
    }
    const auto add = [&](pipeline::Output output, double value, double error) {
      Point point{.output = output,
                  .setting = *setting,
                  .log_value = std::log(value),
                  .relative_error = error,
                  .observation = i};
      point.mask_setting =
          mask_settings.try_emplace(setting->masks, static_cast<int>(mask_settings.size()))
              .first->second;
      const std::array<double, 6> run = {setting->masks[0],
                                         setting->masks[1],
                                         setting->masks[2],
                                         setting->masks[3],
                                         static_cast<double>(setting->operation),
                                         static_cast<double>(output)};
      point.run = runs.try_emplace(run, static_cast<int>(runs.size())).first->second;
      result.points.push_back(point);
    };
    const std::size_t before = result.points.size();
    if (setting->bytes > 0.0) {
      if (const auto value = positive(observation, measure::kBandwidth)) {
        add(pipeline::kLogBandwidth, *value, relative_error(observation, measure::kBandwidth));
      } else if (const auto rate = positive(observation, measure::kMessageRate)) {
        add(pipeline::kLogBandwidth, *rate * setting->bytes * 8e-3,
            relative_error(observation, measure::kMessageRate));
      }
    }
    for (const std::string_view name : {measure::kLatencyP50, measure::kLatencyMean}) {
      if (const auto value = positive(observation, name)) {
        add(pipeline::kLogLatency, *value, relative_error(observation, name));
        break;
      }
    }
    if (result.points.size() == before) continue;
    ++result.observations_used;
    result.domain.include(configuration_of(observation), setting_factors());
    result.domain.include_in_flight(setting->in_flight());
  }
  if (not_measured > 0) {
    result.notes.push_back(
        fmt::format("{} observations were not measured and are left out", not_measured));
  }
  if (offered > 0) {
    result.notes.push_back(fmt::format(
        "{} observations with an offered_rate are left out: they show the offer, not the device; "
        "predict --workload says what a load does",
        offered));
  }
  if (unreadable > 0) {
    result.notes.push_back(
        fmt::format("{} observations are left out: {}", unreadable, why_unreadable));
  }
  if (result.points.empty()) {
    return fail(ErrorCode::kTooFewPoints,
                fmt::format("none of {} observations has a bandwidth or a latency{}{}{}",
                            observations.size(), offered > 0 ? " of a closed loop" : "",
                            unreadable > 0 ? ": " : "", why_unreadable));
  }
  for (const auto output : {pipeline::kLogBandwidth, pipeline::kLogLatency}) {
    result.assumed[output] = most_common(observations, result.points, output);
  }
  result.tails = read_tails(observations);
  result.mask_settings = static_cast<int>(mask_settings.size());
  return result;
}

}  // namespace greynic::model
