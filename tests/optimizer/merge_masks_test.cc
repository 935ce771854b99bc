/// Chains of fewer masks, bought with entries.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <random>

#include "greynic/optimizer/mask_curve.h"
#include "greynic/rules/made_filters.h"
#include "greynic/rules/read_rules.h"
#include "greynic/rules/traffic.h"
#include "greynic/verify/verify.h"
#include "random_rules.h"
#include "src/masks/sites.h"

namespace greynic::optimizer {
namespace {

using masks::Merging;
using masks::Sites;

std::size_t masks_in(const Layout& layout) {
  std::size_t count = 0;
  for (const LayoutTable& table : layout.tables) {
    std::vector<Mask> seen;
    for (const Matcher& matcher : table.matchers) {
      if (std::find(seen.begin(), seen.end(), matcher.mask) == seen.end()) {
        seen.push_back(matcher.mask);
      }
    }
    count += seen.size();
  }
  return count;
}

// Claim:  a chain of merged masks does to each packet what the rules do, within the growth allowed, and
//         with no more masks than are told; more growth never leaves more masks.
// Oracle: core's lookups of every packet there is; masks and rules counted here.
TEST(MergedMasks, AreRightForEveryPacketWithinTheGrowth) {
  std::size_t fewer = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const std::uint32_t tables = seed % 4 == 0 ? 2 : 1;
    const RuleSet rules = small_random_rules(10 + seed % 50, 4, seed, tables);
    const double growth = 1.0 + static_cast<double>(seed % 7) / 2.0;
    const auto made = merge_masks(rules, rules::uniform_traffic(rules, seed), {}, growth);
    ASSERT_TRUE(made) << "seed " << seed << ": " << made.error().message;
    const Layout& layout = made->layout.layout;
    EXPECT_LE(static_cast<double>(layout.rule_count()),
              growth * static_cast<double>(rules.rules.size()) + 1e-9);
    const MaskPoint& taken = made->curve.points[made->curve.taken];
    EXPECT_DOUBLE_EQ(taken.growth, growth);
    EXPECT_LE(masks_in(layout), taken.masks) << seed;
    fewer += taken.masks < made->curve.masks ? 1 : 0;
    for (std::size_t i = 0; i < made->curve.points.size(); ++i) {
      const MaskPoint& point = made->curve.points[i];
      EXPECT_LE(point.fewest, point.masks) << seed;
      if (i > 0) EXPECT_LE(point.masks, made->curve.points[i - 1].masks) << seed;
    }
    for (std::uint32_t table = 0; table < tables; ++table) {
      for (unsigned number = 0; number < 1U << SmallSpace::kBits; ++number) {
        const Packet packet = SmallSpace::packet(number);
        const FlowRule* const wanted = look_up(rules, table, packet);
        const FlowRule* const got = look_up(layout, packet, table).rule;
        ASSERT_EQ(wanted == nullptr, got == nullptr) << to_string(packet);
        if (wanted != nullptr) ASSERT_EQ(wanted->actions, got->actions) << to_string(packet);
      }
    }
  }
  EXPECT_GE(fewer, 30U);
}

/// The fewest sites within the entries, by trying every choice of candidates.
std::size_t fewest_by_trying(const Sites& sites, double most_extra) {
  std::size_t best = sites.masks();
  for (std::uint64_t choice = 1; choice < std::uint64_t{1} << sites.candidates(); ++choice) {
    const auto count = static_cast<std::size_t>(std::popcount(choice));
    if (count >= best) continue;
    double extra = 0.0;
    for (std::uint32_t mask = 0; mask < sites.masks(); ++mask) {
      double least = std::numeric_limits<double>::infinity();
      for (const Sites::Way& way : sites.ways_of_mask(mask)) {
        if ((choice >> way.other & 1) != 0) least = std::min(least, way.extra);
      }
      extra += least;
    }
    if (extra <= most_extra) best = count;
  }
  return best;
}

// Claim:  the bound is one, and what is found is at most one mask more than the best choice.
// Oracle: every choice of candidates.
TEST(MergedMasks, AreNoFewerThanTheBoundAndFewEnough) {
  std::mt19937_64 random(9);
  std::size_t best = 0;
  int looked_at = 0;
  for (int round = 0; round < 300; ++round) {
    std::vector<std::vector<Word>> some;
    std::vector<std::size_t> rules;
    while (some.size() < 5) {
      const std::vector<Word> mask = {random() & random() & 0xff};
      if (std::find(some.begin(), some.end(), mask) != some.end()) continue;
      some.push_back(mask);
      rules.push_back(1 + random() % 20);
    }
    const Sites sites(some, rules, 400);
    ++looked_at;
    const double most_extra = static_cast<double>(random() % 200);
    const std::size_t fewest = fewest_by_trying(sites, most_extra);
    const masks::Merged merged = masks::merge(sites, {most_extra}).front();
    const Merging& found = merged.merging;
    EXPECT_LE(found.extra, most_extra);
    EXPECT_GE(found.kept, fewest);
    EXPECT_LE(found.kept, fewest + 1) << round;
    EXPECT_LE(merged.fewest, fewest) << round;
    best += found.kept == fewest ? 1 : 0;
  }
  EXPECT_EQ(looked_at, 300);
  EXPECT_GE(static_cast<double>(best), 0.9 * looked_at);
}

TEST(MergedMasks, RefuseWhatTheyCannotDo) {
  const RuleSet rules = small_random_rules(10, 3, 1);
  const Traffic traffic = rules::uniform_traffic(rules, 1);
  for (const double growth : {0.5, -1.0, std::numeric_limits<double>::infinity()}) {
    const auto made = merge_masks(rules, traffic, {}, growth);
    ASSERT_FALSE(made) << growth;
    EXPECT_EQ(made.error().code, ErrorCode::kBadInput);
  }
  EXPECT_FALSE(merge_masks({}, {}, {}, 2.0));
}

}  // namespace
}  // namespace greynic::optimizer
