#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>

#include "greynic/model/model.h"

namespace greynic::model {
namespace {

Observation observation(const Configuration& asked, double bandwidth, double latency) {
  Observation o;
  o.asked = asked;
  o.outcome = Outcome::kMeasured;
  o.measures["bandwidth_gbps"] = {bandwidth, std::nullopt};
  o.measures["latency_us_p50"] = {latency, std::nullopt};
  return o;
}

/// True when every number of the document is finite; JSON has null where one was not.
bool all_finite(const nlohmann::json& value) {
  if (value.is_null()) return false;
  if (value.is_number()) return std::isfinite(value.get<double>());
  if (!value.is_structured()) return true;
  for (const auto& part : value) {
    if (!all_finite(part)) return false;
  }
  return true;
}

/// A fit may be refused, but with a reason; a model that comes out answers with numbers.
void expect_sound(const std::vector<Observation>& observations, const std::string& what) {
  for (const Form form :
       {Form::kPipeline, Form::kScalacn, Form::kSurrogate, Form::kCost, Form::kAuto}) {
    FitOptions options;
    options.form = form;
    options.starts = 2;
    options.intervals = form == Form::kPipeline ? Intervals::kProfile : Intervals::kCovariance;
    options.cross_validate = observations.size() < 30;
    const auto report = fit(observations, options);
    const std::string name = fmt::format("{}, form {}", what, static_cast<int>(form));
    if (!report) {
      EXPECT_FALSE(report.error().message.empty()) << name;
      continue;
    }
    EXPECT_TRUE(all_finite(nlohmann::json::parse(report->model->to_json_text()))) << name;
    for (const auto& [measure, r2] : report->r2) EXPECT_TRUE(std::isfinite(r2)) << name << measure;
    for (const Configuration& at :
         {Configuration{},
          Configuration{{"server_decap_masks", 1e5}, {"message_bytes", 2147483648.0}},
          Configuration{{"qp_count", 16777216.0}, {"thread_count", 4096.0}},
          Configuration{{"message_bytes", 0.0}}}) {
      const auto prediction = report->model->predict(at);
      if (!prediction) continue;
      EXPECT_EQ(prediction->extrapolated, prediction->distance > 0.0) << name;
      for (const auto& [measure, p] : prediction->measures) {
        EXPECT_TRUE(std::isfinite(p.value) && std::isfinite(p.low) && std::isfinite(p.high))
            << name << ' ' << measure << ' ' << p.value << ' ' << p.low << ' ' << p.high;
        EXPECT_LE(p.low, p.value) << name << ' ' << measure;
        EXPECT_LE(p.value, p.high) << name << ' ' << measure;
      }
    }
  }
}

// Claim:  no data, however odd, make a fit crash or a model answer with what is no number.
// Method: one observation, all alike, zeros, negatives, huge and tiny values, not-a-numbers, noise.
TEST(OddData, NeverMakesANonNumber) {
  const double inf = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Configuration plain{{"message_bytes", 4096.0}};
  expect_sound({}, "nothing");
  expect_sound({observation(plain, 10, 3)}, "one observation");
  expect_sound(std::vector<Observation>(12, observation(plain, 10, 3)), "all alike");
  expect_sound(std::vector<Observation>(12, observation(plain, 0, 0)), "zeros");
  expect_sound(std::vector<Observation>(12, observation(plain, -5, -1)), "negative");
  expect_sound(std::vector<Observation>(12, observation(plain, nan, inf)), "not numbers");
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> decades(-12.0, 12.0);
  std::vector<Observation> wild;
  std::vector<Observation> huge;
  std::vector<Observation> mixed;
  for (int i = 0; i < 24; ++i) {
    const Configuration at{{"server_decap_masks", static_cast<double>(i % 6 * 5)},
                           {"message_bytes", i % 2 == 0 ? 64.0 : 65536.0},
                           {"qp_count", i % 3 == 0 ? 1.0 : 4096.0}};
    wild.push_back(observation(at, std::pow(10, decades(random)), std::pow(10, decades(random))));
    huge.push_back(observation(at, 1e300, 1e300));
    mixed.push_back(observation(at, i % 4 == 0 ? nan : 1e-300, i % 5 == 0 ? -1.0 : 1e12));
  }
  expect_sound(wild, "24 decades");
  expect_sound(huge, "huge");
  expect_sound(mixed, "tiny and broken");
  Observation bad_factor = observation({{"message_bytes", std::string("many")}}, 10, 3);
  expect_sound({bad_factor, bad_factor, bad_factor, bad_factor, bad_factor}, "a word for a number");
}

}  // namespace
}  // namespace greynic::model
