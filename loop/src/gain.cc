#include "greynic/loop/gain.h"

#include <fmt/core.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "greynic/files/json_file.h"
#include "greynic/statistics/mean.h"

namespace greynic::loop {
namespace {

/// The metric with a layout; all measures are added to `sums`.
Result<double> measured_with(target::Target& device, const GainQuestion& question,
                             const target::FittedLayout& layout, int pair,
                             std::map<std::string, double>& sums) {
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
  for (const auto& [name, measure] : observation->measures) sums[name] += measure.value;
  return *value;
}

}  // namespace

Result<Gain> measure_gain(target::Target& device, const GainQuestion& question, bool keep,
                          const std::function<void(int pair)>& progress) {
  std::vector<double> before;
  std::vector<double> differences;  // of logarithms
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
    auto old_value = measured_with(device, question, *question.before, pair, gain.measures_before);
    if (!old_value) return give_back(old_value.error());
    auto new_value = measured_with(device, question, *question.after, pair, gain.measures_after);
    if (!new_value) return give_back(new_value.error());
    before.push_back(std::log(*old_value));
    differences.push_back(std::log(*new_value / *old_value));
  }
  if (!keep) {
    if (auto done = device.rules().roll_back(); !done) return pass_on(done);
  }
  for (auto* sums : {&gain.measures_before, &gain.measures_after}) {
    for (auto& [name, sum] : *sums) sum /= question.pairs;
  }
  gain.pairs = question.pairs;
  const statistics::Mean change = statistics::mean_of(differences);
  gain.before = std::exp(statistics::average(before));
  gain.ratio = std::exp(change.value);
  gain.after = gain.before * gain.ratio;
  gain.ratio_low = std::exp(change.value - change.half_width);
  gain.ratio_high = std::exp(change.value + change.half_width);
  return gain;
}

std::string to_json_text(const Gain& gain, const GainQuestion& question,
                         std::optional<double> predicted) {
  nlohmann::json document = {
      {"version", 1},
      {"metric", question.metric},
      {"configuration", question.at.name()},
      {"pairs", gain.pairs},
      {"before", gain.before},
      {"after", gain.after},
      {"ratio", {{"value", gain.ratio}, {"low", gain.ratio_low}, {"high", gain.ratio_high}}}};
  if (predicted) document["predicted"] = *predicted;
  for (const auto& [name, before] : gain.measures_before) {
    const auto after = gain.measures_after.find(name);
    if (after == gain.measures_after.end()) continue;
    document["measures"][name] = {{"before", before}, {"after", after->second}};
  }
  return files::json_text(document);
}

}  // namespace greynic::loop
