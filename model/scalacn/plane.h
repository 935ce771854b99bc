#pragma once

/// The latency plane of the ScalaCN forms: linear least squares.

#include <vector>

#include "scalacn/model.h"

namespace greynic::model {

struct Sample {
  LocalRemote q;
  double value = 0.0;  ///< in the form's own unit: 2^30 bit/s, or us
};

/// Fills a, b and c, their covariance and the residual. kRankDeficient when the masks of both sides
/// varied together only.
[[nodiscard]] Result<void> fit_plane(const std::vector<Sample>& samples, ScalacnState& state);

}  // namespace greynic::model
