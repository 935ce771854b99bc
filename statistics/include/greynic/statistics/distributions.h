#pragma once

/// Tails and quantiles of the normal, Student's t and the gamma distribution, by Boost.Math.
/// Degrees of freedom may be infinite: Student's t is then the normal distribution.

namespace greynic::statistics {

/// Half the width of a normal 95 % interval, in standard deviations.
inline constexpr double kNormal95 = 1.959964;

/// Chance that a standard normal variable is above z.
[[nodiscard]] double normal_upper_tail(double z);

/// Chance that a Student's t variable is above t. t may be infinite.
[[nodiscard]] double student_upper_tail(double t, double freedom);
/// The t with that chance: 0.025 gives half the width of a 95 % interval, in standard errors.
[[nodiscard]] double student_upper_quantile(double chance, double freedom);

/// The value that a gamma variable of this shape and scale 1 is below with this chance.
[[nodiscard]] double gamma_quantile(double shape, double chance);

/// First and second derivative of the logarithm of the gamma function.
[[nodiscard]] double digamma(double x);
[[nodiscard]] double trigamma(double x);

}  // namespace greynic::statistics
