/// Planted bugs and harmless rewrites, in layouts of every kind.

#include "planted.h"

#include "../optimizer/nightly.h"
#include "greynic/optimizer/mask_curve.h"
#include "greynic/optimizer/optimize.h"
#include "greynic/optimizer/split.h"
#include "greynic/rules/traffic.h"
#include "sized.h"

namespace greynic::verify {
namespace {

// Claim:  the verdict is right for whole and for broken layouts, and each counterexample shows it.
// Oracle: core's slow lookup of all 1,024 packets.
// Method: 1,000 layouts of random overlapping sets (20,000 by night), one table or many with shared
//         ones among them, broken in five ways, or rewritten four times so that they stay right.
TEST(Verify, FindsEveryPlantedBugAndNoOther) {
  Judged judged;
  const auto cases = static_cast<std::uint64_t>(more_by_night(1000, 20'000));
  for (std::uint64_t seed = 1; seed <= cases; ++seed) {
    std::mt19937_64 random(seed);
    const RuleSet rules = small_random_rules(8 + seed % 70, 2 + seed % 10, seed);
    optimizer::OptimizeOptions options;
    options.single_table = seed % 2 == 0;
    options.max_growth = 4.0;
    const auto made = optimizer::optimize(rules, rules::uniform_traffic(rules, seed), options);
    ASSERT_TRUE(made) << "seed " << seed << ": " << made.error().message;
    judge_rewritten_and_broken(rules, made->layout, random, judged);
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
  }
  EXPECT_GT(judged.different, static_cast<int>(cases / 3));  // the planted bugs are real ones
  EXPECT_GT(judged.rewrites, static_cast<int>(cases / 2));
}

// Claim:  the same for layouts that are split between hardware and slow path, of which some entries
//         may leave, and for such whose masks are merged.
// Oracle: as above, with these entries and without.
// Method: 400 layouts (10,000 by night).
TEST(Verify, FindsPlantedBugsInSplitAndMergedLayouts) {
  Judged judged;
  const auto cases = static_cast<std::uint64_t>(more_by_night(400, 10'000));
  for (std::uint64_t seed = 1; seed <= cases; ++seed) {
    std::mt19937_64 random(seed);
    const RuleSet rules = small_random_rules(8 + seed % 50, 2 + seed % 7, seed);
    Layout layout;
    if (seed % 3 == 0) {
      const auto merged = optimizer::merge_masks(rules, rules::uniform_traffic(rules, seed), {},
                                                 1.0 + static_cast<double>(seed % 4));
      ASSERT_TRUE(merged) << "seed " << seed << ": " << merged.error().message;
      layout = merged->layout.layout;
    } else {
      optimizer::SplitOptions options;
      options.entries = 3 + seed % 20;
      options.idle_seconds = seed % 2 == 0 ? 10 : 0;
      const auto split =
          optimizer::split_hardware(rules, rules::zipf_traffic(rules, 1.1, seed), options);
      ASSERT_TRUE(split) << "seed " << seed << ": " << split.error().message;
      layout = split->made.layout;
    }
    judge_rewritten_and_broken(rules, layout, random, judged);
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
  }
  EXPECT_GT(judged.different, static_cast<int>(cases / 4));
  EXPECT_GT(judged.rewrites, static_cast<int>(cases / 3));
}

}  // namespace
}  // namespace greynic::verify
