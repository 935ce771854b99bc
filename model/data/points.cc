#include "data/points.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

namespace greynic::model {
namespace {

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

/// What was left out, and why.
struct LeftOut {
  std::size_t not_measured = 0;
  std::size_t offered = 0;
  std::size_t unreadable = 0;
  std::string why_unreadable;

  [[nodiscard]] std::vector<std::string> notes() const {
    std::vector<std::string> notes;
    if (not_measured > 0) {
      notes.push_back(
          fmt::format("{} observations were not measured and are left out", not_measured));
    }
    if (offered > 0) {
      notes.push_back(fmt::format(
          "{} observations with an offered_rate are left out: they show the offer, not the device; "
          "predict --workload says what a load does",
          offered));
    }
    if (unreadable > 0) {
      notes.push_back(fmt::format("{} observations are left out: {}", unreadable, why_unreadable));
    }
    return notes;
  }
};

/// Numbers mask settings, and runs (mask setting, operation, output), as they come.
struct Numbering {
  std::map<std::array<double, 4>, int> mask_settings;
  std::map<std::array<double, 6>, int> runs;

  void number(Point& point) {
    const Setting& s = point.setting;
    point.mask_setting =
        mask_settings.try_emplace(s.masks, static_cast<int>(mask_settings.size())).first->second;
    const std::array<double, 6> run = {s.masks[0],
                                       s.masks[1],
                                       s.masks[2],
                                       s.masks[3],
                                       static_cast<double>(s.operation),
                                       static_cast<double>(point.output)};
    point.run = runs.try_emplace(run, static_cast<int>(runs.size())).first->second;
  }
};

/// The observation's bandwidth and latency, each where there is one. The bandwidth may come from
/// the message rate, the latency from the mean.
std::vector<Point> points_of(const Observation& observation, const Setting& setting) {
  std::vector<Point> points;
  const auto add = [&](pipeline::Output output, double value, std::string_view from) {
    points.push_back({.output = output,
                      .setting = setting,
                      .log_value = std::log(value),
                      .relative_error = relative_error(observation, from)});
  };
  if (setting.bytes > 0.0) {
    if (const auto value = positive(observation, measure::kBandwidth)) {
      add(pipeline::kLogBandwidth, *value, measure::kBandwidth);
    } else if (const auto rate = positive(observation, measure::kMessageRate)) {
      add(pipeline::kLogBandwidth, *rate * setting.bytes * 8e-3, measure::kMessageRate);
    }
  }
  for (const std::string_view name : {measure::kLatencyP50, measure::kLatencyMean}) {
    if (const auto value = positive(observation, name)) {
      add(pipeline::kLogLatency, *value, name);
      break;
    }
  }
  return points;
}

}  // namespace

Result<Points> read_points(std::span<const Observation> observations) {
  Points result;
  Numbering numbering;
  LeftOut left_out;
  for (std::size_t i = 0; i < observations.size(); ++i) {
    const Observation& observation = observations[i];
    if (observation.outcome != Outcome::kMeasured) {
      ++left_out.not_measured;
      continue;
    }
    if (configuration_of(observation).number("offered_rate") > 0.0) {
      ++left_out.offered;
      continue;
    }
    const auto setting = read_setting(configuration_of(observation), {});
    if (!setting) {
      ++left_out.unreadable;
      left_out.why_unreadable = setting.error().message;
      continue;
    }
    auto points = points_of(observation, *setting);
    if (points.empty()) continue;
    for (Point& point : points) {
      point.observation = i;
      numbering.number(point);
      result.points.push_back(std::move(point));
    }
    ++result.observations_used;
    result.domain.include(configuration_of(observation), setting_factors());
    result.domain.include_in_flight(setting->in_flight());
  }
  result.notes = left_out.notes();
  if (result.points.empty()) {
    return fail(ErrorCode::kNotMeasured,
                fmt::format("none of {} observations has a bandwidth or a latency{}{}{}",
                            observations.size(), left_out.offered > 0 ? " of a closed loop" : "",
                            left_out.unreadable > 0 ? ": " : "", left_out.why_unreadable));
  }
  for (const auto output : {pipeline::kLogBandwidth, pipeline::kLogLatency}) {
    result.assumed[output] = most_common(observations, result.points, output);
  }
  result.tails = read_tails(observations);
  result.mask_settings = static_cast<int>(numbering.mask_settings.size());
  return result;
}

}  // namespace greynic::model
