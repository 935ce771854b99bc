#include "greynic/statistics/halves.h"

#include <gtest/gtest.h>

namespace greynic::statistics {
namespace {

// Claim:  halves agree up to the share allowed, and beyond it as far as the error of the whole
//         explains.
TEST(Halves, AgreeWithinTheShareOrTheError) {
  const HalvesAllowance allowance{.share = 0.05, .standard_errors = 4.0};
  EXPECT_TRUE(halves_agree(98.0, 102.0, 100.0, 0.0, allowance));
  EXPECT_FALSE(halves_agree(97.0, 103.0, 100.0, 0.0, allowance));
  EXPECT_TRUE(halves_agree(97.0, 103.0, 100.0, 1.5, allowance));
  EXPECT_FALSE(halves_agree(97.0, 103.0, 100.0, 1.4, allowance));
}

}  // namespace
}  // namespace greynic::statistics
