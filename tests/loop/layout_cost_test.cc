#include "greynic/loop/layout_cost.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "../optimizer/example_rules.h"
#include "greynic/files/json_file.h"
#include "greynic/rules/traffic.h"

namespace greynic::loop {
namespace {

// Claim:  what is printed of a layout is what its schema says, with a model and without, and the
//         numbers are those of the example.
// Oracle: the schema; the example is worked out by hand in optimize.h.
TEST(LayoutCost, IsPrintedAsItsSchemaSays) {
  const RuleSet rules = example_rules();
  for (const bool predicts : {false, true}) {
    optimizer::OptimizeOptions options;
    if (predicts) {
      options.cost = [](const model::MaskShares& shares) {
        double tried = 0;
        for (const auto& [matchers, share] : shares) tried += matchers * share;
        model::Prediction prediction;
        prediction.measures["bandwidth_gbps"] = {100.0 / tried, 90.0 / tried, 110.0 / tried};
        prediction.law = "made up";
        return Result<model::Prediction>(prediction);
      };
    }
    const auto made = optimizer::optimize(rules, rules::uniform_traffic(rules, 1), options);
    ASSERT_TRUE(made) << made.error().message;
    nlohmann::json document = to_json(*made, "four.rules", "uniform");
    const auto checked = files::check_schema(document, "optimization", "printed");
    EXPECT_TRUE(checked) << checked.error().message;
    EXPECT_EQ(document.at("entries").at("input"), 4);
    EXPECT_EQ(document.at("entries").at("layout"), 4);
    EXPECT_EQ(document.at("bound").at("matchers"), 2);
    EXPECT_DOUBLE_EQ(document.at("after").at("matchers_tried_mean").get<double>(), 1.5);
    EXPECT_EQ(document.at("after").contains("predicted"), predicts);
    document["seconds"] = "soon";
    EXPECT_FALSE(files::check_schema(document, "optimization", "printed"));
  }
}

}  // namespace
}  // namespace greynic::loop
