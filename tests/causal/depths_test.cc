/// What tests of healed walls say beside the baseline's own (causal/whole/depths.h).

#include "depths.h"

#include <gtest/gtest.h>

namespace greynic::causal {
namespace {

constexpr double kScatter = 0.3;
constexpr double kPlacesOfScores[] = {-1.2, -0.6, -0.2, 0.2, 0.6, 1.2};

/// So many times six scores about a mean.
std::vector<double> scores_about(double mean, int times) {
  std::vector<double> scores;
  for (int i = 0; i < times; ++i) {
    for (const double draw : kPlacesOfScores) scores.push_back(mean + kScatter * draw);
  }
  return scores;
}

// Claim:  healed walls that are less deep than all walls that were seen are not called clear, and few
//         tests leave the question open; many tests about the baseline's mean settle it.
// Oracle: a likelihood ratio of two means by hand: 3.8 for a wall in the first case, -4 at most in the
//         second, within 1 of even in the third.
TEST(Depths, HealedWallsAreHeldAgainstTheBaselineAlone) {
  const Depths depths(0.0, 0.7, kScatter, [](double mean) { return mean + 0.2; });
  EXPECT_GT(depths.odds_beside(scores_about(0.0, 2), scores_about(0.38, 2)), 2.0);
  EXPECT_LT(depths.odds_beside(scores_about(0.0, 6), scores_about(0.0, 6)), -3.0);
  EXPECT_GT(depths.odds_beside({-0.1, 0.1}, {0.0, 0.2}), -1.0);
  EXPECT_EQ(depths.odds_beside({}, {0.4}), 0.0);
}

}  // namespace
}  // namespace greynic::causal
