#include "greynic/loop/gain.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "greynic/files/json_file.h"

namespace greynic::loop {
namespace {

Layout layout_of(std::uint32_t tables) {
  Layout layout;
  for (std::uint32_t id = 0; id < tables; ++id) layout.tables.push_back({.id = id, .matchers = {}});
  return layout;
}

/// Holds the layout that was installed last; the factory layout has no table.
class Holder final : public target::RuleHolder {
 public:
  Result<void> check(const target::FittedLayout&, const target::Placement&) override { return {}; }
  Result<void> install(const target::FittedLayout& layout, const Traffic*,
                       const target::Placement&) override {
    tables = layout.layout().tables.size();
    return {};
  }
  Result<void> roll_back() override {
    tables = 0;
    return {};
  }

  std::size_t tables = 0;
};

/// A device that drifts: pair i measures drift[i] with the old layout of one table, and ratio[i]
/// times as much with the new one of two.
class Device final : public target::Target {
 public:
  target::Info info() const override { return {.name = "fake"}; }
  target::RuleHolder& rules() override { return holder; }
  Result<void> measure(std::span<const target::MeasureRequest> requests,
                       const target::ObservationSink& sink) override {
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const auto pair = static_cast<std::size_t>(requests[i].repeat);
      Observation observation;
      observation.asked = requests[i].configuration;
      if (pair == refused_pair) {
        observation.outcome = Outcome::kRefused;
        observation.reason = "ENOMEM";
      } else {
        observation.outcome = Outcome::kMeasured;
        const double value = drift.at(pair) * (holder.tables == 2 ? ratio.at(pair) : 1.0);
        observation.measures["bandwidth_gbps"] = {value, {}};
        observation.measures["latency_us_p50"] = {100.0 / value, {}};
      }
      if (!sink(i, std::move(observation))) break;
    }
    return {};
  }

