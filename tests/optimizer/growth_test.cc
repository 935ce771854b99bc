#include "greynic/optimizer/growth.h"

#include <gtest/gtest.h>

#include <charconv>

#include "greynic/rules/made_filters.h"
#include "greynic/rules/read_rules.h"
#include "greynic/rules/traffic.h"
#include "greynic/verify/verify.h"
#include "random_rules.h"
#include "sized.h"

namespace greynic::optimizer {
namespace {

// Claim:  more growth is never worse, each point keeps to its growth, and the layout is that of the
//         point where rules times matchers tried is least.
// Oracle: the layout, costed again and judged by the verifier.
TEST(Growth, GivesACurveThatOnlyFallsAndTakesItsKnee) {
  for (const char* family : {"acl", "fw", "ipc"}) {
    const auto text = rules::made_filters({family, sized(150, 60), 5});
    ASSERT_TRUE(text) << text.error().message;
    const auto rules = rules::parse_rules(*text, family, rules::Format::kClassbench);
    ASSERT_TRUE(rules) << rules.error().message;
    const Traffic traffic = rules::uniform_traffic(*rules, 1);
    std::size_t heard = 0;
    const auto curve =
        optimize_at_knee(*rules, traffic, {}, [&](const GrowthPoint&, std::size_t) { ++heard; });
    ASSERT_TRUE(curve) << curve.error().message;
    EXPECT_EQ(heard, curve->points.size());
    const auto price = [](const GrowthPoint& point) {
      return static_cast<double>(point.rules) * point.matchers_tried;
    };
    for (std::size_t i = 0; i < curve->points.size(); ++i) {
      const GrowthPoint& point = curve->points[i];
      EXPECT_LE(static_cast<double>(point.rules),
                point.growth * static_cast<double>(rules->rules.size()));
      EXPECT_LE(price(curve->points[curve->knee]), price(point)) << family << " at " << i;
      if (i == 0) continue;
      EXPECT_GT(point.growth, curve->points[i - 1].growth);
      EXPECT_LE(point.matchers_tried, curve->points[i - 1].matchers_tried) << family;
    }
    const LayoutCost again = cost_of(curve->layout.layout, traffic);
    EXPECT_DOUBLE_EQ(again.matchers_tried, curve->points[curve->knee].matchers_tried);
    EXPECT_EQ(again.rules, curve->points[curve->knee].rules);
    const auto verdict = verify::verify(*rules, curve->layout.layout);
    ASSERT_TRUE(verdict) << verdict.error().message;
    EXPECT_TRUE(verdict->equivalent) << family;
  }
}

/// How many pairs the notes of a layout speak of.
std::size_t pairs_noted(const OptimizedLayout& made) {
  std::size_t pairs = 0;
  for (const std::string& note : made.notes) {
    if (note.find("have equal priority") != std::string::npos) ++pairs;
    std::size_t more = 0;
    if (note.starts_with("so do ") &&
        std::from_chars(note.data() + 6, note.data() + note.size(), more).ec == std::errc{}) {
      pairs += more;
    }
  }
  return pairs;
}

// Claim:  every pair of rules of equal priority that overlap and do different things is told of.
// Oracle: all pairs, one by one.
TEST(EqualPriorities, AreToldOfWhereTheyMatter) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const RuleSet rules = small_random_rules(24, 3, seed, 2);
    std::size_t wanted = 0;
    for (std::size_t i = 0; i < rules.rules.size(); ++i) {
      for (std::size_t j = i + 1; j < rules.rules.size(); ++j) {
        const FlowRule& a = rules.rules[i];
        const FlowRule& b = rules.rules[j];
        wanted += a.table == b.table && a.priority == b.priority && a.actions != b.actions &&
                  a.match.overlaps(b.match);
      }
    }
    const auto made = optimize(rules, rules::uniform_traffic(rules, seed));
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_EQ(pairs_noted(*made), wanted) << "seed " << seed;
  }
}

}  // namespace
}  // namespace greynic::optimizer
