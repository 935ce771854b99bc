// The rings between an application and its broker.

#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "greynic/broker/local.h"

namespace greynic::broker::local {
namespace {

struct Ring {
  alignas(64) std::byte bytes[kDataAt] = {};
  Places* places = new (bytes) Places();
  RequestWriter writer{bytes + kRequestsAt, places->request_written, places->request_read};
  RequestReader reader{bytes + kRequestsAt, places->request_written, places->request_read};
};

// Claim:  what one thread writes the other reads, once and in order, and neither overtakes.
TEST(BrokerRing, CarriesRecordsInOrder) {
  const auto ring = std::make_unique<Ring>();
  constexpr std::uint64_t kCount = 300000;
  std::thread writer([&] {
    for (std::uint64_t i = 0; i < kCount;) {
      if (!ring->writer.has_room()) {
        std::this_thread::yield();
        continue;
      }
      ring->writer.write({.kind = RequestKind::kSend, .value = i++});
    }
  });
  std::uint64_t next = 0;
  while (next < kCount) {
    std::uint32_t waiting = ring->reader.waiting();
    ASSERT_LE(waiting, kRequests);
    if (waiting == 0) std::this_thread::yield();
    for (; waiting > 0; --waiting) ASSERT_EQ(ring->reader.read().value, next++);
    ring->reader.release();
  }
  writer.join();
  EXPECT_EQ(ring->reader.waiting(), 0U);
}

// Claim:  a side that sleeps is woken once, and one that does not sleep never.
TEST(BrokerRing, WakesOnlyWhoSleeps) {
  const auto ring = std::make_unique<Ring>();
  EXPECT_FALSE(must_wake(ring->places->broker_sleeps));
  say_asleep(ring->places->broker_sleeps);
  EXPECT_TRUE(must_wake(ring->places->broker_sleeps));
  EXPECT_FALSE(must_wake(ring->places->broker_sleeps));
}

// Claim:  who sleeps through kSent on its word is not woken by it, and whoever wakes it learns where it sleeps.
TEST(BrokerRing, TellsWhereOneSleeps) {
  const auto ring = std::make_unique<Ring>();
  std::atomic<std::uint32_t>& word = ring->places->application_sleeps;
  say_asleep(word, Sleep::kThroughSent, kOnWord);
  EXPECT_EQ(must_wake(word, true), 0U);
  EXPECT_EQ(depth_of(word), Sleep::kThroughSent);
  EXPECT_NE(must_wake(word) & kOnWord, 0U);
  EXPECT_EQ(word, 0U);
  say_asleep(word);
  EXPECT_EQ(must_wake(word, true), static_cast<std::uint32_t>(Sleep::kLight));
}

// Claim:  places that cannot be are seen, at both ends.
TEST(BrokerRing, SeesPlacesThatCannotBe) {
  const auto ring = std::make_unique<Ring>();
  ring->places->request_written = kRequests + 1;
  EXPECT_GT(ring->reader.waiting(), kRequests);
  ring->places->request_read = 1;
  EXPECT_TRUE(ring->writer.has_room());
  EXPECT_TRUE(ring->writer.broken());
}

}  // namespace
}  // namespace greynic::broker::local
