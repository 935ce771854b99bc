/// Tables of a pipeline joined.

#include <gtest/gtest.h>

#include "greynic/optimizer/optimize.h"
#include "greynic/rules/traffic.h"
#include "random_pipelines.h"
#include "sized.h"
#include "src/joined/join.h"

namespace greynic::optimizer {
namespace {

// Claim:  whatever table a packet comes to, the same is done to it in the end, in the same order, and the
//         traffic tries no more matchers than without joined tables.
// Oracle: each of 1,024 packets followed through all tables by core's lookup, one rule after another.
// Method: 120 pipelines of 3 to 6 tables, whose rules set bits that later tables look at.
TEST(Joined, TablesDoTheSameToEveryPacketFromEveryEntrance) {
  std::size_t joined = 0;
  for (std::uint64_t seed = 1; seed <= sized(120U, 20U); ++seed) {
    const auto tables = static_cast<std::uint32_t>(3 + seed % 4);
    const RuleSet rules = small_random_pipeline(8 + seed % 50, tables, seed);
    const Traffic traffic = rules::zipf_traffic(rules, seed % 2 == 0 ? 0.0 : 1.1, seed);
    OptimizeOptions options;
    options.max_growth = 1.0 + static_cast<double>(seed % 4);
    const auto made = optimize(rules, traffic, options);
    ASSERT_TRUE(made) << "seed " << seed << ": " << made.error().message;
    for (const std::string& note : made->notes) {
      EXPECT_EQ(note.find("please report"), std::string::npos) << "seed " << seed << ": " << note;
    }
    for (std::uint32_t table = 0; table < tables; ++table) {
      for (unsigned number = 0; number < 1U << SmallSpace::kBits; ++number) {
        const Packet packet = SmallSpace::packet(number);
        ASSERT_EQ(way_by_rules(rules, table, packet),
                  way_by_layout(made->layout, rules, table, packet))
            << "seed " << seed << ", table " << table << ": " << to_string(packet);
      }
    }
    options.join_tables = false;
    const auto apart = optimize(rules, traffic, options);
    ASSERT_TRUE(apart);
    EXPECT_LE(made->after.matchers_tried, apart->after.matchers_tried + 1e-9) << seed;
    joined += made->after.matchers_tried < apart->after.matchers_tried - 1e-9 ? 1 : 0;
  }
  EXPECT_GE(joined, sized(60U, 10U));
}

// Claim:  a table of which one rule is left for the packets that come is passed by; a bit that was set on
//         the way is known; other packets find the table as it was.
// Oracle: by hand.
TEST(Joined, PassesTablesThatDoOneThingToWhatComes) {
  RuleSet rules;
  const Action set{
      .kind = ActionKind::kSetField, .field = MatchField::kReg0, .value = 1, .bits = 1};
  rules.rules.push_back(rule_for_all(0, 0, {set, Action::jump(1)}));
  rules.rules.push_back(rule_for_all(1, 0, {Action::drop()}));
  rules.rules.back().match.set(MatchField::kReg0, 0, 1);
  rules.rules.push_back(rule_for_all(1, 1, {Action::jump(2)}));
  rules.rules.push_back(rule_for_all(2, 0, {Action::forward("p1")}));
  Traffic traffic;
  traffic.flows.push_back({});
  const JoinedRules joined = join_tables(rules, traffic, {});
  EXPECT_EQ(joined.joins, 2U);
  ASSERT_EQ(joined.rules.rules.size(), 4U);
  EXPECT_EQ(joined.rules.rules.front().actions, (std::vector<Action>{set, Action::forward("p1")}));
  EXPECT_EQ(joined.rules.rules[1].actions, rules.rules[1].actions);
  EXPECT_EQ(joined.rules.rules[2].actions, rules.rules[2].actions);
}

// Claim:  behind an action of which nothing is known, no table is joined that looks at packets.
// Oracle: by hand.
TEST(Joined, StopsBehindUnknownActions) {
  RuleSet rules;
  rules.rules.push_back(rule_for_all(0, 0, {Action::other("ct(commit)"), Action::jump(1)}));
  rules.rules.push_back(rule_for_all(1, 0, {Action::forward("p1")}));
  rules.rules.back().match.set(MatchField::kReg0, 1, 1);
  rules.rules.push_back(rule_for_all(1, 1, {Action::forward("p2")}));
  Traffic traffic;
  traffic.flows.push_back({});
  EXPECT_EQ(join_tables(rules, traffic, {.most_added = 10}).joins, 0U);
}

// Claim:  where jumps lead in a circle, nothing is joined.
TEST(Joined, LeavesCirclesAlone) {
  RuleSet rules;
  rules.rules.push_back(rule_for_all(0, 0, {Action::jump(1)}));
  rules.rules.push_back(rule_for_all(1, 0, {Action::jump(0)}));
  Traffic traffic;
  traffic.flows.push_back({});
  EXPECT_EQ(join_tables(rules, traffic, {.most_added = 10}).joins, 0U);
}

}  // namespace
}  // namespace greynic::optimizer
