#pragma once

/// The pipeline law over a grid, quickly: what a level does to a setting, and how far outside the
/// domain it lies, is worked out once for each level instead of once for each cell.

#include <array>
#include <optional>
#include <vector>

#include "greynic/model/grid.h"
#include "pipeline/model.h"

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
  [[nodiscard]] Setting setting_of(std::size_t cell, int output, double& distance) const;

  const PipelineState* state_ = nullptr;
  std::optional<BeyondFactors> beyond_;
  std::vector<Axis> axes_;
  std::array<Setting, kOutputCount> base_;
  double base_distance_ = 0.0;
};

}  // namespace greynic::model
