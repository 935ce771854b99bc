#pragma once

/// Predictions over a grid of configurations, a million cells a second: columns instead of one
/// object for each cell.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "greynic/core/configuration.h"
#include "greynic/model/model.h"

namespace greynic::model {

struct GridAxis {
  std::string factor;
  std::vector<FactorValue> levels;  ///< at least one
};

/// "client_encap_masks=0:40:5,operation=SEND|WRITE,message_bytes=64|8MiB": a range with its step,
/// or levels. kBadInput says what is wrong and where; kTooBig beyond 100 million cells.
[[nodiscard]] Result<std::vector<GridAxis>> parse_grid(std::string_view text);

/// One value, low and high bound (95 %) for each cell.
struct GridColumn {
  std::string measure;
  std::vector<double> value;
  std::vector<double> low;
  std::vector<double> high;
};

struct GridPrediction {
  std::size_t cells = 0;
  std::vector<GridColumn> columns;
  std::vector<double> distance;  ///< 0: inside the fitted domain
};

/// Cell i has levels i / stride mod size of each axis; the last axis runs fastest.
[[nodiscard]] Configuration grid_cell(const std::vector<GridAxis>& axes, std::size_t cell);

/// Bandwidth and median latency of every cell. `threads` 0: as many as the machine has. A cell
/// whose measure cannot be predicted there (bandwidth of empty messages) holds 0 with bounds 0.
[[nodiscard]] Result<GridPrediction> predict_grid(const Model& model,
                                                  const std::vector<GridAxis>& axes,
                                                  int threads = 0);

}  // namespace greynic::model
