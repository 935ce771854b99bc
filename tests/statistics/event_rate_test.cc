#include "greynic/statistics/event_rate.h"

#include <gtest/gtest.h>

#include <vector>

namespace greynic::statistics {
namespace {

// More series, with noise and warm-ups, are in tests/verbs/traffic/completion_rate_test.cc.

// Claim:  the rate of bursts does not depend on where the edges of the time cut them.
// Oracle: one event a bin, in bursts of 300 each 300 bins: counting says 0.9 or 1.05.
TEST(EventRate, OfBurstsDoesNotDependOnTheEdges) {
  for (std::size_t first = 0; first < 300; first += 7) {
    std::vector<std::uint64_t> bins(2000);
    for (std::size_t at = first; at < bins.size(); at += 300) bins[at] = 300;
    const EventRate rate = estimate_event_rate(bins);
    EXPECT_NEAR(rate.per_bin, 1.0, 1e-9) << first;
    EXPECT_TRUE(rate.settled) << first;
  }
}

// Claim:  without events there is no rate, and of a single burst no error is known.
TEST(EventRate, SaysWhatItCannotTell) {
  std::vector<std::uint64_t> bins(2000);
  const EventRate nothing = estimate_event_rate(bins);
  EXPECT_EQ(nothing.per_bin, 0.0);
  EXPECT_FALSE(nothing.settled);
  bins[700] = 1000;
  const EventRate one = estimate_event_rate(bins);
  EXPECT_DOUBLE_EQ(one.per_bin, 0.5);
  EXPECT_FALSE(one.standard_error);
  EXPECT_FALSE(one.settled);
}

}  // namespace
}  // namespace greynic::statistics
