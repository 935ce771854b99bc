#include "fitting/cross_validation.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

namespace greynic::model {
namespace {

constexpr int kMostFolds = 10;
constexpr int kFewestSettings = 3;

/// For each observation the number of its group; negative: not used.
std::vector<int> group_observations(std::span<const Observation> observations,
                                    const std::vector<bool>& skip, int& groups) {
  std::vector<int> by_masks(observations.size(), -1);
  std::vector<int> by_name(observations.size(), -1);
  std::map<std::array<double, 4>, int> masks;
  std::map<std::string, int> names;
  for (std::size_t i = 0; i < observations.size(); ++i) {
    if (skip[i] || observations[i].outcome != Outcome::kMeasured) continue;
    const Configuration& configuration =
        observations[i].granted.empty() ? observations[i].asked : observations[i].granted;
    const auto setting = read_setting(configuration, {});
    if (!setting) continue;
    by_masks[i] = masks.try_emplace(setting->masks, static_cast<int>(masks.size())).first->second;
    by_name[i] =
        names.try_emplace(configuration.name(), static_cast<int>(names.size())).first->second;
  }
  const bool enough = static_cast<int>(masks.size()) >= kFewestSettings;
  groups = static_cast<int>(enough ? masks.size() : names.size());
  return enough ? by_masks : by_name;
}

}  // namespace

CrossValidation cross_validate(std::span<const Observation> observations,
                               const std::vector<bool>& skip, std::span<const std::string> measures,
                               std::uint64_t seed, const FitFunction& fit) {
  CrossValidation result;
  int groups = 0;
  const auto group = group_observations(observations, skip, groups);
  result.folds = std::min(groups, kMostFolds);
  std::vector<int> fold(static_cast<std::size_t>(groups));
  for (int g = 0; g < groups; ++g)
    fold[static_cast<std::size_t>(g)] = g % std::max(1, result.folds);
  std::mt19937_64 random(seed);
  std::shuffle(fold.begin(), fold.end(), random);

  for (int f = 0; f < result.folds; ++f) {
    std::vector<Observation> rest;
    std::vector<std::size_t> left_out;
    for (std::size_t i = 0; i < observations.size(); ++i) {
      if (group[i] < 0) continue;
      if (fold[static_cast<std::size_t>(group[i])] == f) {
        left_out.push_back(i);
      } else {
        rest.push_back(observations[i]);
      }
    }
    const auto model = fit(rest);
    if (!model) {
      ++result.failed_folds;
      result.why_failed = model.error().message;
      continue;
    }
    for (const std::size_t i : left_out) {
      const Observation& observation = observations[i];
      const auto prediction =
          (*model)->predict(observation.granted.empty() ? observation.asked : observation.granted);
      if (!prediction) continue;
      for (std::size_t m = 0; m < measures.size(); ++m) {
        const auto value = observation.value(measures[m]);
        const auto found = prediction->measures.find(measures[m]);
        if (!value || *value <= 0.0 || found == prediction->measures.end()) continue;
        const PredictedMeasure& predicted = found->second;
        constexpr double kTiny = 1e-9;  // a form may predict 0, whose logarithm is none
        const double low = std::max(predicted.low, kTiny);
        result.held_out.push_back(
            {.output = static_cast<int>(m),
             .log_error = std::log(std::max(predicted.value, kTiny) / *value),
             .distance = prediction->distance,
             .log_deviation = std::log(std::max(predicted.high, kTiny) / low) / 4.0,
             .inside_interval = *value >= predicted.low && *value <= predicted.high,
             .observation = i});
      }
    }
  }
  return result;
}

double mean_relative_error(const CrossValidation& result, int output) {
  double sum = 0.0;
  double count = 0.0;
  for (const HeldOut& held : result.held_out) {
    if (held.output != output) continue;
    sum += std::abs(std::expm1(held.log_error));
    count += 1.0;
  }
  return count > 0.0 ? sum / count : -1.0;
}

}  // namespace greynic::model
