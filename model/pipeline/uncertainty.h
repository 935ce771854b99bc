#pragma once

/// How well a fit of the pipeline law knows its parameters: covariance where the curvature at the
/// minimum speaks for the whole interval, profile likelihood where it does not, bootstrap on
/// demand.

#include <cstdint>
#include <vector>

#include "greynic/core/result.h"
#include "pipeline/fit.h"

namespace greynic::model::pipeline {

/// Points of a run share part of their error, so that together they say less than as many others:
/// the factor by which the variance of each point is larger for that.
[[nodiscard]] std::vector<double> design_effects(const std::vector<Point>& points,
                                                 const PipelineFit& fit,
                                                 const std::vector<double>& weights);

/// Curvature of the whole posterior, inactive parameters included (they keep their priors).
[[nodiscard]] std::vector<double> covariance_of(const std::vector<Point>& points,
                                                const PipelineFit& fit, const Priors& priors);

/// Value +- 1.96 deviations for all parameters.
void set_covariance_intervals(PipelineFit& fit);

/// Steps to both ends of each interval along the direction in which the others follow; where the
/// sum of squares there is not what the curvature promised, the interval is replaced by that of the
/// profile likelihood (all others fitted anew). Returns how many were.
int profile_where_needed(const std::vector<Point>& points, const Priors& priors, PipelineFit& fit);

/// Intervals, and the covariance of the active parameters, from `samples` fits to randomly weighted
/// data with randomly moved priors (Bayesian bootstrap; the points of a run keep together where
/// their errors are kin). kNotConverged when more than a tenth of them fail.
[[nodiscard]] Result<void> bootstrap(const std::vector<Point>& points, const Priors& priors,
                                     int samples, std::uint64_t seed, PipelineFit& fit);

}  // namespace greynic::model::pipeline
