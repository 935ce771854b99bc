#pragma once

/// How strongly each setting of a wall matters, whatever the causes are.
///
/// Local: one setting alone moves away from the wall, all others stay. It goes to the baseline's
/// level, one level towards the baseline, and one level further on.
///
/// Global: many settings move at once, around the wall: each is at the wall's level with a chance of
/// 3/4, else at any other level from the baseline's up to the wall's. Morris walks paths on which
/// one setting moves at a time, and gives the mean effect of a setting and how much it varies with
/// the others. Sobol parts the variance: what a setting explains alone (first), and what it takes
/// part in (total). A setting whose total exceeds its first acts together with others.
///
/// Example. The device is slow where a and b are both at the wall's level, c does nothing.
///
///     setting   healed alone   Morris mean   first   total
///     a         3 times        -0.5          0.43    0.57
///     b         3 times        -0.5          0.43    0.57
///     c         1 time          0            0       0
///
/// Effects are ratios of the metric, or their natural logarithms. A test that failed counts as a
/// twentieth of the baseline (twenty times as much, where more is worse).

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "greynic/core/configuration.h"

namespace greynic::causal {

/// A number with its two-sided interval at the confidence of the explanation.
struct Estimate {
  double value = 0.0;
  double low = 0.0;
  double high = 0.0;
};

/// The metric over that of the wall, when one setting is at this level and all else as in the wall.
struct MovedAlone {
  FactorValue level;
  Estimate ratio;
};

struct SettingSensitivity {
  std::string factor;
  std::optional<MovedAlone> healed;    ///< at the baseline's level; empty: forbidden
  std::optional<MovedAlone> weaker;    ///< numbers: one level towards the baseline
  std::optional<MovedAlone> stronger;  ///< numbers: one level beyond the wall's
  /// Logarithm of the metric at the wall's level over that at another one, along Morris' paths.
  std::optional<Estimate> mean;
  std::optional<Estimate> mean_of_size;  ///< of its absolute value
  double spread = 0.0;                   ///< its standard deviation
  std::optional<Estimate> first;         ///< Sobol's indices, of the variance that is no noise
  std::optional<Estimate> total;
};

struct Sensitivity {
  Configuration wall;
  std::vector<SettingSensitivity> settings;  ///< largest total first, then largest mean of size
  double noise = 0.0;                        ///< of one test, in natural logarithms
  int paths = 0;
  int rows = 0;
  std::size_t tests = 0;
};

}  // namespace greynic::causal
