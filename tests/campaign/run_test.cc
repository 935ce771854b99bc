#include "greynic/campaign/run.h"

#include <gtest/gtest.h>
#include <signal.h>

#include "../results/scratch.h"
#include "greynic/campaign/laboratory.h"
#include "greynic/target/interrupt.h"

namespace greynic::campaign {
namespace {

using greynic::testing::Scratch;
using target::MeasureRequest;

/// Answers at once, in reverse order, and counts what it was asked.
class FakeTarget : public target::Target {
 public:
  target::Info info() const override {
    target::Info info;
    info.name = "fake";
    info.virtual_time = virtual_time;
    info.factors = {"qp_count"};
    return info;
  }
  Result<void> measure(std::span<const MeasureRequest> requests,
                       const target::ObservationSink& sink) override {
    for (std::size_t i = requests.size(); i-- > 0;) {
      ++asked[{requests[i].configuration.name(), requests[i].repeat}];
      Observation observation;
      observation.outcome = i % 7 == 3 ? Outcome::kRefused : Outcome::kMeasured;
      if (i % 7 == 3) observation.reason = i % 2 == 0 ? "it is even" : "it is odd";
      observation.measures["bandwidth_gbps"] = {static_cast<double>(requests[i].seed % 1000), {}};
      observation.measures["other"] = {1.0, {}};
      if (!sink(i, observation)) return {};
      if (--left == 0) return fail(ErrorCode::kMissing, "the device is gone");
    }
    return {};
  }

  bool virtual_time = false;
  int left = -1;  ///< answers until the device is gone
  std::map<results::ObservationKey, int> asked;
};

std::vector<Configuration> plan_of(int count) {
  std::vector<Configuration> plan;
  for (int i = 0; i < count; ++i) plan.push_back({{"qp_count", static_cast<double>(i)}});
  return plan;
}

results::RunStore store_in(const Scratch& scratch) {
  auto store = results::RunStore::open_to_append(scratch / "run.db", {.campaign_text = {},
                                                                      .campaign_name = "c",
                                                                      .target = "fake",
                                                                      .seed = 1,
                                                                      .settings = {},
                                                                      .environment = {}});
  EXPECT_TRUE(store) << store.error().message;
  return std::move(*store);
}

// Claim:  each configuration and repeat is measured once, however often the run is broken off, both
//         when observations are stored one by one and when they share a transaction.
TEST(CampaignRun, MeasuresEachOnceAcrossFailures) {
  for (const bool batched : {false, true}) {
    const Scratch scratch;
    FakeTarget device;
    device.virtual_time = batched;
    const auto plan = plan_of(40);
    RunOptions options;
    options.repeats = 3;
    int calls = 0;
    while (true) {
      auto store = store_in(scratch);
      device.left = 17;
      const auto summary = run(device, plan, store, options);
      ++calls;
      if (!summary) {
        EXPECT_EQ(summary.error().code, ErrorCode::kMissing);
        continue;
      }
      EXPECT_TRUE(summary->complete);
      EXPECT_EQ(summary->total, 120U);
      break;
    }
    EXPECT_EQ(calls, 8);
    EXPECT_EQ(device.asked.size(), 120U);
    for (const auto& [key, times] : device.asked) EXPECT_EQ(times, 1) << key.first;
    auto store = store_in(scratch);
    EXPECT_EQ(store.keys()->size(), 120U);
  }
}

// Claim:  the summary says how often each outcome came, and why what was not measured was not.
// Oracle: of requests 3, 10, 17, 24, 31 and 38, which the device refuses, half are even.
TEST(CampaignRun, CountsReasonsOfWhatWasNotMeasured) {
  const Scratch scratch;
  FakeTarget device;
  auto store = store_in(scratch);
  RunOptions options;
  options.repeats = 1;
  const auto summary = run(device, plan_of(40), store, options);
  ASSERT_TRUE(summary) << summary.error().message;
  EXPECT_EQ(summary->outcomes,
            (std::map<Outcome, std::size_t>{{Outcome::kMeasured, 34}, {Outcome::kRefused, 6}}));
  ASSERT_EQ(summary->reasons.size(), 1U);
  EXPECT_EQ(summary->reasons.at(Outcome::kRefused),
            (std::map<std::string, std::size_t>{{"it is even", 3}, {"it is odd", 3}}));
}

// Claim:  only the measures asked for are kept, and seeds depend on the request alone.
TEST(CampaignRun, KeepsTheMeasuresAskedForAndSeedsByRequest) {
  const Scratch scratch;
  FakeTarget device;
  RunOptions options;
  options.metrics = {"bandwidth_gbps"};
  options.repeats = 1;
  auto store = store_in(scratch);
  ASSERT_TRUE(run(device, plan_of(5), store, options));
  options.repeats = 2;
  const auto summary = run(device, plan_of(9), store, options);
  ASSERT_TRUE(summary);
  EXPECT_EQ(summary->found, 5U);
  EXPECT_EQ(summary->measured, 13U);
  std::set<std::uint64_t> seeds;
  const auto observations = store.observations();
  ASSERT_TRUE(observations);
  for (const Observation& observation : *observations) {
    EXPECT_EQ(observation.measures.size(), 1U);
    EXPECT_EQ(observation.seed, request_seed(1, observation.asked, observation.repeat));
    seeds.insert(observation.seed);
  }
  EXPECT_EQ(seeds.size(), 18U);
}

/// Nothing completes on it in less than a time that grows with the number of QPs.
class SlowTarget : public target::Target {
 public:
  target::Info info() const override { return {}; }
  Result<void> measure(std::span<const MeasureRequest> requests,
                       const target::ObservationSink& sink) override {
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const MeasureRequest& request = requests[i];
      asked.push_back({request.configuration.name(), request.duration});
      Observation observation;
      const auto needed = std::chrono::seconds(1) * request.configuration.number("qp_count");
      observation.outcome = request.duration < needed ? Outcome::kTooShort : Outcome::kMeasured;
      if (!sink(i, observation)) break;
    }
    return {};
  }

