#include "greynic/loop/gain.h"

#include <fmt/core.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <vector>

#include "greynic/files/json_file.h"
#include "greynic/statistics/mean.h"

namespace greynic::loop {
namespace {

/// Of each measure, a value a pair.
using Values = std::map<std::string, std::vector<double>>;

/// The metric with a layout; all measures are added to `values`.
Result<double> measured_with(target::Target& device, const GainQuestion& question,
                             const target::FittedLayout& layout, int pair, Values& values) {
  auto done = device.rules().install(layout, question.traffic, question.placement);
  if (!done) return pass_on(done);
  const target::MeasureRequest request{.configuration = question.at,
                                       .repeat = pair,
                                       .duration = question.duration,
                                       .seed = question.seed + static_cast<std::uint64_t>(pair)};
  auto observation = target::measure_one(device, request);
  if (!observation) return pass_on(observation);
  const auto value = observation->value(question.metric);
  if (!value || !(*value > 0.0)) {
    return fail(ErrorCode::kRefused,
                fmt::format("{}: {} gave no {}: {} {}", device.info().name, question.at.name(),
                            question.metric, to_string(observation->outcome), observation->reason));
  }
  for (const auto& [name, measure] : observation->measures) values[name].push_back(measure.value);
  return *value;
}

/// Student's t over the logarithms of the pairs' ratios.
std::optional<Ratio> ratio_of(const std::vector<double>& before, const std::vector<double>& after) {
  if (before.size() != after.size()) return std::nullopt;
  std::vector<double> differences;
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (!(before[i] > 0.0) || !(after[i] > 0.0)) return std::nullopt;
    differences.push_back(std::log(after[i] / before[i]));
  }
  const statistics::Mean change = statistics::mean_of(differences);
  return Ratio{std::exp(change.value), std::exp(change.value - change.half_width),
               std::exp(change.value + change.half_width)};
}

nlohmann::json to_json(const Ratio& ratio) {
  return {{"value", ratio.value}, {"low", ratio.low}, {"high", ratio.high}};
}

}  // namespace

Result<Gain> measure_gain(target::Target& device, const GainQuestion& question, bool keep,
                          const std::function<void(int pair)>& progress) {
  std::vector<double> before;  // logarithms
  Values old_values, new_values;
  const auto give_back = [&](const Error& error) {
    const auto restored = device.rules().roll_back();
    return fail(error.code, restored
                                ? error.message
                                : error.message + "; and the old rules could not be restored: " +
                                      restored.error().message);
  };
  Gain gain;
  for (int pair = 0; pair < question.pairs; ++pair) {
    if (progress) progress(pair);
    auto old_value = measured_with(device, question, *question.before, pair, old_values);
    if (!old_value) return give_back(old_value.error());
    auto new_value = measured_with(device, question, *question.after, pair, new_values);
    if (!new_value) return give_back(new_value.error());
    before.push_back(std::log(*old_value));
  }
  if (!keep) {
    if (auto done = device.rules().roll_back(); !done) return pass_on(done);
  }
  const auto means = [&](const Values& values, std::map<std::string, double>& into) {
    for (const auto& [name, list] : values) {
      into[name] = std::accumulate(list.begin(), list.end(), 0.0) / question.pairs;
    }
  };
  means(old_values, gain.measures_before);
  means(new_values, gain.measures_after);
  for (const auto& [name, list] : old_values) {
    const auto after = new_values.find(name);
    if (after == new_values.end()) continue;
    if (const auto ratio = ratio_of(list, after->second)) gain.ratios[name] = *ratio;
  }
  gain.pairs = question.pairs;
  const Ratio& ratio = gain.ratios.at(question.metric);
  gain.before = std::exp(statistics::average(before));
  gain.ratio = ratio.value;
  gain.after = gain.before * gain.ratio;
  gain.ratio_low = ratio.low;
  gain.ratio_high = ratio.high;
  return gain;
}

std::map<std::string, Forecast> forecasts(const model::Prediction& before,
                                          const model::Prediction& after, const Gain& gain) {
  constexpr double kAsPredicted = 0.01;
  const auto half_width = [](const model::PredictedMeasure& of) {
    return std::log(of.high / of.low) / 2.0;
  };
  std::map<std::string, Forecast> all;
  for (const auto& [name, old_side] : before.measures) {
    const auto new_side = after.measures.find(name);
    const auto measured = gain.ratios.find(name);
    if (new_side == after.measures.end() || measured == gain.ratios.end()) continue;
    if (!(old_side.low > 0.0) || !(new_side->second.low > 0.0)) continue;
    const double said = new_side->second.value / old_side.value;
    const double wide = std::exp(std::hypot(half_width(old_side), half_width(new_side->second)));
    Forecast& one = all[name];
    one.predicted = {said, said / wide, said * wide};
    one.measured = measured->second;
    one.refuted =
        (one.predicted.high < one.measured.low || one.measured.high < one.predicted.low) &&
        std::abs(said / one.measured.value - 1.0) > kAsPredicted;
  }
  return all;
}

nlohmann::json to_json(const std::map<std::string, Forecast>& forecasts) {
  nlohmann::json object = nlohmann::json::object();
  for (const auto& [name, one] : forecasts) {
    object[name] = {{"predicted", to_json(one.predicted)},
                    {"measured", to_json(one.measured)},
                    {"refuted", one.refuted}};
  }
  return object;
}

std::string to_json_text(const Gain& gain, const GainQuestion& question,
                         std::optional<double> predicted,
                         const std::map<std::string, Forecast>& forecasts) {
  nlohmann::json document = {
      {"version", 1},
      {"metric", question.metric},
      {"configuration", question.at.name()},
      {"pairs", gain.pairs},
      {"before", gain.before},
      {"after", gain.after},
      {"ratio", {{"value", gain.ratio}, {"low", gain.ratio_low}, {"high", gain.ratio_high}}}};
  if (predicted) document["predicted"] = *predicted;
  if (!forecasts.empty()) document["forecasts"] = to_json(forecasts);
  for (const auto& [name, before] : gain.measures_before) {
    const auto after = gain.measures_after.find(name);
    if (after == gain.measures_after.end()) continue;
    document["measures"][name] = {{"before", before}, {"after", after->second}};
  }
  return files::json_text(document);
}

}  // namespace greynic::loop
