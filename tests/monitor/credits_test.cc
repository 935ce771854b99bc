#include "greynic/monitor/credits.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

namespace greynic::monitor {
namespace {

// Claim:  the port is kept busy and its queue short, whatever the sizes and delays of answers; no
//         more is under way than the window, but for one job that is larger alone.
// Oracle: a port in virtual time, which gives out a byte each 1/rate and keeps the rest in a queue.
TEST(Credits, KeepAPortBusyAndItsQueueShort) {
  for (const double delay_ns : {2e3, 50e3, 1e6}) {
    CreditOptions options;
    options.base_delay_ns = delay_ns / 3;  // guessed badly
    options.queue_target_ns = delay_ns / 3;
    Credits credits(options);
    std::mt19937_64 random(11);
    constexpr int kJobs = 40000;
    for (std::uint32_t i = 0; i < kJobs; ++i) {
      const auto size = static_cast<std::uint32_t>(512 + random() % 8000);
      credits.add({i, size, static_cast<std::uint8_t>(i % 3), static_cast<double>(i)});
    }
    struct Answer {
      Credits::Job job;
      double asked_ns;
    };
    std::multimap<double, Answer> coming;  // by when it has passed the port
    double now = 0, port_free = 0, longest_queue = 0;
    double begin = 0, end = 0, bytes = 0;  // between the first and the last quarter of the jobs
    int done = 0;
    while (done < kJobs) {
      while (const auto job = credits.next(now)) {
        ASSERT_TRUE(credits.in_flight_bytes() <= credits.window_bytes() || coming.empty());
        const double arrives = now + delay_ns * (1 + 0.02 * static_cast<double>(random() % 3));
        const double passed = std::max(arrives, port_free) + job->bytes / options.bytes_per_ns;
        if (done > kJobs / 4) longest_queue = std::max(longest_queue, port_free - arrives);
        port_free = passed;
        coming.emplace(passed, Answer{*job, now});
      }
      ASSERT_FALSE(coming.empty()) << "nothing is under way and nothing may go";
      const auto first = coming.begin();
      const bool paced = credits.pace_ns() > now && credits.pace_ns() < first->first;
      if (paced && credits.in_flight_bytes() < credits.window_bytes()) {
        now = credits.pace_ns();
        continue;
      }
      now = first->first;
      credits.done(first->second.job, now, now - first->second.asked_ns);
      if (done == kJobs / 4) begin = now;
      if (done > kJobs / 4 && done <= kJobs * 3 / 4) {
        bytes += first->second.job.bytes;
        end = now;
      }
      coming.erase(first);
      ++done;
    }
    EXPECT_TRUE(credits.idle());
    EXPECT_GT(bytes / options.bytes_per_ns / (end - begin), 0.95) << delay_ns;
    EXPECT_LT(longest_queue, options.queue_target_ns + 3 * 8512 / options.bytes_per_ns) << delay_ns;
  }
}

// Claim: the smaller priority goes first, and within one the earlier deadline.
TEST(Credits, FollowPriorityThenDeadline) {
  Credits credits({1e9, 1e9, 1e9, 8});
  std::mt19937_64 random(12);
  for (std::uint32_t i = 0; i < 1000; ++i) {
    credits.add(
        {i, 100, static_cast<std::uint8_t>(random() % 3), static_cast<double>(random() % 97)});
  }
  std::pair<int, double> last{-1, 0};
  int count = 0;
  double now = 0;
  while (const auto job = credits.next(now)) {
    const std::pair<int, double> place{job->priority, job->deadline_ns};
    ASSERT_GE(place, last);
    last = place;
    ++count;
    now += 1;
  }
  EXPECT_EQ(count, 1000);
}

// Claim: a job that fails gives its credit back, and says nothing of the delay.
TEST(Credits, ComeBackFromJobsThatFail) {
  Credits credits({1, 1000, 1200, 8});
  const double before = credits.window_bytes();
  for (std::uint32_t i = 0; i < 100; ++i) credits.add({i, 900, 1, 0});
  double now = 0;
  for (int i = 0; i < 100; ++i) {
    now += 1000;
    const auto job = credits.next(now);
    ASSERT_TRUE(job) << i;
    EXPECT_FALSE(credits.next(now + 1e9)) << "the window is full";
    credits.done(*job, now, 0);
  }
  EXPECT_TRUE(credits.idle());
  EXPECT_EQ(credits.window_bytes(), before);
}

}  // namespace
}  // namespace greynic::monitor
