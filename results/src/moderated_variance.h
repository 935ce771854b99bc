#pragma once

/// Empirical Bayes for many small samples: each sample's variance is shrunk towards a common one.

#include <span>

namespace greynic::results {

/// A sample variance and its degrees of freedom.
struct Spread {
  double variance = 0.0;
  double freedom = 0.0;
};

/// The prior that the samples share: a variance that counts as if it had `freedom` degrees of its
/// own. Infinite freedom: all spreads are one. Zero freedom: nothing is known.
struct SpreadPrior {
  double variance = 0.0;
  double freedom = 0.0;
};

/// Fits the scaled-inverse-chi-square prior to the logarithms of the variances by their first two
/// moments (G. K. Smyth, "Linear models and empirical Bayes methods for assessing differential
/// expression", 2004, section 6.2). Samples without freedom tell nothing; those without variance
/// are taken at a small share of the median, so that rounding does not make a few of them
/// infinitely sure.
[[nodiscard]] SpreadPrior fit_prior(std::span<const Spread> spreads);

/// The sample's spread under the prior.
[[nodiscard]] Spread moderated(const Spread& spread, const SpreadPrior& prior);

}  // namespace greynic::results
