#pragma once

/// Variances of many small samples. A variance from two repeats says little, so each is shrunk
/// towards one that all samples share: the prior. There are two ways to learn the prior.
///
/// Example: variances of 4 and 1 with two degrees of freedom each, and a prior of 2 that counts as
/// four: they become (4 * 2 + 2 * 4) / 6 = 2.67 and (4 * 2 + 2 * 1) / 6 = 1.67, each with six.

#include <span>

namespace greynic::statistics {

/// A sample variance and its degrees of freedom.
struct Spread {
  double variance = 0.0;
  double freedom = 0.0;
};

/// What the samples share: a variance that counts as if it had `freedom` degrees of its own.
/// Infinite freedom: all spreads are one. Zero freedom: nothing is known.
using SpreadPrior = Spread;

/// Learns how far to shrink from the samples themselves: the less their variances differ, the
/// further. For runs with many samples, judged once. Fits the scaled-inverse-chi-square prior to
/// the logarithms of the variances by their first two moments (G. K. Smyth, "Linear models and
/// empirical Bayes methods for assessing differential expression", 2004, section 6.2). Samples
/// without freedom tell nothing; those without variance are taken at a small share of the median,
/// so that rounding does not make a few of them infinitely sure.
[[nodiscard]] SpreadPrior fitted_prior(std::span<const Spread> spreads);

/// The pooled variance, which counts as its degrees of freedom, at most `most_freedom` of them. For
/// sequential tests that add samples of their own: the weight stays the same while they do.
[[nodiscard]] SpreadPrior pooled_prior(std::span<const Spread> spreads, double most_freedom);

/// The sample's spread under the prior.
[[nodiscard]] Spread shrunk(const Spread& spread, const SpreadPrior& prior);

}  // namespace greynic::statistics
