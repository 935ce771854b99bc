#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <random>

#include "../plain_law.h"
#include "sized.h"

namespace greynic::model {
namespace {

// Claim:  intervals by bootstrap and by profile hold the planted value about as often as they say.
// Oracle: plain_law.h.
// Method: 40 devices, two parameters that the data determine.
TEST(Intervals, HoldPlantedParametersByEveryMethod) {
  for (const Intervals method : {Intervals::kBootstrap, Intervals::kProfile}) {
    int inside = 0;
    int asked = 0;
    for (std::uint64_t seed = 1; seed <= sized(40U, 6U); ++seed) {
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
    EXPECT_GE(inside, sized(0.88, 0.75) * asked);
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
