#include "fleet.h"

#include <gtest/gtest.h>

#include "greynic/twin/twin.h"

namespace greynic::twin {
namespace {

std::vector<Observation> measured(const std::string& target,
                                  const std::vector<std::string>& settings) {
  auto twin = create(target);
  EXPECT_TRUE(twin) << twin.error().message;
  std::vector<target::MeasureRequest> requests(settings.size());
  for (std::size_t i = 0; i < settings.size(); ++i) {
    requests[i].configuration = parse_configuration(settings[i]).value();
    requests[i].seed = 11 + i;
  }
  std::vector<Observation> got;
  EXPECT_TRUE((*twin)->measure(requests, [&](std::size_t, Observation o) {
    got.push_back(std::move(o));
    return true;
  }));
  return got;
}

// Claim:  twice the containers on 40,000 RNICs take 87 % of the bandwidth and bring 34 times the
//         latency, without a curve for it anywhere.
// Oracle: the production wall as quoted: 0.4 to 0.8 million containers; +-5 points, +-20 %.
TEST(Fleet, HitsTheProductionWall) {
  const auto seen = measured("twin:cx6?hosts=8000&rnics=40000&threads=1",
                             {"container_count=400000", "container_count=800000"});
  ASSERT_EQ(seen[1].outcome, Outcome::kMeasured) << seen[1].reason;
  const auto ratio = [&](std::string_view name) {
    return *seen[1].value(name) / *seen[0].value(name);
  };
  EXPECT_NEAR(1 - ratio(measure::kBandwidth), 0.87, 0.05);
  EXPECT_NEAR(ratio(measure::kLatencyMean), 34, 0.2 * 34);
  EXPECT_TRUE(seen[0].steady->settled && seen[1].steady->settled);
}

// Claim:  the same seed gives the same observation, whatever the number of threads.
// Oracle: field-by-field comparison.
TEST(Fleet, GivesTheSameForTheSameSeedOnAnyNumberOfThreads) {
  const std::vector<std::string> settings = {"container_count=2000", "container_count=4000",
                                             "container_count=8000", "container_count=16000"};
  const auto one = measured("twin:cx6?hosts=80&rnics=400&threads=1", settings);
  const auto three = measured("twin:cx6?hosts=80&rnics=400&threads=3", settings);
  for (std::size_t i = 0; i < settings.size(); ++i) {
    EXPECT_EQ(one[i].measures, three[i].measures);
    EXPECT_EQ(one[i].counters_after, three[i].counters_after);
    EXPECT_EQ(one[i].latency, three[i].latency);
  }
}

}  // namespace
}  // namespace greynic::twin
