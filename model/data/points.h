#pragma once

/// Observations as the laws see them: one point for each measure that a law predicts.

#include <array>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "data/domain.h"
#include "data/setting.h"
#include "greynic/core/observation.h"
#include "greynic/core/result.h"
#include "pipeline/law.h"

namespace greynic::model {

inline constexpr int kOutputCount = 2;
inline constexpr std::array<std::string_view, kOutputCount> kOutputNames = {measure::kBandwidth,
                                                                            measure::kLatencyP50};

/// What the device ran with: as granted, or as asked where it granted nothing else.
[[nodiscard]] inline const Configuration& configuration_of(const Observation& observation) {
  return observation.granted.empty() ? observation.asked : observation.granted;
}

struct Point {
  pipeline::Output output = pipeline::kLogBandwidth;
  Setting setting;
  double log_value = 0.0;
  double relative_error = 0.0;  ///< standard error over value; 0: not known
  std::size_t observation = 0;  ///< index into the observations
  int run = 0;           ///< points of one mask setting, operation and output: errors are kin
  int mask_setting = 0;  ///< points of one mask setting
};

/// Other latency measures follow the median by a ratio: its mean and deviation, as logarithms.
struct Ratio {
  double log_mean = 0.0;
  double deviation = 0.0;
};

struct Points {
  std::vector<Point> points;
  std::array<Configuration, kOutputCount> assumed;  ///< most common levels, for questions that
                                                    ///< leave them open: see docs/formats/model.md
  Domain domain;
  std::map<std::string, Ratio> tails;
  int mask_settings = 0;
  std::size_t observations_used = 0;
  std::vector<std::string> notes;  ///< what was left out and why
};

/// kNotMeasured when no observation has a bandwidth or a latency.
[[nodiscard]] Result<Points> read_points(std::span<const Observation> observations);

}  // namespace greynic::model
