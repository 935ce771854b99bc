#pragma once

/// `optimize --for` a fleet: a layout for each of its models.

#include <string>
#include <vector>

#include "greynic/optimizer/optimize.h"

namespace greynic::cli {

struct FleetLayoutFlags {
  std::string rules;    ///< as given
  std::string traffic;  ///< as given
  std::string out;      ///< empty: nothing is written
  bool as_json = false;
};

/// Makes, writes and prints; returns the exit code.
int optimize_for_fleet(const FleetLayoutFlags& flags, const RuleSet& rules, const Traffic& traffic,
                       const optimizer::OptimizeOptions& options,
                       const std::vector<ModelLimits>& models);

}  // namespace greynic::cli
