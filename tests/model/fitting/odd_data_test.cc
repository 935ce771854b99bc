#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>

#include "../plain_law.h"
#include "greynic/model/comparison.h"
#include "greynic/model/design.h"

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

// Claim:  a model differs in nothing from itself, and a device with a slower line differs in its
// line.
TEST(ModelComparison, TellsWhatChanged) {
  const FitOptions options = quick();
  PlainLaw law;
  std::mt19937_64 random(3);
  const auto before = fit(plant(law, 150, 0.01, random), options);
  law.post *= 1.4;
  const auto observations = plant(law, 150, 0.01, random);
  const auto after = fit(observations, options);
  ASSERT_TRUE(before && after);
  const auto same = compare_models(*before->model, *before->model, {});
  ASSERT_TRUE(same) << same.error().message;
  EXPECT_GT(same->settings, 200U);
  for (const auto& [name, d] : same->measures) EXPECT_DOUBLE_EQ(d.worst_ratio, 1.0) << name;
  const auto changed = compare_models(*before->model, *after->model, observations);
  ASSERT_TRUE(changed);
  bool post_apart = false;
  for (const auto& p : changed->parameters) {
    EXPECT_TRUE(p.name != "base_send_us" || !p.apart);
    if (p.name != "post_ns") continue;
    post_apart = p.apart;
    EXPECT_NEAR(p.b / p.a, 1.4, 0.05);
  }
  EXPECT_TRUE(post_apart);
  const auto& judged = changed->measures.at("bandwidth_gbps").judged;
  ASSERT_TRUE(judged);
  EXPECT_GT(judged->error_a, 1.5 * judged->error_b);
}

// Claim:  what a model was fitted on is asked for in factors that a target knows, by the comparison
// and by the campaign that measures more.
TEST(ModelComparison, AndDesignNameKnownFactorsOnly) {
  const FitOptions options = quick();
  std::mt19937_64 random(4);
  const auto known = fit(plant(PlainLaw(), 60, 0.01, random), options);
  const auto other = fit(plant(PlainLaw(), 60, 0.01, random), options);
  ASSERT_TRUE(known && other);
  const auto campaign = campaign_for(*known->model, 20);
  ASSERT_TRUE(campaign) << campaign.error().message;
  EXPECT_FALSE(campaign->factors.empty());
  for (const auto& [name, value] : campaign->baseline.levels())
    EXPECT_NE(find_factor(name), nullptr) << name;
  const auto compared = compare_models(*known->model, *other->model, {});
  ASSERT_TRUE(compared);
  for (const auto& [measure, d] : compared->measures) {
    EXPECT_EQ(d.worst_at.find("requests_in_flight"), std::string::npos) << d.worst_at;
  }
}

// Claim:  intervals by bootstrap and by profile hold the planted value about as often as they say.
// Oracle: plain_law.h. Method: 40 devices, two parameters that the data determine.
TEST(Intervals, HoldPlantedParametersByEveryMethod) {
  for (const Intervals method : {Intervals::kBootstrap, Intervals::kProfile}) {
    int inside = 0;
    int asked = 0;
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
      std::mt19937_64 random(seed);
      const PlainLaw law;
      FitOptions options = quick();
      options.intervals = method;
      options.bootstrap_samples = 200;
      const auto report = fit(plant(law, 100, 0.02, random), options);
      ASSERT_TRUE(report) << report.error().message;
      const std::map<std::string, double> truth = {{"line_gbps", law.line},
                                                   {"post_ns", law.post},
                                                   {"base_send_us", law.base},
                                                   {"qp_packet_ns", law.unit}};
      const auto document = nlohmann::json::parse(report->model->to_json_text());
      for (const auto& parameter : document.at("parameters")) {
        const auto planted = truth.find(parameter.at("name").get<std::string>());
        if (planted == truth.end()) continue;
        ++asked;
        inside += planted->second >= parameter.at("low").get<double>() &&
                          planted->second <= parameter.at("high").get<double>()
                      ? 1
                      : 0;
      }
    }
    fmt::print("method {}: {} of {}\n", static_cast<int>(method), inside, asked);
    EXPECT_GE(inside, 0.88 * asked);
  }
}

// Claim:  a device with few observations is predicted better together with its kin than alone.
// Oracle: plain_law.h; five devices of one family, four measured well, one at eight settings.
TEST(FitTogether, LendsASparseRunWhatItsKinKnow) {
  double alone_error = 0.0;
  double pooled_error = 0.0;
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    std::mt19937_64 random(seed);
    std::normal_distribution<double> normal;
    std::vector<std::vector<Observation>> runs;
    PlainLaw sparse;
    for (int d = 0; d < 5; ++d) {
      PlainLaw law;
      law.encap = 250;  // far from the table's priors, alike in the family
      law.decap = 60;
      law.window = 14;
      for (double* value : {&law.encap, &law.decap, &law.window, &law.base}) {
        *value *= std::exp(0.05 * normal(random));
      }
      runs.push_back(plant(law, d == 4 ? 8 : 120, 0.02, random));
      sparse = law;
    }
    FitOptions options;
    options.form = Form::kPipeline;
    options.cross_validate = false;
    options.starts = 2;
    options.intervals = Intervals::kCovariance;
    const auto alone = fit(runs.back(), options);
    const auto pooled = fit_together(runs, options);
    ASSERT_TRUE(alone) << alone.error().message;
    ASSERT_TRUE(pooled) << pooled.error().message;
    for (const Observation& o : plant(sparse, 100, 0.0, random)) {
      for (const std::string name : {"bandwidth_gbps", "latency_us_p50"}) {
        const auto error = [&](const Model& model) {
          return std::abs(
              std::log(model.predict(o.asked)->measures.at(name).value / *o.value(name)));
        };
        alone_error += error(*alone->model);
        pooled_error += error(*pooled->back().model);
      }
    }
  }
  fmt::print("mean error alone {:.2f} %, together {:.2f} %\n", alone_error / 8, pooled_error / 8);
  EXPECT_LT(pooled_error, 0.8 * alone_error);
}

}  // namespace
}  // namespace greynic::model
