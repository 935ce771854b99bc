#include "greynic/statistics/distributions.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>

namespace greynic::statistics {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

// Claim:  quantiles of Student's t are those of the printed tables.
// Oracle: NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2, three decimals.
TEST(StudentT, AgreesWithThePrintedTable) {
  struct Row {
    double freedom, upper_10, upper_2_5, upper_0_5;
  };
  for (const Row& row :
       {Row{1, 3.078, 12.706, 63.657}, Row{2, 1.886, 4.303, 9.925}, Row{5, 1.476, 2.571, 4.032},
        Row{10, 1.372, 2.228, 3.169}, Row{30, 1.310, 2.042, 2.750}, Row{100, 1.290, 1.984, 2.626},
        Row{kInfinite, 1.282, 1.960, 2.576}}) {
    EXPECT_NEAR(student_upper_quantile(0.100, row.freedom), row.upper_10, 5e-4) << row.freedom;
    EXPECT_NEAR(student_upper_quantile(0.025, row.freedom), row.upper_2_5, 5e-4) << row.freedom;
    EXPECT_NEAR(student_upper_quantile(0.005, row.freedom), row.upper_0_5, 5e-4) << row.freedom;
  }
}

// Claim:  tails are right far out, too.
// Oracle: with one degree of freedom it is the Cauchy distribution, with two there is a closed
//         form; the normal tail is half the complementary error function.
TEST(StudentT, AgreesWithClosedForms) {
  for (const double t : {-30.0, -2.0, 0.0, 0.5, 4.0, 300.0}) {
    EXPECT_NEAR(student_upper_tail(t, 1), 0.5 - std::atan(t) / std::numbers::pi, 1e-14) << t;
    EXPECT_NEAR(student_upper_tail(t, 2), 0.5 - t / (2 * std::sqrt(2 + t * t)), 1e-14) << t;
    const double normal = std::erfc(t / std::numbers::sqrt2) / 2;
    EXPECT_NEAR(normal_upper_tail(t), normal, 1e-14 + 1e-12 * normal) << t;
    EXPECT_EQ(student_upper_tail(t, kInfinite), normal_upper_tail(t)) << t;
  }
  for (const double freedom : {1.0, 7.0, kInfinite}) {
    EXPECT_EQ(student_upper_tail(kInfinite, freedom), 0.0);
    EXPECT_EQ(student_upper_tail(-kInfinite, freedom), 1.0);
    EXPECT_NEAR(student_upper_tail(student_upper_quantile(0.01, freedom), freedom), 0.01, 1e-12);
  }
  EXPECT_NEAR(student_upper_quantile(0.025, kInfinite), kNormal95, 1e-6);
}

// Oracle: tables of chi-square (a gamma variable of half its freedom, doubled) from the same
//         handbook, 1.3.6.7.4; shape 1 is the exponential distribution.
TEST(Gamma, AgreesWithThePrintedTable) {
  EXPECT_NEAR(2 * gamma_quantile(0.5, 0.95), 3.841, 5e-4);
  EXPECT_NEAR(2 * gamma_quantile(5.0, 0.95), 18.307, 5e-4);
  EXPECT_NEAR(2 * gamma_quantile(15.0, 0.99), 50.892, 5e-4);
  EXPECT_NEAR(gamma_quantile(1.0, 0.5), std::numbers::ln2, 1e-14);
  EXPECT_NEAR(digamma(1.0), -std::numbers::egamma, 1e-14);
  EXPECT_NEAR(trigamma(1.0), std::numbers::pi * std::numbers::pi / 6, 1e-14);
}

}  // namespace
}  // namespace greynic::statistics
