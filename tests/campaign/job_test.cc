#include "greynic/campaign/job.h"

#include <gtest/gtest.h>

#include "../results/scratch.h"

namespace greynic::campaign {
namespace {

using greynic::testing::Scratch;

/// Takes any factor and measures nothing: what is tested here comes before.
class IdleTarget : public target::Target {
 public:
  target::Info info() const override { return {}; }
  Result<void> measure(std::span<const target::MeasureRequest> /*requests*/,
                       const target::ObservationSink& /*sink*/) override {
    return {};
  }
};

class TwoSeeds : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    target::register_kind(
        {.name = "idle",
         .open = [](const target::Spec&) -> Result<std::unique_ptr<target::Target>> {
           return std::make_unique<IdleTarget>();
         },
         .probe = [] { return std::vector<target::Candidate>(); }});
  }

  Prepared prepare_with(std::uint64_t seed, std::optional<std::uint64_t> plan_seed,
                        std::optional<std::uint64_t> measure_seed) {
    Job job;
    job.file = campaign_;
    job.target = "idle:here";
    job.out = scratch_ / "run.db";
    job.seed = seed;
    job.plan_seed = plan_seed;
    job.measure_seed = measure_seed;
    auto prepared = prepare(job);
    EXPECT_TRUE(prepared) << prepared.error().message;
    return std::move(*prepared);
  }

  const Scratch scratch_;
  const std::string campaign_ = scratch_.write("c.json", R"({
    "version": 1, "name": "seeds",
    "factors": { "a": { "type": "numeric", "levels": [1,2,3,4,5,6,7,8,9,10] },
                 "b": { "type": "numeric", "levels": [1,2,3,4,5,6,7,8,9,10] } },
    "design": { "random": 20 }, "baseline": { "a": 1, "b": 1 },
    "wall": { "metric": "bandwidth_gbps", "below_baseline_by": 0.2 },
    "measure": { "repeats": 1, "seconds": 1 } })");
};

// Claim:  one plan can be measured under another seed, and another plan under the same; `seed`
//         stands for whichever of the two is not given.
TEST_F(TwoSeeds, ChooseThePlanAndTheMeasurementsApart) {
  const Prepared both = prepare_with(3, {}, {});
  const Prepared measured_again = prepare_with(3, {}, 4);
  const Prepared planned_again = prepare_with(3, 5, {});
  EXPECT_EQ(measured_again.plan.configurations, both.plan.configurations);
  EXPECT_NE(planned_again.plan.configurations, both.plan.configurations);
  EXPECT_EQ(options_of(both).seed, 3U);
  EXPECT_EQ(options_of(measured_again).seed, 4U);
  EXPECT_EQ(options_of(planned_again).seed, 3U);
}

// Claim:  a run goes on under both of its seeds and under no others; where they are the same it
//         does not matter how they were given, so runs of before go on as well.
TEST_F(TwoSeeds, BothBelongToTheRun) {
  const auto goes_on = [&](const Prepared& prepared) { return start(prepared).has_value(); };
  ASSERT_TRUE(goes_on(prepare_with(1, 3, 4)));
  EXPECT_TRUE(goes_on(prepare_with(3, {}, 4)));
  EXPECT_FALSE(goes_on(prepare_with(1, 3, 5)));
  EXPECT_FALSE(goes_on(prepare_with(1, 5, 4)));
  EXPECT_FALSE(goes_on(prepare_with(4, {}, {})));
  std::filesystem::remove(scratch_ / "run.db");
  ASSERT_TRUE(goes_on(prepare_with(7, {}, {})));
  EXPECT_TRUE(goes_on(prepare_with(1, 7, 7)));
}

}  // namespace
}  // namespace greynic::campaign
