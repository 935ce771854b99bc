#pragma once

/// The pipeline law over a grid, quickly: what a level does to a setting is worked out once, and
/// the parameters' uncertainty is followed along the few directions that matter to the predictions.

#include <array>
#include <optional>
#include <vector>

#include "greynic/model/grid.h"
#include "pipeline_model.h"

namespace greynic::model {

class PipelineGrid {
 public:
  /// Empty where a level acts on a setting together with another axis (memory regions), which the
  /// quick way cannot follow. kBadInput for levels that the law cannot take.
  [[nodiscard]] static Result<std::optional<PipelineGrid>> prepare(
      const PipelineState& state, const std::vector<GridAxis>& axes);
  /// Fills the cells from `first` up to `last`; safe from several threads on disjoint cells.
  void predict(std::size_t first, std::size_t last, GridPrediction& grid) const;

 private:
  struct Axis {
    void (*copy)(Setting& to, const Setting& from) = nullptr;
    std::array<std::vector<Setting>, kOutputCount> levels;  ///< setting with only this level set
    std::vector<double> distance;
  };
  struct Follower {
    pipeline::DirectionalLaw law;
    double rest = 0.0;  ///< mean variance that the directions leave out
  };
  [[nodiscard]] Setting setting_of(std::size_t cell, int output, double& distance) const;
  [[nodiscard]] Follower follow(pipeline::Output output, std::size_t cells) const;

  const PipelineState* state_ = nullptr;
  std::vector<Axis> axes_;
  std::array<Setting, kOutputCount> base_;
  double base_distance_ = 0.0;
  std::array<std::optional<Follower>, kOutputCount> followers_;
};

}  // namespace greynic::model
