#pragma once

/// Refuses a least-squares problem whose parts disagree in size.

#include "greynic/model/least_squares.h"

namespace greynic::model {

/// `n` parameters: kTooFewPoints below as many residuals; kBadInput for wrong numbers of bounds.
[[nodiscard]] Result<void> check_shapes(const LeastSquaresProblem& problem, std::size_t n);

}  // namespace greynic::model
