#include "greynic/loop/counter_notes.h"

#include <gtest/gtest.h>

namespace greynic::loop {
namespace {

/// Samples of five milliseconds, at these rates a millisecond.
Observation sampled(double qp_count, const std::map<std::string, double>& rates) {
  Observation one;
  one.asked.set("qp_count", qp_count);
  for (const auto& [name, rate] : rates) {
    for (int ms = 1; ms <= 5; ++ms) {
      one.counter_samples[name].push_back({ms * 1'000'000, 1e6 + ms * rate});
    }
  }
  return one;
}

causal::Explanation one_wall_at(double qp_count) {
  causal::Explanation explanation;
  explanation.baseline.set("qp_count", 1.0);
  explanation.causes.emplace_back();
  causal::Wall wall;
  wall.configuration.set("qp_count", qp_count);
  wall.cause = 0;
  explanation.walls.push_back(wall);
  return explanation;
}

// Claim:  counters that run twice as fast at a cause's walls as at the baseline, or stand still
//         there, are named with both rates, those that stood still first; traffic that falls is
//         not, nor is what other configurations count.
// Oracle: planted rates: 3,000 a second are 3 a millisecond.
TEST(CounterNotes, NameWhatRoseAtTheWalls) {
  const std::vector<Observation> observations = {
      sampled(1, {{"tx_packets", 900}, {"cache_misses", 3}}),
      sampled(8, {{"tx_packets", 800}, {"other", 5000}}),
      sampled(64, {{"tx_packets", 300}, {"cache_misses", 60}, {"pauses", 0.5}})};
  EXPECT_EQ(counter_notes(one_wall_at(64), observations),
            std::vector<std::string>{"counters that rise at the walls of hypothesis 1: pauses "
                                     "(500/s, baseline 0/s), cache_misses (6e+04/s, baseline "
                                     "3e+03/s)"});
}

// Claim:  where either side was not sampled, nothing is said.
TEST(CounterNotes, SayNothingWithoutSamples) {
  const Observation wall = sampled(64, {{"pauses", 5}});
  const Observation unsampled = sampled(1, {});
  EXPECT_TRUE(counter_notes(one_wall_at(64), std::vector{wall, unsampled}).empty());
  EXPECT_TRUE(counter_notes(one_wall_at(64), std::vector{wall}).empty());
  Observation damaged = sampled(1, {{"pauses", 0}});
  damaged.counter_samples["none"] = {};
  EXPECT_FALSE(counter_notes(one_wall_at(64), std::vector{wall, damaged}).empty());
}

}  // namespace
}  // namespace greynic::loop
