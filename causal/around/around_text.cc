#include "around_text.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "greynic/files/core_json.h"

namespace greynic::causal {
namespace {

using nlohmann::json;

json estimate(const std::optional<Estimate>& one) {
  if (!one) return nullptr;
  return {{"value", one->value}, {"low", one->low}, {"high", one->high}};
}

json moved_alone(const std::optional<MovedAlone>& one) {
  if (!one) return nullptr;
  return {{"level", files::to_json(one->level)}, {"ratio", estimate(one->ratio)}};
}

std::string times(const std::optional<Estimate>& one) {
  return one ? fmt::format("{:.3g} [{:.3g}, {:.3g}]", one->value, one->low, one->high) : "-";
}

std::string times(const std::optional<MovedAlone>& one) {
  return times(one ? std::optional(one->ratio) : std::nullopt);
}

}  // namespace

json json_of(const CriticalPath& path) {
  json stages = json::array();
  for (const StageOnPath& stage : path.stages) {
    json counters = json::array();
    for (const MovedCounter& one : stage.counters) {
      counters.push_back({{"name", one.name}, {"baseline", one.baseline}, {"wall", one.wall}});
    }
    stages.push_back({{"stage", name_of(stage.stage)},
                      {"settings", stage.settings},
                      {"healed", estimate(stage.healed)},
                      {"alone", estimate(stage.alone)},
                      {"up_to_here", estimate(stage.up_to_here)},
                      {"holds", stage.holds},
                      {"counters", std::move(counters)}});
  }
  return {{"wall", files::to_json(path.wall)},
          {"stages", std::move(stages)},
          {"by_counters", path.by_counters ? json(name_of(*path.by_counters)) : json(nullptr)},
          {"elsewhere", path.elsewhere},
          {"symptom", path.symptom.empty() ? json(nullptr) : json(path.symptom)},
          {"symptom_text", path.symptom_text},
          {"tests", path.tests}};
}

json json_of(const Sensitivity& sensitivity) {
  json settings = json::array();
  for (const SettingSensitivity& one : sensitivity.settings) {
    settings.push_back({{"factor", one.factor},
                        {"healed", moved_alone(one.healed)},
                        {"weaker", moved_alone(one.weaker)},
                        {"stronger", moved_alone(one.stronger)},
                        {"mean", estimate(one.mean)},
                        {"mean_of_size", estimate(one.mean_of_size)},
                        {"spread", one.spread},
                        {"first", estimate(one.first)},
                        {"total", estimate(one.total)}});
  }
  return {{"wall", files::to_json(sensitivity.wall)},
          {"settings", std::move(settings)},
          {"noise", sensitivity.noise},
          {"paths", sensitivity.paths},
          {"rows", sensitivity.rows},
          {"tests", sensitivity.tests}};
}

std::string text_of(const CriticalPath& path) {
  std::string text = fmt::format("\ncritical path ({} tests)\n", path.tests);
  if (!path.symptom.empty()) {
    text += fmt::format("  symptom {}: {}\n", path.symptom, path.symptom_text);
  }
  if (!path.stages.empty()) {
    text += fmt::format("  {:<15} {:<22} {:<22} {:<22}\n", "stage", "healed, times wall",
                        "alone, of baseline", "up to here");
  }
  for (const StageOnPath& stage : path.stages) {
    if (!stage.settings.empty()) {
      text += fmt::format("  {:<15} {:<22} {:<22} {:<22}{}\n", name_of(stage.stage),
                          times(stage.healed), times(stage.alone), times(stage.up_to_here),
                          stage.holds ? " holds the wall" : "");
    }
    for (const MovedCounter& one : stage.counters) {
      text += fmt::format("  {:<15} counter {}: {:.4g} -> {:.4g} a packet\n", name_of(stage.stage),
                          one.name, one.baseline, one.wall);
    }
  }
  if (!path.elsewhere.empty()) {
    text += fmt::format("  of no known stage: {}\n", fmt::join(path.elsewhere, ", "));
  }
  return text;
}

std::string text_of(const Sensitivity& sensitivity) {
  std::string text = fmt::format(
      "\nsensitivity around the wall ({} tests: {} paths, {} rows; noise of one test {:.2g} %)\n"
      "  {:<22} {:<20} {:<8} {:<8} {:<20} {:<8} {:<20} {:<20}\n",
      sensitivity.tests, sensitivity.paths, sensitivity.rows, 100.0 * sensitivity.noise, "setting",
      "healed, times wall", "weaker", "stronger", "mean (logarithm)", "spread", "first", "total");
  const auto brief = [](const std::optional<MovedAlone>& one) {
    return one ? fmt::format("{:.3g}", one->ratio.value) : std::string("-");
  };
  for (const SettingSensitivity& one : sensitivity.settings) {
    text += fmt::format("  {:<22} {:<20} {:<8} {:<8} {:<20} {:<8.2g} {:<20} {:<20}\n", one.factor,
                        times(one.healed), brief(one.weaker), brief(one.stronger), times(one.mean),
                        one.spread, times(one.first), times(one.total));
  }
  return text;
}

}  // namespace greynic::causal
