/// From one rule set to another, rule by rule.

#include "greynic/optimizer/update.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "greynic/verify/verify.h"
#include "random_rules.h"

namespace greynic::optimizer {
namespace {

FlowRule to_port(unsigned address, const char* port, RulePriority priority) {
  FlowRule rule;
  rule.match.set(MatchField::kIpv4Dst, address);
  rule.actions = {Action::forward(port)};
  rule.priority = priority;
  return rule;
}

// Claim:  rules stay by what they match and do, not by the numbers of their priorities; of rules that
//         change places as few as can be go and come.
// Oracle: worked by hand.
TEST(RulesThatStay, AreToldByMatchAndActions) {
  const RuleSet before{{to_port(1, "a", 10), to_port(2, "b", 20), to_port(3, "c", 30),
                        to_port(3, "c", 31), to_port(4, "d", 40)},
                       ""};
  const RuleSet now{{to_port(4, "d", 1), to_port(1, "a", 2), to_port(2, "other", 3),
                     to_port(3, "c", 5), to_port(9, "e", 4)},
                    ""};
  EXPECT_EQ(rules_that_stay(before, now), (std::vector<std::int64_t>{1, -1, 3, -1, -1}));
}

// Claim:  after an update the layout is one of the new rules, in their order.
// Oracle: verify().
// Method: 60 pairs of random sets that have most rules in common, shuffled in part, in two tables.
TEST(Update, EndsAtTheNewRules) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    std::mt19937_64 random(seed);
    const RuleSet before = small_random_rules(30, 3, seed, 2);
    RuleSet now = before;
    for (const FlowRule& rule : small_random_rules(6, 3, seed + 500, 2).rules) {
      now.rules.push_back(rule);
    }
    std::shuffle(now.rules.begin() + 10, now.rules.end(), random);
    now.rules.resize(28);
    for (FlowRule& rule : now.rules) {
      if (random() % 4 == 0) rule.priority = static_cast<RulePriority>(random() % 20);
      rule.weight = 0.5;
    }
    const auto made = optimize(before, {});
    ASSERT_TRUE(made);
    LiveOptions options;
    options.full_layouts = seed % 2 == 0 ? FullLayouts::kAtOnce : FullLayouts::kNever;
    auto live = LiveLayout::create(before, made->layout, options);
    ASSERT_TRUE(live) << live.error().message;
    const auto sum = update(*live, before, now);
    ASSERT_TRUE(sum) << sum.error().message;
    EXPECT_EQ(sum->kept + sum->came, now.rules.size());
    const auto verdict = verify::verify(now, live->layout());
    ASSERT_TRUE(verdict) << verdict.error().message;
    ASSERT_TRUE(verdict->equivalent) << "seed " << seed;
  }
}

// Claim:  rules weigh what they decide.
// Oracle: worked by hand: the first rule takes the packets of both.
TEST(WeighRules, CountsWhatEachDecides) {
  RuleSet rules{{to_port(1, "a", 0), to_port(1, "b", 1), to_port(2, "c", 2)}, ""};
  Packet one;
  one.set(MatchField::kIpv4Dst, 1);
  Packet two;
  two.set(MatchField::kIpv4Dst, 2);
  weigh_rules(rules, Traffic{{{one, 3.0, 0}, {two, 1.0, 0}}});
  EXPECT_NEAR(rules.rules[0].weight, 0.75, 1e-6);
  EXPECT_GT(rules.rules[1].weight, 0.0);
  EXPECT_LT(rules.rules[1].weight, 1e-6);
  EXPECT_NEAR(rules.rules[2].weight, 0.25, 1e-6);
}

}  // namespace
}  // namespace greynic::optimizer
