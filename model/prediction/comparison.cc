#include "greynic/model/comparison.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "data/model_file.h"
#include "data/points.h"

namespace greynic::model {

using nlohmann::json;

namespace {

constexpr std::size_t kSettings = 300;

/// Random settings in the ranges that both domains share; where they share none, in both.
std::vector<Configuration> shared_settings(const Domain& a, const Domain& b, std::uint64_t seed,
                                           std::vector<std::string>& notes) {
  std::mt19937_64 random(seed);
  std::map<std::string, Range> ranges;
  for (const auto& [name, range] : a.numeric) {
    const auto other = b.numeric.find(name);
    if (other == b.numeric.end()) {
      ranges[name] = range;
      continue;
    }
    Range both{std::max(range.low, other->second.low), std::min(range.high, other->second.high)};
    if (both.low > both.high) {
      both = {std::min(range.low, other->second.low), std::max(range.high, other->second.high)};
      notes.push_back(name + ": the fitted ranges do not meet, so one of both extrapolates");
    }
    ranges[name] = both;
  }
  for (const auto& [name, range] : b.numeric) ranges.try_emplace(name, range);
  std::map<std::string, std::vector<std::string>> categories = a.categories;
  for (const auto& [name, levels] : b.categories) {
    auto& all = categories[name];
    std::vector<std::string> both;
    std::set_intersection(all.begin(), all.end(), levels.begin(), levels.end(),
                          std::back_inserter(both));
    all = both.empty() ? levels : both;
  }
  std::vector<Configuration> settings;
  std::uniform_real_distribution<double> unit(0.0, 1.0);
  for (std::size_t i = 0; i < kSettings; ++i) {
    Configuration configuration;
    for (const auto& [name, range] : ranges) {
      const bool ratios = range.low > 0.0 && range.high / range.low >= 8.0;
      const double x = ratios ? range.low * std::pow(range.high / range.low, unit(random))
                              : range.low + (range.high - range.low) * unit(random);
      configuration.set(name, std::clamp(std::round(x), range.low, range.high));
    }
    for (const auto& [name, levels] : categories) {
      const auto pick = static_cast<std::size_t>(unit(random) * static_cast<double>(levels.size()));
      const std::string& level = levels[std::min(pick, levels.size() - 1)];
      const FactorInfo* info = find_factor(name);
      if (info != nullptr && info->type == FactorType::kBool) {
        configuration.set(name, level == "true");
      } else {
        configuration.set(name, level);
      }
    }
    settings.push_back(std::move(configuration));
  }
  return settings;
}

std::vector<ParameterDifference> compare_parameters(const json& a, const json& b) {
  std::vector<ParameterDifference> result;
  const auto name_of = [](const json& parameter) {
    const std::string measure = parameter.value("measure", std::string());
    return (measure.empty() ? "" : measure + " ") + parameter.at("name").get<std::string>();
  };
  const auto list = [](const json& document) {
    return document.contains("parameters") ? document.at("parameters") : json::array();
  };
  for (const json& mine : list(a)) {
    for (const json& other : list(b)) {
      if (name_of(mine) != name_of(other)) continue;
      const bool apart = mine.at("high") < other.at("low") || other.at("high") < mine.at("low");
      result.push_back({name_of(mine), mine.value("unit", std::string()), mine.at("value"),
                        other.at("value"), apart});
    }
  }
  const json none = json::object();
  const json& theirs = b.contains("coefficients") ? b.at("coefficients") : none;
  for (const auto& [name, value] :
       (a.contains("coefficients") ? a.at("coefficients") : none).items()) {
    if (theirs.contains(name)) result.push_back({name, "", value, theirs.at(name), false});
  }
  return result;
}

void compare_predictions(const Model& a, const Model& b, std::span<const Configuration> settings,
                         ModelComparison& result) {
  std::map<std::string, std::size_t> counts;
  for (const Configuration& setting : settings) {
    const auto mine = a.predict(setting);
    const auto other = b.predict(setting);
    if (!mine || !other) continue;
    ++result.settings;
    for (const auto& [name, measure] : mine->measures) {
      const auto found = other->measures.find(name);
      if (found == other->measures.end() || measure.value <= 0.0 || found->second.value <= 0.0) {
        continue;
      }
      MeasureDifference& difference = result.measures[name];
      const double ratio = found->second.value / measure.value;
      if (counts[name]++ == 0) difference.mean_ratio = 0.0;
      difference.mean_ratio += std::log(ratio);
      difference.mean_difference += std::abs(ratio - 1.0);
      if (std::abs(std::log(ratio)) > std::abs(std::log(difference.worst_ratio))) {
        difference.worst_ratio = ratio;
        difference.worst_at = setting.name();
      }
    }
  }
  for (auto& [name, difference] : result.measures) {
    const auto n = static_cast<double>(counts[name]);
    difference.mean_ratio = std::exp(difference.mean_ratio / n);
    difference.mean_difference /= n;
  }
}

void compare_on_run(const Model& a, const Model& b, std::span<const Observation> observations,
                    ModelComparison& result) {
  for (auto& measure : result.measures) {
    const std::string& name = measure.first;
    MeasureDifference::OnRun on_run;
    for (const Observation& observation : observations) {
      const auto value = observation.value(name);
      if (!value || *value <= 0.0) continue;
      const auto mine = a.predict(configuration_of(observation));
      const auto other = b.predict(configuration_of(observation));
      if (!mine || !other) continue;
      const auto count = [&](const Prediction& prediction, double& error, double& inside) {
        const auto found = prediction.measures.find(name);
        if (found == prediction.measures.end()) return;
        error += std::abs(found->second.value / *value - 1.0);
        inside += found->second.low <= *value && *value <= found->second.high ? 1.0 : 0.0;
      };
      count(*mine, on_run.error_a, on_run.inside_a);
      count(*other, on_run.error_b, on_run.inside_b);
      ++on_run.observations;
    }
    if (on_run.observations == 0) continue;
    for (double* sum : {&on_run.error_a, &on_run.error_b, &on_run.inside_a, &on_run.inside_b}) {
      *sum /= static_cast<double>(on_run.observations);
    }
    measure.second.on_run = on_run;
  }
}

}  // namespace

Result<ModelComparison> compare_models(const Model& a, const Model& b,
                                       std::span<const Observation> observations,
                                       std::uint64_t seed) {
  const json mine = json::parse(a.to_json_text());
  const json other = json::parse(b.to_json_text());
  ModelComparison result;
  result.law_a = a.law();
  result.law_b = b.law();
  result.parameters = compare_parameters(mine, other);
  const auto settings = shared_settings(domain_from_json(mine.at("domain")),
                                        domain_from_json(other.at("domain")), seed, result.notes);
  compare_predictions(a, b, settings, result);
  if (result.measures.empty()) {
    return fail(ErrorCode::kBadInput, "the two models predict no measure in common");
  }
  compare_on_run(a, b, observations, result);
  return result;
}

std::string to_text(const ModelComparison& comparison) {
  std::string text = fmt::format("a: law {}, b: law {}; {} settings of the shared domain\n\n",
                                 comparison.law_a, comparison.law_b, comparison.settings);
  text += fmt::format("{:<22} {:>10} {:>14} {:>12}  {}\n", "measure", "b / a", "mean |b/a - 1|",
                      "worst b / a", "at");
  for (const auto& [name, d] : comparison.measures) {
    text += fmt::format("{:<22} {:>10.4f} {:>12.2f} % {:>12.4f}  {}\n", name, d.mean_ratio,
                        100.0 * d.mean_difference, d.worst_ratio, d.worst_at);
  }
  bool headed = false;
  for (const auto& [name, d] : comparison.measures) {
    if (!d.on_run) continue;
    if (!headed) {
      text += fmt::format("\n{:<22} {:>12} {:>12} {:>12} {:>12} {:>8}\n", "on the run", "error a",
                          "error b", "inside a", "inside b", "points");
    }
    headed = true;
    text +=
        fmt::format("{:<22} {:>10.2f} % {:>10.2f} % {:>10.1f} % {:>10.1f} % {:>8}\n", name,
                    100.0 * d.on_run->error_a, 100.0 * d.on_run->error_b,
                    100.0 * d.on_run->inside_a, 100.0 * d.on_run->inside_b, d.on_run->observations);
  }
  if (!comparison.parameters.empty()) {
    text += fmt::format("\n{:<32} {:>12} {:>12} {:>9}  {:<10} {}\n", "parameter", "a", "b", "b / a",
                        "unit", "95 % intervals");
  }
  for (const ParameterDifference& p : comparison.parameters) {
    const std::string ratio = p.a != 0.0 ? fmt::format("{:.3f}", p.b / p.a) : "-";
    text += fmt::format("{:<32} {:>12.5g} {:>12.5g} {:>9}  {:<10} {}\n", p.name, p.a, p.b, ratio,
                        p.unit, p.apart ? "apart" : "overlap");
  }
  for (const std::string& note : comparison.notes) text += "note: " + note + "\n";
  return text;
}

}  // namespace greynic::model
