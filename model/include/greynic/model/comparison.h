#pragma once

/// Two models side by side: parameters that differ by more than their intervals allow, predictions
/// over the domain that both were fitted in, and, where observations are given, who predicts them
/// better.

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "greynic/model/model.h"

namespace greynic::model {

struct ParameterDifference {
  std::string name;
  std::string unit;
  double a = 0.0;
  double b = 0.0;
  bool apart = false;  ///< the 95 % intervals do not meet
};

struct MeasureDifference {
  double mean_ratio = 1.0;       ///< of b over a, geometric mean over the settings asked
  double mean_difference = 0.0;  ///< mean size of b / a - 1
  double worst_ratio = 1.0;
  std::string worst_at;
  /// On the observations of a run: mean relative error, and the share inside the 95 % interval.
  struct OnRun {
    double error_a = 0.0, error_b = 0.0;
    double inside_a = 0.0, inside_b = 0.0;
    std::size_t observations = 0;
  };
  std::optional<OnRun> on_run;
};

struct ModelComparison {
  std::string law_a;
  std::string law_b;
  std::size_t settings = 0;                     ///< asked of both
  std::vector<ParameterDifference> parameters;  ///< those both have
  std::map<std::string, MeasureDifference> measures;
  std::vector<std::string> notes;
};

/// kBadInput when the models predict no measure in common.
[[nodiscard]] Result<ModelComparison> compare_models(const Model& a, const Model& b,
                                                     std::span<const Observation> observations,
                                                     std::uint64_t seed = 1);

/// As tables, for people.
[[nodiscard]] std::string to_text(const ModelComparison& comparison);

}  // namespace greynic::model
