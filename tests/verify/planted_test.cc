/// Planted bugs and harmless rewrites, in layouts of every kind.

#include "planted.h"

#include <array>

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

/// Guards, each of which jumps to a table of the rules that it meets, and a first table of all rules behind them. From
/// some rule on, tables go on in one that they share, or in one of two.
Layout guarded(const RuleSet& rules, std::mt19937_64& random) {
  const std::size_t count = rules.rules.size();
  const bool many = random() % 2 == 0;  // and most of one mask
  const auto guards = static_cast<std::uint32_t>(many ? 12 + random() % 12 : 2 + random() % 4);
  const std::array<std::size_t, 2> shared = {count / 2 + random() % (count / 2),
                                             count / 2 + random() % (count / 2)};
  std::vector<LayoutTable> tables;
  for (std::uint32_t id = 0; id < guards + 3; ++id) tables.push_back({id, {}});
  const auto add = [&](LayoutTable& table, FlowRule rule) {
    rule.table = table.id;
    rule.priority = static_cast<RulePriority>(table.matchers.size());
    table.matchers.push_back({rule.match.mask(), rule.priority, {rule}});
  };
  const auto serve = [&](LayoutTable& table, const Match& region) {
    const std::uint64_t way = random() % 3;
    const std::size_t end = way < 2 ? shared[way] : count;
    for (std::size_t i = 0; i < end; ++i) {
      if (rules.rules[i].match.overlaps(region)) add(table, rules.rules[i]);
    }
    FlowRule onward;
    onward.actions = {Action::jump(guards + 1 + way)};
    if (way < 2) add(table, onward);
  };
  Match guard;
  for (std::uint32_t id = 1; id <= guards; ++id) {
    const Match drawn = small_random_rules(1, 1, random()).rules.front().match;
    auto& matchers = tables[0].matchers;
    const bool another = id == 1 || random() % (many ? 16 : 4) == 0;  // mask than the guard before
    if (another) guard = drawn;
    const Match before = guard;
    for (const FieldMatch& part : before.fields()) {
      guard.set(part.field, random() & 0xf, part.bits);
    }
    FlowRule rule;
    rule.match = guard;
    rule.actions = {Action::jump(id)};
    serve(tables[id], guard);
    if (another) {
      add(tables[0], rule);
    } else {
      matchers.back().rules.push_back(rule);  // of two alike the first decides
    }
  }
  serve(tables[0], {});
  for (const std::size_t way : {0U, 1U}) {
    for (std::size_t i = shared[way]; i < count; ++i) {
      add(tables[guards + 1 + way], rules.rules[i]);
    }
  }
  return {std::move(tables)};
}

// Claim:  a rule that one table lacks, while others have it to which jumps of the same matcher or of matchers around it
//         lead, is missed; and nothing is where all have it.
// Oracle: core's slow lookup of all 1,024 packets.
// Method: 2,000 layouts (40,000 by night) of guards, with tables of the rules that they meet; then one of these loses a rule.
TEST(Verify, MissesWhatOneOfManyTablesLacks) {
  int different = 0;
  const auto cases = static_cast<std::uint64_t>(more_by_night(2000, 40'000));
  for (std::uint64_t seed = 1; seed <= cases; ++seed) {
    std::mt19937_64 random(seed);
    RuleSet rules = small_random_rules(6 + seed % 10, 2 + seed % 4, seed);
    for (std::size_t i = 0; i < rules.rules.size(); ++i) {
      rules.rules[i].priority = static_cast<RulePriority>(i);
    }
    Layout layout = guarded(rules, random);
    const auto right = verify(rules, layout);
    ASSERT_TRUE(right) << "seed " << seed << ": " << right.error().message;
    ASSERT_TRUE(right->equivalent) << "seed " << seed;
    auto& matchers = layout.tables[random() % layout.tables.size()].matchers;
    if (matchers.empty()) continue;
    matchers.erase(matchers.begin() + static_cast<std::ptrdiff_t>(random() % matchers.size()));
    const auto judged = verify(rules, layout);
    ASSERT_TRUE(judged) << "seed " << seed << ": " << judged.error().message;
    ASSERT_EQ(judged->equivalent, equivalent_by_trying(rules, layout)) << "seed " << seed;
    different += judged->equivalent ? 0 : 1;
  }
  EXPECT_GT(different, static_cast<int>(cases / 4));
}

}  // namespace
}  // namespace greynic::verify
