#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>

#include "greynic/model/model.h"

namespace greynic::model {
namespace {

struct Switch {
  double base = 90, per_mask = 19, per_byte = 0.15, half = 2000;
  [[nodiscard]] double ns(double masks, double bytes, double flows, bool cache) const {
    const double miss = cache ? 1.0 / (1.0 + std::pow(half / flows, 1.5)) : 1.0;
    return base + per_byte * bytes + miss * per_mask * masks;
  }
};

Configuration configuration(double masks, double bytes, double flows, bool cache) {
  return {{"server_decap_masks", masks},
          {"message_bytes", bytes},
          {"flow_count", flows},
          {"exact_match_cache", cache}};
}

std::vector<Observation> measure(const Switch& device, int count, double scatter,
                                 std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  const auto pick = [&](const std::vector<double>& from) {
    return from[std::uniform_int_distribution<std::size_t>(0, from.size() - 1)(random)];
  };
  std::vector<Observation> observations;
  for (int i = 0; i < count; ++i) {
    const double masks = pick({1, 2, 5, 10, 40, 80, 160});
    const double bytes = pick({22, 256, 1024});
    const double flows = pick({320, 1280, 4096, 8192});
    const bool cache = i % 2 == 0;
    Observation o;
    o.asked = configuration(masks, bytes, flows, cache);
    o.outcome = Outcome::kMeasured;
    const double value = device.ns(masks, bytes, flows, cache) * std::exp(scatter * normal(random));
    o.measures["packet_cost_ns"] = {value, scatter * value};
    observations.push_back(std::move(o));
  }
  return observations;
}

// Claim:  what a packet costs is predicted within 3 % at masks that were not measured, with and
//         without a flow cache, and auto chooses the law for it.
// Oracle: the switch that made the observations.
TEST(CostLaw, PredictsUnseenMasks) {
  const Switch device;
  const auto report = fit(measure(device, 120, 0.02, 4), {});
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->model->law(), "cost");
  EXPECT_GT(report->r2.at("packet_cost_ns"), 0.99);
  for (const double masks : {3.0, 25.0, 120.0}) {
    for (const bool cache : {false, true}) {
      const auto prediction = report->model->predict(configuration(masks, 256, 2500, cache));
      ASSERT_TRUE(prediction);
      const PredictedMeasure& measure = prediction->measures.at("packet_cost_ns");
      const double truth = device.ns(masks, 256, 2500, cache);
      EXPECT_NEAR(measure.value / truth, 1.0, 0.03) << masks << ' ' << cache;
      EXPECT_LE(measure.low, truth);
      EXPECT_GE(measure.high, truth);
      EXPECT_FALSE(prediction->extrapolated);
    }
  }
}

// Claim:  the file gives back the same answers, and a question far outside says so.
TEST(CostLaw, SurvivesItsFile) {
  const auto report = fit(measure({}, 60, 0.02, 5), {.form = Form::kCost});
  ASSERT_TRUE(report);
  const std::string path = testing::TempDir() + "greynic_cost_roundtrip.json";
  std::ofstream(path) << report->model->to_json_text();
  const auto again = load(path);
  std::filesystem::remove(path);
  ASSERT_TRUE(again) << again.error().message;
  const Configuration far = configuration(1600, 22, 320, false);
  const auto before = report->model->predict(far);
  const auto after = (*again)->predict(far);
  ASSERT_TRUE(before && after);
  EXPECT_TRUE(after->extrapolated);
  EXPECT_GT(after->distance, 5.0);
  EXPECT_DOUBLE_EQ(before->measures.at("packet_cost_ns").high,
                   after->measures.at("packet_cost_ns").high);
  EXPECT_FALSE((*again)->predict({{"server_decap_masks", -1.0}}));
}

// Claim:  too few observations are refused with what is missing.
TEST(CostLaw, RefusesTooFewObservations) {
  const auto report = fit(measure({}, 4, 0.02, 6), {.form = Form::kCost});
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::kTooFewPoints);
}

// Claim:  "too few points" and "nothing measured that the law is for" are two errors.
TEST(CostLaw, TellsAMissingMeasureFromTooFewPoints) {
  auto observations = measure({}, 60, 0.02, 6);
  for (Observation& observation : observations) observation.measures.clear();
  for (const Form form : {Form::kCost, Form::kPipeline, Form::kScalacn}) {
    const auto report = fit(observations, {.form = form});
    ASSERT_FALSE(report);
    EXPECT_EQ(report.error().code, ErrorCode::kNotMeasured) << report.error().message;
  }
}

}  // namespace
}  // namespace greynic::model