  std::vector<std::pair<std::string, std::chrono::nanoseconds>> asked;
};

// Claim:  a configuration of which nothing completed is measured longer, when all else is measured,
//         for 4, 16 and 64 times as long, and its observation says so; what is too short even then
//         is stored as that, once, and is not measured again by the same command.
// Oracle: QPs that need as many seconds as there are of them.
TEST(CampaignRun, MeasuresLongerWhereNothingCompleted) {
  using std::chrono::seconds;
  const Scratch scratch;
  SlowTarget device;
  RunOptions options;
  options.repeats = 1;
  std::vector<std::string> told;
  options.progress = [&](const Progress& progress) {
    told.push_back(progress.latest->asked.name());
  };
  std::vector<Configuration> plan;
  for (const double qp_count : {3, 1, 64, 65}) plan.push_back({{"qp_count", qp_count}});
  {
    auto store = store_in(scratch);
    const auto summary = run(device, plan, store, options);
    ASSERT_TRUE(summary) << summary.error().message;
    EXPECT_TRUE(summary->complete);
    EXPECT_EQ(summary->measured, 4U);
    EXPECT_EQ(summary->outcomes,
              (std::map<Outcome, std::size_t>{{Outcome::kMeasured, 3}, {Outcome::kTooShort, 1}}));
    EXPECT_EQ(told.size(), 4U);
    const decltype(device.asked) expected = {
        {"qp_count=3", seconds(1)},   {"qp_count=1", seconds(1)},   {"qp_count=64", seconds(1)},
        {"qp_count=65", seconds(1)},  {"qp_count=3", seconds(4)},   {"qp_count=64", seconds(4)},
        {"qp_count=65", seconds(4)},  {"qp_count=64", seconds(16)}, {"qp_count=65", seconds(16)},
        {"qp_count=64", seconds(64)}, {"qp_count=65", seconds(64)}};
    EXPECT_EQ(device.asked, expected);
    std::map<std::string, std::string> times;
    const auto stored = store.observations();
    ASSERT_TRUE(stored) << stored.error().message;
    for (const Observation& observation : *stored) {
      const auto said = observation.environment.find("measured_for");
      times[observation.asked.name()] =
          said == observation.environment.end() ? "as asked" : said->second;
    }
    EXPECT_EQ(times, (std::map<std::string, std::string>{{"qp_count=1", "as asked"},
                                                         {"qp_count=3", "4 s"},
                                                         {"qp_count=64", "1 min 4 s"},
                                                         {"qp_count=65", "1 min 4 s"}}));
  }
  auto store = store_in(scratch);
  const auto again = run(device, plan, store, options);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->measured, 0U);
}

// Claim:  no measurement is made longer than two minutes, however long was asked.
TEST(CampaignRun, MeasuresNoLongerThanTwoMinutes) {
  const Scratch scratch;
  SlowTarget device;
  RunOptions options;
  options.repeats = 1;
  options.duration = std::chrono::seconds(10);
  auto store = store_in(scratch);
  const std::vector<Configuration> plan = {{{"qp_count", 1000.0}}};
  ASSERT_TRUE(run(device, plan, store, options));
  ASSERT_EQ(device.asked.size(), 2U);
  EXPECT_EQ(device.asked.back().second, std::chrono::seconds(40));
}

// Claim:  Ctrl-C ends the run after the observation in hand, which is kept.
TEST(CampaignRun, StopsInOrderOnInterrupt) {
  const Scratch scratch;
  FakeTarget device;
  device.virtual_time = true;
  auto store = store_in(scratch);
  RunOptions options;
  options.progress = [](const Progress& progress) {
    if (progress.done == 10) ::raise(SIGINT);
  };
  const auto summary = run(device, plan_of(50), store, options);
  ASSERT_TRUE(summary) << summary.error().message;
  EXPECT_FALSE(summary->complete);
  EXPECT_EQ(summary->measured, 10U);
  EXPECT_EQ(store.keys()->size(), 10U);
  EXPECT_FALSE(target::interrupted());
}

// Claim:  what is to be complete is measured as often as asked and no oftener, whatever a laboratory was asked before and
//         whichever of them it is.
TEST(Laboratory, CompletesWhatIsThere) {
  const Scratch scratch;
  FakeTarget device;
  auto store = store_in(scratch);
  const auto plan = plan_of(3);
  {
    auto first = Laboratory::create(device, store, {});
    ASSERT_TRUE(first);
    ASSERT_TRUE(first->measure(plan[1], 2));
    ASSERT_TRUE(first->complete(plan, 3));
  }
  auto second = Laboratory::create(device, store, {});
  ASSERT_TRUE(second);
  ASSERT_TRUE(second->complete(plan, 3));
  EXPECT_EQ(device.asked.size(), 9U);
  for (const auto& [key, times] : device.asked) EXPECT_EQ(times, 1) << key.first;
}

// Claim:  a factor that the target does not vary is refused by name.
TEST(CampaignRun, RefusesFactorsTheTargetDoesNotVary) {
  Campaign campaign;
  campaign.factors = {Factor{.name = "warp_factor"}};
  const auto checked = check_factors(campaign, FakeTarget().info());
  ASSERT_FALSE(checked);
  EXPECT_NE(checked.error().message.find("warp_factor"), std::string::npos);
  EXPECT_NE(checked.error().message.find("qp_count"), std::string::npos);
}

}  // namespace
}  // namespace greynic::campaign
