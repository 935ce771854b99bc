#pragma once

/// What has to be said about a fit, for people: anomalies, trade-offs, and the setting that would
/// settle them.

#include <span>
#include <string>
#include <vector>

#include "data/points.h"
#include "greynic/core/observation.h"
#include "pipeline/fit.h"

namespace greynic::model {

/// Observations that the law misses by far, gathered by setting, with the sizes they span.
[[nodiscard]] std::vector<std::string> describe_anomalies(const Points& points,
                                                          const pipeline::PipelineFit& fit);

/// Condition number, parameters that the data hardly inform, pairs that trade off, and what to
/// measure next to tell them apart.
[[nodiscard]] std::vector<std::string> describe_identifiability(const pipeline::PipelineFit& fit);

/// Table of parameters with units and 95 % intervals, and how much of each comes from the data.
[[nodiscard]] std::string parameter_table(const pipeline::PipelineFit& fit);

}  // namespace greynic::model
