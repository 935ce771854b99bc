#pragma once

/// How well a law predicts settings it has not seen: settings are left out in turn, the law is
/// fitted to the rest and asked for what was left out.

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/points.h"
#include "greynic/model/model.h"

namespace greynic::model {

using FitFunction =
    std::function<Result<std::unique_ptr<Model>>(std::span<const Observation> observations)>;

/// One held-out value. Errors are logarithms of predicted over measured.
struct HeldOut {
  int output = 0;  ///< index into the measures that were asked for
  double log_error = 0.0;
  double distance = 0.0;       ///< how far the law said it extrapolated
  double log_deviation = 0.0;  ///< a quarter of the log width of its 95 % interval
  bool inside_interval = false;
  std::size_t observation = 0;
};

struct CrossValidation {
  std::vector<HeldOut> held_out;
  int folds = 0;
  int failed_folds = 0;
  std::string why_failed;
};

/// At most 10 folds. One fold is one or more whole settings (all sizes and operations of one mask
/// setting); where fewer than 3 settings are there, whole configurations. Observations in `skip`
/// are neither fitted nor asked for.
[[nodiscard]] CrossValidation cross_validate(std::span<const Observation> observations,
                                             const std::vector<bool>& skip,
                                             std::span<const std::string> measures,
                                             std::uint64_t seed, const FitFunction& fit);

/// Mean relative error of an output; negative when nothing was held out.
[[nodiscard]] double mean_relative_error(const CrossValidation& result, int output);

}  // namespace greynic::model
