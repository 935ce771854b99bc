#include "stages/calendar_queue.h"

#include <gtest/gtest.h>

#include "greynic/statistics/random.h"

namespace greynic::twin {
namespace {

// Claim:  events come in the order of time, and of insertion where times are equal.
// Oracle: the heap.
// Method: loads that a network has: a few events or many, close together and far apart, at the same
//         time, before what is due, and after the queue has run empty.
TEST(CalendarQueue, GivesEventsInTheOrderOfTheHeap) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    statistics::Random random(seed);
    CalendarQueue calendar;
    EventQueue heap;
    Time now = 0;
    const auto push = [&](Time time) {
      const auto subject = static_cast<std::uint32_t>(random.next());
      calendar.push(time, 1, subject, 2);
      heap.push(time, 1, subject, 2);
    };
    const std::uint32_t wanted = seed % 4 == 0 ? 20000 : seed % 4 == 1 ? 3 : 200;
    const double spread = seed % 5 == 0 ? 0 : seed % 3 == 0 ? 0.01 : seed % 3 == 1 ? 500 : 1e7;
    std::uint32_t held = 0;
    for (int step = 0; step < 60000; ++step) {
      const bool drains = step / 10000 % 2 == 1;
      while (!drains && held < wanted) {
        const double kind = random.uniform();
        push(kind < 0.2   ? now
             : kind < 0.9 ? now + random.uniform() * spread
                          : now + 67e6 * random.uniform());
        ++held;
      }
      if (held == 0) {
        ASSERT_TRUE(calendar.empty());
        ASSERT_EQ(calendar.next_time(), kNever);
        continue;
      }
      ASSERT_EQ(calendar.next_time(), heap.next_time()) << "seed " << seed << ", step " << step;
      if (random.uniform() < 0.1) push(now), ++held;  // before what was looked at
      const Event a = calendar.pop(), b = heap.pop();
      ASSERT_EQ(a.order, b.order) << "seed " << seed << ", step " << step;
      ASSERT_EQ(a.subject, b.subject);
      ASSERT_EQ(a.time, b.time);
      now = a.time;
      --held;
    }
  }
}

}  // namespace
}  // namespace greynic::twin
