#include <gtest/gtest.h>

#include <cmath>

#include "greynic/model/model.h"
#include "greynic/model/published.h"

namespace greynic::model {
namespace {

// Claim:  the scalacn form refitted to samples of each published row returns its function within 1
//         %.
// Oracle: the published coefficients.
TEST(ScalacnForm, ReturnsThePublishedSurfaces) {
  for (const PublishedRow& row : published_rows()) {
    std::vector<Observation> samples;
    for (double l = 0; l <= 20; l += 2) {
      for (double r = 0; r <= 20; r += 2) {
        Observation o;
        o.asked = {{"client_encap_masks", l}, {"server_decap_masks", r}};
        o.outcome = Outcome::kMeasured;
        o.measures["bandwidth_gbps"] = {row.coefficients.bandwidth_gbps(l, r), std::nullopt};
        o.measures["latency_us_p50"] = {row.coefficients.latency_us(l, r), std::nullopt};
        samples.push_back(std::move(o));
      }
    }
    FitOptions options;
    options.form = Form::kScalacn;
    options.cross_validate = false;
    const auto report = fit(samples, options);
    ASSERT_TRUE(report) << row.key << ": " << report.error().message;
    double worst = 0.0;
    for (double l = 0; l <= 20; ++l) {
      for (double r = 0; r <= 20; ++r) {
        const auto prediction =
            report->model->predict({{"client_encap_masks", l}, {"server_decap_masks", r}});
        ASSERT_TRUE(prediction);
        worst = std::max(worst, std::abs(prediction->measures.at("bandwidth_gbps").value /
                                             row.coefficients.bandwidth_gbps(l, r) -
                                         1.0));
        worst = std::max(worst, std::abs(prediction->measures.at("latency_us_p50").value /
                                             row.coefficients.latency_us(l, r) -
                                         1.0));
      }
    }
    EXPECT_LT(worst, 0.01) << row.key;
  }
}

// Claim:  published rows load by name, are clamped to their port, and say so.
TEST(ScalacnForm, ClampsPublishedRowsToTheirPort) {
  const auto cx7 = load("published:cx7");
  ASSERT_TRUE(cx7) << cx7.error().message;
  const auto origin = (*cx7)->predict({});
  ASSERT_TRUE(origin);
  EXPECT_NEAR(origin->measures.at("bandwidth_gbps").value, 400.0 * 1024 / 1156, 0.5);
  EXPECT_FALSE(origin->notes.empty());
  EXPECT_FALSE(load("published:cx9"));
}

}  // namespace
}  // namespace greynic::model
