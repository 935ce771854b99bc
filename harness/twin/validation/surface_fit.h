#pragma once

/// Recovers the two published forms from samples of a twin's surface (docs/twin/validation.md, item
/// 7), as one would from measurements of a real RNIC. The Gaussian is ill-conditioned, its centre
/// lies far outside the samples: judge the function, never single coefficients.

#include <span>

#include "parameters/parameters.h"

namespace greynic::twin {

struct SurfaceSample {
  double local = 0, remote = 0;  ///< groups
  double value = 0;
};

/// Fits u, v, m, n and w of BW = u exp(-((Q_l-m)^2 + (Q_r-n)^2) / (2 v^2)) + w by least squares: u
/// and w follow from the other three in closed form, and those by a simplex search. Needs six
/// samples at least, not all at the same place.
[[nodiscard]] PublishedSurface fit_bandwidth(std::span<const SurfaceSample> samples);

/// Fits a, b and c of LAT = a Q_l + b Q_r + c by least squares.
[[nodiscard]] PublishedSurface fit_latency(std::span<const SurfaceSample> samples);

/// 1 - residual squares / squares about the mean.
[[nodiscard]] double goodness_of_fit(std::span<const double> wanted,
                                     std::span<const double> fitted);

}  // namespace greynic::twin
