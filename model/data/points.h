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

/// kTooFewPoints when nothing usable is there.
[[nodiscard]] Result<Points> read_points(std::span<const Observation> observations);

}  // namespace greynic::model
