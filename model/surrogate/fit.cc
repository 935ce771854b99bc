#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <set>

#include "data/points.h"
#include "surrogate/model.h"

namespace greynic::model {
namespace {

constexpr std::size_t kMostPoints = 600;  // the work grows with the cube
constexpr std::size_t kMostTuningPoints = 120;
constexpr std::size_t kFewestPoints = 4;

/// The factors that vary, as axes scaled to a spread of about one.
std::vector<Axis> make_axes(const std::vector<const Observation*>& used) {
  std::map<std::string, std::vector<double>> numbers;
  std::map<std::string, std::set<std::string>> words;
  std::set<std::string> names;
  for (const Observation* observation : used) {
    for (const auto& [name, value] : configuration_of(*observation).levels()) names.insert(name);
  }
  for (const Observation* observation : used) {
    const Configuration& configuration = configuration_of(*observation);
    for (const std::string& name : names) {
      const FactorValue* value = configuration.find(name);
      const FactorInfo* info = find_factor(name);
      if (value == nullptr && info != nullptr) value = &info->standard;
      if (value == nullptr) continue;
      if (const double* number = std::get_if<double>(value)) {
        numbers[name].push_back(*number);
      } else {
        words[name].insert(to_string(*value));
      }
    }
  }
  std::vector<Axis> axes;
  for (auto& [name, values] : numbers) {
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    if (*low == *high) continue;
    Axis axis{.factor = name};
    axis.logarithmic = *low >= 0.0 && *high > 50.0 * std::max(1.0, *low);
    double sum = 0.0;
    double squares = 0.0;
    for (const double value : values) {
      const double x = axis.logarithmic ? std::log1p(value) : value;
      sum += x;
      squares += x * x;
    }
    const auto n = static_cast<double>(values.size());
    axis.centre = sum / n;
    axis.scale = std::sqrt(std::max(1e-12, squares / n - axis.centre * axis.centre));
    axes.push_back(axis);
  }
  for (const auto& [name, levels] : words) {
    if (levels.size() < 2) continue;
    for (const std::string& level : levels) axes.push_back({.factor = name, .level = level});
  }
  return axes;
}

/// Negative log likelihood of the targets; a large number where there is none.
double badness(Process& process) {
  constexpr double kHopeless = 1e300;
  if (!process.prepare()) return kHopeless;
  const std::size_t n = process.targets.size();
  double sum = 0.0;
  for (std::size_t i = 0; i < n; ++i) {
    sum += 0.5 * process.targets[i] * process.weights[i] + std::log(process.factor[i * n + i]);
  }
  // Mild knowledge that lengths are near the spread of the data keeps unused axes from running
  // away.
  for (const double length : process.lengths) sum += 0.25 * std::pow(std::log(length / 2.0), 2.0);
  return std::isfinite(sum) ? sum : kHopeless;
}

/// Coordinate search over the logarithms of all settings: few evaluations, no derivative, robust.
void tune(Process& process) {
  std::vector<double*> settings = {&process.signal, &process.slope, &process.noise};
  for (double& length : process.lengths) settings.push_back(&length);
  double best = badness(process);
  for (double step = 1.2; step > 0.12; step *= 0.55) {
    for (double* setting : settings) {
      const double before = *setting;
      double chosen = before;
      for (const double way : {std::exp(step), std::exp(-step)}) {
        *setting = std::clamp(before * way, 1e-4, 1e3);
        const double value = badness(process);
        if (value < best) {
          best = value;
          chosen = *setting;
          break;
        }
      }
      *setting = chosen;
    }
  }
}

}  // namespace

Result<SurrogateState> fit_surrogate(std::span<const Observation> observations,
                                     std::uint64_t seed) {
  std::vector<const Observation*> used;
  std::map<std::string, int> measures;
  for (const Observation& observation : observations) {
    if (observation.outcome != Outcome::kMeasured) continue;
    used.push_back(&observation);
    for (const auto& [name, measure] : observation.measures) {
      if (std::isfinite(measure.value) && measure.value > 0.0) ++measures[name];
    }
  }
  // What greynic knows comes first; measures of other names are modelled where there is nothing
  // else.
  std::map<std::string, int> known;
  for (const std::string_view name :
       {measure::kBandwidth, measure::kMessageRate, measure::kLatencyP50, measure::kLatencyP99}) {
    const auto found = measures.find(std::string(name));
    if (found != measures.end()) known.insert(*found);
  }
  if (!known.empty()) measures = std::move(known);
  SurrogateState state;
  state.axes = make_axes(used);
  state.observations = used.size();
  std::vector<std::string> factors;
  for (const Axis& axis : state.axes) factors.push_back(axis.factor);
  for (const Observation* observation : used) {
    state.domain.include(configuration_of(*observation), factors);
  }
  std::mt19937_64 random(seed);
  for (const auto& [name, count] : measures) {
    if (static_cast<std::size_t>(count) < kFewestPoints) continue;
    std::vector<std::pair<std::vector<double>, double>> rows;
    for (const Observation* observation : used) {
      const auto value = observation->value(name);
      if (!value || !std::isfinite(*value) || *value <= 0.0) continue;
      rows.emplace_back(scaled_input(state.axes, configuration_of(*observation)), std::log(*value));
    }
    std::shuffle(rows.begin(), rows.end(), random);
    if (rows.size() > kMostPoints) {
      state.findings.push_back(fmt::format("{}: {} of {} observations are used, picked at random",
                                           name, kMostPoints, rows.size()));
      rows.resize(kMostPoints);
    }
    Process process;
    double squares = 0.0;
    for (const auto& [input, y] : rows) process.mean += y / static_cast<double>(rows.size());
    for (const auto& [input, y] : rows) squares += std::pow(y - process.mean, 2.0);
    const double spread = std::max(1e-3, std::sqrt(squares / static_cast<double>(rows.size())));
    process.signal = spread;
    process.slope = 0.3 * spread;
    process.noise = 0.1 * spread;
    process.lengths.assign(state.axes.size(), 2.0);
    const auto take = [&](std::size_t n) {
      process.inputs.clear();
      process.targets.clear();
      for (std::size_t i = 0; i < std::min(n, rows.size()); ++i) {
        process.inputs.push_back(rows[i].first);
        process.targets.push_back(rows[i].second - process.mean);
      }
    };
    take(kMostTuningPoints);
    tune(process);
    take(kMostPoints);
    if (!process.prepare()) {
      return fail(ErrorCode::kNotConverged,
                  fmt::format("the surrogate of {} has no valid covariance", name));
    }
    state.processes.emplace(name, std::move(process));
  }
  if (state.processes.empty()) {
    return fail(
        ErrorCode::kTooFewPoints,
        fmt::format("a surrogate needs {} measured observations of one measure", kFewestPoints));
  }
  return state;
}

}  // namespace greynic::model
