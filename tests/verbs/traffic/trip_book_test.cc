#include "traffic/trip_book.h"

#include <gtest/gtest.h>

#include <random>

namespace greynic::verbs {
namespace {

// Claim:  every trip that is back within the measured time is in histogram and rate, once, however
//         the entering falls.
// Oracle: a histogram and bins that are told of each trip at once.
// Method: random trips, some before the measured time, entered when the book is full and now and
//         then between.
TEST(TripBook, EntersEachTripOnce) {
  constexpr unsigned kSeed = 7;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  std::mt19937_64 random(kSeed);
  for (const std::int64_t parts : {1, 2}) {
    constexpr std::int64_t kBegin = 1'000'000;
    constexpr std::int64_t kEnd = 9'000'000;
    TripBook book(kBegin, kEnd, parts);
    LatencyHistogram expected;
    CompletionBins bins(kBegin, kEnd);
    std::int64_t now = 0;
    while (now < kEnd) {
      const std::int64_t sent = now;
      now += static_cast<std::int64_t>(random() % 2000);
      book.note(sent, now);
      if (now >= kBegin) {
        expected.record(static_cast<std::uint64_t>(now - sent) / static_cast<std::uint64_t>(parts));
        bins.add(now, 1);
      }
      if (book.full() || random() % 500 == 0) book.enter();
      ASSERT_FALSE(book.full());
    }
    book.enter();
    EXPECT_GT(expected.count(), 1000U);
    EXPECT_EQ(book.latency(), expected);
    EXPECT_EQ(book.rate().per_second, bins.rate().per_second);
    EXPECT_EQ(book.rate().standard_error, bins.rate().standard_error);
  }
}

}  // namespace
}  // namespace greynic::verbs
