#include "greynic/verbs/patience.h"

#include <gtest/gtest.h>

namespace greynic::verbs {
namespace {

using std::chrono::seconds;

/// Asks until it is there or no further look is wanted; a look takes a second. How many it took.
int looks(Patience& patience, std::chrono::nanoseconds& now, bool there) {
  patience.begin();
  for (int count = 1;; ++count) {
    now += seconds(1);
    if (there) patience.found();
    if (there || !patience.look_again()) return count;
  }
}

// Claim:  what stays away is waited for once, for the whole limit, and then looked for once at each
//         asking; when it was there again it is waited for again.
// Oracle: counted looks, by a clock that only the test moves.
TEST(Patience, WaitsOnceForWhatStaysAway) {
  std::chrono::nanoseconds now{};
  Patience patience(seconds(10), [&] { return now; });
  EXPECT_EQ(looks(patience, now, false), 10);
  for (int i = 0; i < 200; ++i) EXPECT_EQ(looks(patience, now, false), 1);
  EXPECT_EQ(looks(patience, now, true), 1);
  EXPECT_EQ(looks(patience, now, false), 10);
  EXPECT_EQ(looks(patience, now, false), 1);
}

}  // namespace
}  // namespace greynic::verbs
