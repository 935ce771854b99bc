#pragma once

/// A Gaussian process over whatever factors vary: where no law fits, so that a new RNIC is never a
/// dead end. docs/models/surrogate.md.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "data/domain.h"
#include "greynic/model/model.h"

namespace greynic::model {

/// One coordinate: a numeric factor (log1p where it spans decades) or one level of a category.
struct Axis {
  std::string factor;
  std::string level;  ///< of a category; empty for numbers
  bool logarithmic = false;
  double centre = 0.0;  ///< after the logarithm
  double scale = 1.0;
};

/// One measure: logarithm of it as a process with squared-exponential and linear covariance.
struct Process {
  double mean = 0.0;
  double signal = 1.0;  ///< standard deviation of the smooth part
  double slope = 0.0;   ///< standard deviation of each linear coefficient
  double noise = 0.1;
  std::vector<double> lengths;              ///< one for each axis
  std::vector<std::vector<double>> inputs;  ///< scaled
  std::vector<double> targets;              ///< log value - mean
  std::vector<double> weights;              ///< K^-1 targets
  std::vector<double> factor;               ///< lower Cholesky factor of K, row by row

  /// Fills weights and factor. False when the covariance is not positive definite.
  [[nodiscard]] bool prepare();
  struct At {
    double mean;
    double deviation;  ///< of a new observation
  };
  [[nodiscard]] At at(const std::vector<double>& input) const;
};

struct SurrogateState : FittedOn {
  std::vector<Axis> axes;
  std::map<std::string, Process> processes;  ///< by measure
};

class SurrogateModel final : public Model {
 public:
  explicit SurrogateModel(SurrogateState state) : state_(std::move(state)) {}
  [[nodiscard]] std::string law() const override { return "surrogate"; }
  [[nodiscard]] std::vector<std::string> inputs() const override;
  [[nodiscard]] Result<Prediction> predict(const Configuration& configuration) const override;
  [[nodiscard]] std::string to_json_text() const override;
  [[nodiscard]] SurrogateState& state() { return state_; }

 private:
  SurrogateState state_;
};

/// A configuration in the coordinates of the axes.
[[nodiscard]] std::vector<double> scaled_input(const std::vector<Axis>& axes,
                                               const Configuration& configuration);

/// What each process learnt: noise, and how far each factor's influence reaches.
[[nodiscard]] std::string surrogate_table(const SurrogateState& state);

/// kTooFewPoints below 4 usable observations; kNotConverged when no length scale works.
[[nodiscard]] Result<SurrogateState> fit_surrogate(std::span<const Observation> observations,
                                                   std::uint64_t seed);

}  // namespace greynic::model
