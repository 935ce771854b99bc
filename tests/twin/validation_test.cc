#include "greynic/twin/validation.h"

#include <gtest/gtest.h>

#include "parameters.h"

namespace greynic::twin {
namespace {

class PublishedCurves : public testing::TestWithParam<std::string> {};

// Claim:  every curve published for an RNIC is reproduced within the band that was accepted for it.
// Oracle: the published numbers (docs/twin/validation.md), typed in beside the experiments.
// Method: the experiment behind each curve, run on the twin with a seed that nothing was tuned to.
TEST_P(PublishedCurves, AreReproducedWithinTheirBands) {
  const auto report = validate(GetParam(), /*seed=*/20260101);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_FALSE(report->rows.empty());
  for (const CheckRow& row : report->rows) {
    EXPECT_TRUE(row.passed()) << "item " << row.item << ", " << row.curve << ": twin " << row.twin
                              << ", published " << row.published << ", accepted " << row.low
                              << " to " << row.high;
  }
  EXPECT_LT(report->free_parameter_count, report->published_point_count);
  for (const Picture& picture : report->pictures) {
    EXPECT_NE(picture.to_svg().find("</svg>"), std::string::npos);
  }
}

INSTANTIATE_TEST_SUITE_P(All, PublishedCurves, testing::ValuesIn(embedded_model_names()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace greynic::twin
