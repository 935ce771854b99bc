#include "greynic/optimizer/explanation.h"

#include <gtest/gtest.h>

#include "example_rules.h"
#include "greynic/optimizer/optimize.h"
#include "greynic/rules/traffic.h"
#include "random_rules.h"

namespace greynic::optimizer {
namespace {

// Claim:  masks, tables and flows of the example in optimize.h are told as that header says.
// Oracle: worked out by hand there: packets of rules 0 to 3 try 1, 2, 3, 4 matchers, then 1, 2, 1, 2.
TEST(Explanation, TellsTheExampleOfTheHeader) {
  const RuleSet rules = example_rules();
  const Traffic traffic = rules::uniform_traffic(rules, 1);
  const auto made = optimize(rules, traffic);
  ASSERT_TRUE(made) << made.error().message;
  const Explanation told = explain(layout_in_rule_order(rules), made->layout, traffic, 3);

  ASSERT_EQ(told.masks.size(), 2U);
  for (const MaskChange& change : told.masks) {
    const bool first = change.mask == rules.rules[0].match.mask();
    EXPECT_EQ(change.matchers_before, 2U);
    EXPECT_EQ(change.matchers_after, 1U);
    EXPECT_EQ(change.rules, 2U);
    EXPECT_DOUBLE_EQ(change.share, 0.5);
    EXPECT_DOUBLE_EQ(change.tried_before, first ? 2.0 : 3.0);
    EXPECT_DOUBLE_EQ(change.tried_after, first ? 1.0 : 2.0);
  }
  ASSERT_EQ(told.tables.size(), 1U);
  EXPECT_TRUE(told.tables[0].entered);
  EXPECT_DOUBLE_EQ(told.tables[0].share, 1.0);
  EXPECT_DOUBLE_EQ(told.tables[0].tried, 1.5);
  EXPECT_EQ(told.tables[0].ways_in, 0U);

  ASSERT_EQ(told.flows.size(), 3U);  // as many as asked for
  for (std::size_t i = 0; i < told.flows.size(); ++i) {
    EXPECT_DOUBLE_EQ(told.flows[i].share, 0.25);
    EXPECT_EQ(told.flows[i].decided_by, std::vector<std::uint32_t>{static_cast<std::uint32_t>(i)});
    EXPECT_EQ(tried_on(told.flows[i].before), i + 1);
    EXPECT_EQ(tried_on(told.flows[i].after), i % 2 + 1);
  }
}

// Claim:  ways of flows are those of core's lookup, jumps included, and the shares of masks and
//         tables add up to the means of the two layouts.
// Oracle: core's look_up, and cost_of.
TEST(Explanation, AddsUpToTheCostOfBothLayouts) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const RuleSet rules = small_random_rules(60, 4, seed);
    const Traffic traffic = rules::zipf_traffic(rules, 1.1, seed);
    OptimizeOptions options;
    options.max_growth = 3.0;
    const auto made = optimize(rules, traffic, options);
    ASSERT_TRUE(made) << made.error().message;
    const Layout before = layout_in_rule_order(rules);
    const Explanation told = explain(before, made->layout, traffic, traffic.flows.size());
    double tried_before = 0.0;
    double tried_after = 0.0;
    for (const MaskChange& change : told.masks) {
      tried_before += change.share * change.tried_before;
      tried_after += change.share * change.tried_after;
    }
    EXPECT_NEAR(tried_before, made->before.matchers_tried, 1e-9) << "seed " << seed;
    EXPECT_NEAR(tried_after, made->after.matchers_tried, 1e-9) << "seed " << seed;
    double in_tables = 0.0;
    for (const TableRole& table : told.tables) in_tables += table.share * table.tried;
    EXPECT_NEAR(in_tables, made->after.matchers_tried, 1e-9) << "seed " << seed;
    ASSERT_EQ(told.flows.size(), traffic.flows.size());
    for (const FlowChange& flow : told.flows) {
      EXPECT_EQ(tried_on(flow.before), look_up(before, flow.packet).matchers_tried);
      EXPECT_EQ(tried_on(flow.after), look_up(made->layout, flow.packet).matchers_tried);
    }
  }
}

}  // namespace
}  // namespace greynic::optimizer
