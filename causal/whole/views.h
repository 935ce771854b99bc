#pragma once

/// What all tests say, if the baseline's mean and the depth of walls are these: neither is known.

#include <vector>

namespace greynic::causal {

struct Views {
  /// Of each view, as a logarithm: its odds, and how likely all tests are if none is of a wall.
  std::vector<double> clear;
  std::vector<double> baselines;  ///< of each view, its mean
  /// Of each view and test: log p(readings | wall) - log p(readings | clear).
  std::vector<std::vector<double>> evidence;
};

}  // namespace greynic::causal
