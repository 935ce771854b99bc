#include "greynic/core/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace greynic {
namespace {

// Claim:  every quantile is within 1/256 of the true one, and merging equals recording together.
// Oracle: the sorted samples.
TEST(LatencyHistogram, KeepsQuantilesWithinItsStatedError) {
  std::mt19937_64 random(7);
  std::lognormal_distribution<double> draw(8.0, 2.0);
  LatencyHistogram whole;
  LatencyHistogram left;
  LatencyHistogram right;
  std::vector<std::uint64_t> samples;
  for (int i = 0; i < 50'000; ++i) {
    samples.push_back(static_cast<std::uint64_t>(draw(random)) + 1);
    whole.record(samples.back());
    (i % 3 == 0 ? left : right).record(samples.back());
  }
  left.merge(right);
  EXPECT_EQ(left, whole);
  EXPECT_EQ(LatencyHistogram::from_buckets(whole.buckets()).count(), whole.count());
  std::sort(samples.begin(), samples.end());
  for (const double q : {0.0, 0.01, 0.5, 0.9, 0.99, 0.999, 1.0}) {
    const auto rank = static_cast<std::size_t>(
        std::max(1.0, std::ceil(q * static_cast<double>(samples.size()))) - 1.0);
    const auto truth = static_cast<double>(samples[rank]);
    EXPECT_NEAR(whole.quantile_ns(q), truth, truth / 256.0 + 0.5) << "q = " << q;
  }
}

// Claim: samples beyond the range land in the last bucket and are still counted.
TEST(LatencyHistogram, CountsSamplesBeyondItsRange) {
  LatencyHistogram histogram;
  histogram.record(~std::uint64_t{0});
  histogram.record(0, 2);
  EXPECT_EQ(histogram.count(), 3U);
  EXPECT_EQ(histogram.quantile_ns(0.5), 0.0);
  EXPECT_EQ(LatencyHistogram().quantile_ns(0.5), 0.0);
}

}  // namespace
}  // namespace greynic
