#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "greynic/model/model.h"

namespace greynic::model {
namespace {

// Claim:  where greynic knows no factor, auto still finds a model, and says by how much.
// Oracle: the function that made the observations.
TEST(AutoForm, FallsBackToASurrogateForUnknownDevices) {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> unit(0.0, 10.0);
  const auto truth = [](double x, double y) { return 20.0 + 10.0 * std::sin(0.5 * x) + y; };
  std::vector<Observation> observations;
  for (int i = 0; i < 80; ++i) {
    Observation o;
    const double x = unit(random);
    const double y = unit(random);
    o.asked = {{"knob_x", x}, {"knob_y", y}};
    o.outcome = Outcome::kMeasured;
    o.measures["bandwidth_gbps"] = {truth(x, y), std::nullopt};
    observations.push_back(std::move(o));
  }
  const auto report = fit(observations, {});
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->model->law(), "surrogate");
  EXPECT_NE(report->findings.front().find("auto chose surrogate"), std::string::npos);
  const auto prediction = report->model->predict({{"knob_x", 4.2}, {"knob_y", 6.1}});
  ASSERT_TRUE(prediction);
  EXPECT_NEAR(prediction->measures.at("bandwidth_gbps").value, truth(4.2, 6.1), 1.0);
}

}  // namespace
}  // namespace greynic::model
