/// The threads of a twin that measures many settings at once. A suite of its own, so that the thread
/// sanitizer sees them without the hours that all of the twin takes under it.

#include <gtest/gtest.h>

#include "counter_arena.h"
#include "greynic/twin/twin.h"
#include "sized.h"

namespace greynic::twin {
namespace {

using target::MeasureRequest;

/// What `name` answers, at most `most` of it.
std::vector<Observation> answers(const std::string& name, std::span<const MeasureRequest> requests,
                                 std::size_t most = SIZE_MAX,
                                 const target::CounterArenas& arenas = {}) {
  std::vector<Observation> got;
  auto twin = create(name);
  EXPECT_TRUE(twin) << twin.error().message;
  (*twin)->set_counter_arenas(arenas);
  EXPECT_TRUE((*twin)->measure(requests, [&](std::size_t index, Observation o) {
    EXPECT_EQ(index, got.size());
    got.push_back(std::move(o));
    return got.size() < most;
  }));
  return got;
}

void expect_same(std::span<const Observation> one, std::span<const Observation> other) {
  ASSERT_EQ(one.size(), other.size());
  for (std::size_t i = 0; i < one.size(); ++i) {
    EXPECT_EQ(one[i].outcome, Outcome::kMeasured) << one[i].reason;
    EXPECT_EQ(one[i].measures, other[i].measures);
    EXPECT_EQ(one[i].counters_after, other[i].counters_after);
    EXPECT_EQ(one[i].counter_samples, other[i].counter_samples);
    EXPECT_EQ(one[i].latency, other[i].latency);
  }
}

std::vector<MeasureRequest> twelve() {
  std::vector<MeasureRequest> requests(12);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    requests[i].configuration.set("server_decap_masks", static_cast<double>(3 * i));
    requests[i].configuration.set("qp_count", static_cast<double>(1 + i));
    if (i % 3 == 0) requests[i].configuration.set("offered_rate", 50000.0);
    if (i % 4 == 1) requests[i].sample_every = std::chrono::microseconds(100);
    requests[i].duration = std::chrono::milliseconds(sized(1000, 2));
    requests[i].seed = 100 + i;
  }
  return requests;
}

// Claim:  the same seed gives the same observation, whatever the number of threads.
// Oracle: field-by-field comparison.
// Method: twelve settings measured by one worker, by three, and by more than there are settings.
TEST(Pool, GivesTheSameForTheSameSeedOnAnyNumberOfThreads) {
  const std::vector<MeasureRequest> requests = twelve();
  const auto one = answers("twin:cx6?threads=1", requests);
  expect_same(one, answers("twin:cx6?threads=3", requests));
  expect_same(one, answers("twin:cx6?threads=100", requests));
}

// Claim:  the same holds for a fleet.
TEST(Pool, GivesTheSameOfAFleetOnAnyNumberOfThreads) {
  std::vector<MeasureRequest> requests;
  for (const double containers : {2000, 4000, 8000, 16000}) {
    requests.emplace_back().configuration.set("container_count", containers);
  }
  expect_same(answers("twin:cx6?hosts=80&rnics=400&threads=1", requests),
              answers("twin:cx6?hosts=80&rnics=400&threads=3", requests));
}

// Claim:  who has enough gets no more answers, and those that it got are right.
TEST(Pool, StopsForWhoHasEnough) {
  const std::vector<MeasureRequest> requests = twelve();
  const auto some = answers("twin:cx6?threads=3", requests, 2);
  expect_same(answers("twin:cx6?threads=1", requests, 2), some);
  EXPECT_EQ(some.size(), 2U);
}

// Claim:  measurements that run at the same time have an arena each for their counters, made by the
//         thread that measures.
// Oracle: one after the other.
TEST(Pool, GivesEachMeasurementAnArenaOfItsOwn) {
  std::vector<MeasureRequest> requests(12);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    requests[i].configuration.set("qp_count", static_cast<double>(1 + i));
    requests[i].duration = std::chrono::milliseconds(2);
    requests[i].sample_every = std::chrono::microseconds(100);
  }
  const auto arenas = loop::counter_arenas({});
  const auto one = answers("twin:cx6?threads=1&stop=duration", requests, SIZE_MAX, arenas);
  EXPECT_GT(one.front().counter_samples.size(), 3U);
  expect_same(one, answers("twin:cx6?threads=6&stop=duration", requests, SIZE_MAX, arenas));
}

}  // namespace
}  // namespace greynic::twin