  Holder holder;
  std::vector<double> drift = {10.0, 12.0, 8.0, 11.0, 9.0};
  std::vector<double> ratio = {2.0, 2.1, 1.9, 2.0, 2.05};
  std::size_t refused_pair = 99;
};

struct Question {
  explicit Question(Device& device)
      : before(device.holder.fit(layout_of(1))), after(device.holder.fit(layout_of(2))) {
    asked.before = &before;
    asked.after = &after;
    asked.metric = "bandwidth_gbps";
    asked.pairs = 5;
  }
  target::FittedLayout before;
  target::FittedLayout after;
  GainQuestion asked;
};

// Claim:  the gain is the planted ratio, whatever the device drifts by, with Student's t around it.
// Oracle: the formula by hand over the logarithms of the five planted ratios; the 97.5 % quantile
//         of t with 4 degrees of freedom is 2.776445 (any table of it).
TEST(Gain, IsThePlantedRatioWithItsInterval) {
  Device device;
  const Question question(device);
  const auto gain = measure_gain(device, question.asked, /*keep=*/false, {});
  ASSERT_TRUE(gain) << gain.error().message;

  double middle = 0.0;
  for (const double ratio : device.ratio) middle += std::log(ratio) / 5.0;
  double squares = 0.0;
  for (const double ratio : device.ratio) squares += std::pow(std::log(ratio) - middle, 2);
  const double half = 2.776445105 * std::sqrt(squares / 4.0 / 5.0);
  EXPECT_NEAR(gain->ratio, std::exp(middle), 1e-12);
  EXPECT_NEAR(gain->ratio_low, std::exp(middle - half), 1e-8);
  EXPECT_NEAR(gain->ratio_high, std::exp(middle + half), 1e-8);
  EXPECT_NEAR(gain->before, std::pow(10.0 * 12.0 * 8.0 * 11.0 * 9.0, 0.2), 1e-9);
  EXPECT_NEAR(gain->after, gain->before * gain->ratio, 1e-9);
  EXPECT_NEAR(gain->measures_before.at("bandwidth_gbps"), 10.0, 1e-12);
  EXPECT_EQ(gain->measures_after.size(), 2U);
  EXPECT_EQ(gain->pairs, 5);
}

// Claim:  a prediction is refuted when its interval and that of the measurement have nothing in common; not for want of
//         an interval where the values agree to 1 %, and not in measures that only one side has.
// Oracle: by hand: 10 (9..11) and 20 (18..22) give 2 with a factor of exp(hypot(log(11/9), log(22/18)) / 2) = 1.1525
//         either way.
TEST(Gain, SaysWhatTheMeasurementRefutes) {
  model::Prediction before, after;
  before.measures = {
      {"bandwidth_gbps", {10, 9, 11}}, {"latency_us_p50", {8, 8, 8}}, {"pause", {1, 1, 1}}};
  after.measures = {{"bandwidth_gbps", {20, 18, 22}}, {"latency_us_p50", {4, 4, 4}}};
  const auto judged = [&](const Ratio& bandwidth, const Ratio& latency) {
    Gain gain;
    gain.ratios = {
        {"bandwidth_gbps", bandwidth}, {"latency_us_p50", latency}, {"pause", {1, 1, 1}}};
    return forecasts(before, after, gain);
  };
  const auto agree = judged({2.2, 2.19, 2.21}, {0.504, 0.503, 0.505});
  ASSERT_EQ(agree.size(), 2U);
  EXPECT_NEAR(agree.at("bandwidth_gbps").predicted.high, 2.0 * 1.15249, 1e-4);
  EXPECT_NEAR(agree.at("bandwidth_gbps").predicted.low, 2.0 / 1.15249, 1e-4);
  EXPECT_FALSE(agree.at("bandwidth_gbps").refuted);
  EXPECT_FALSE(agree.at("latency_us_p50").refuted);
  const auto differ = judged({2.4, 2.31, 2.49}, {0.51, 0.506, 0.514});
  EXPECT_TRUE(differ.at("bandwidth_gbps").refuted);
  EXPECT_TRUE(differ.at("latency_us_p50").refuted);
  EXPECT_FALSE(judged({2.4, 2.30, 2.5}, {0.5, 0.5, 0.5}).at("bandwidth_gbps").refuted);
}

// Claim:  the device ends with the rules that it had, or with the new layout when that is to be
//         kept.
TEST(Gain, LeavesTheRulesThatWereAskedFor) {
  for (const bool keep : {false, true}) {
    Device device;
    const Question question(device);
    ASSERT_TRUE(measure_gain(device, question.asked, keep, {}));
    EXPECT_EQ(device.holder.tables, keep ? 2U : 0U);
  }
}

// Claim:  a test that gives no number ends it with the reason, and the old rules come back.
TEST(Gain, GivesBackTheRulesWhenATestIsNoMeasurement) {
  Device device;
  device.refused_pair = 3;
  const Question question(device);
  const auto gain = measure_gain(device, question.asked, /*keep=*/true, {});
  ASSERT_FALSE(gain);
  EXPECT_EQ(gain.error().code, ErrorCode::kRefused);
  EXPECT_NE(gain.error().message.find("ENOMEM"), std::string::npos) << gain.error().message;
  EXPECT_EQ(device.holder.tables, 0U);
}

// Claim:  what a run keeps of a gain is what its schema and docs/formats/gain.md say.
TEST(Gain, IsKeptAsItsSchemaSays) {
  Device device;
  const Question question(device);
  const auto gain = measure_gain(device, question.asked, /*keep=*/false, {});
  ASSERT_TRUE(gain) << gain.error().message;
  for (const std::optional<double> predicted : {std::optional<double>(), std::optional(19.5)}) {
    std::map<std::string, Forecast> said;
    if (predicted) said["bandwidth_gbps"] = {{2.0, 1.9, 2.1}, {3.0, 2.9, 3.1}, true};
    const auto document =
        nlohmann::json::parse(to_json_text(*gain, question.asked, predicted, said));
    const auto checked = files::check_schema(document, "gain", "kept");
    EXPECT_TRUE(checked) << checked.error().message;
    EXPECT_EQ(document.contains("predicted"), predicted.has_value());
    EXPECT_EQ(document.contains("forecasts"), predicted.has_value());
    EXPECT_DOUBLE_EQ(document.at("ratio").at("value").get<double>(), gain->ratio);
  }
}

}  // namespace
}  // namespace greynic::loop
