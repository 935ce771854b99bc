/// What packets usually meet in the next table, done at once.

#include "src/joined/usual.h"

#include <gtest/gtest.h>

#include "greynic/rules/traffic.h"
#include "random_products.h"
#include "sized.h"
#include "src/entering.h"
#include "src/factored/factor.h"

namespace greynic::optimizer {
namespace {

// Claim:  whatever table a packet comes to, the same is done to it, in the same order; each rule is worth its place;
//         no more rules than may be are added.
// Oracle: each of 1,024 packets followed through all tables by core's lookup.
// Method: 150 pipelines whose rules set bits that later tables look at, and 50 with products taken apart.
TEST(Usual, TablesDoTheSameToEveryPacketFromEveryEntrance) {
  std::size_t changed = 0;
  for (std::uint64_t seed = 1; seed <= sized(200U, 40U); ++seed) {
    const bool product = seed % 4 == 0;
    const auto tables = static_cast<std::uint32_t>(3 + seed % 3);
    const RuleSet rules = product ? small_product_pipeline(20, tables, seed)
                                  : small_random_pipeline(8 + seed % 50, tables, seed);
    const Traffic traffic = rules::zipf_traffic(rules, seed % 2 == 0 ? 0.0 : 1.1, seed, 6);
    UsualOptions options;
    options.first_added = first_free_table(rules);
    options.most_added = seed % 3 == 0 ? seed % 11 : 1000;
    RuleSet given = rules;
    if (product) {
      ArrivingTraffic arriving;
      for (const TrafficFlow& flow : traffic.flows) arriving[flow.table].flows.push_back(flow);
      FactorOptions factoring;
      factoring.first_free = options.first_added;
      factoring.last_table = 1000;
      given = factor_tables(rules, arriving, factoring).rules;
    }
    const UsualRules made = with_usual_ways(given, traffic, options);
    changed += made.added > 0 ? 1 : 0;
    ASSERT_EQ(made.rules.rules.size(), given.rules.size() + made.added) << seed;
    EXPECT_LE(made.added, options.most_added) << seed;
    if (made.added == 0) continue;
    for (std::uint32_t table = 0; table < tables; ++table) {
      for (unsigned number = 0; number < 1U << SmallSpace::kBits; ++number) {
        const Packet packet = SmallSpace::packet(number);
        const std::string wanted = way_by_rules(given, table, packet);
        ASSERT_EQ(wanted, way_by_rules(made.rules, table, packet))
            << "seed " << seed << ", table " << table << ": " << to_string(packet);
      }
    }
  }
  EXPECT_GE(changed, sized(50U, 10U));
}

// Claim:  packets without marks do at once what the next table does to them; those with marks, of which no two are
//         alike, go on as before; nothing is known behind an unknown action.
// Oracle: by hand.
TEST(Usual, WritesWhatMostPacketsDoBeforeTheRule) {
  for (const bool known : {true, false}) {
    RuleSet rules;
    rules.rules.push_back(rule_for_all(0, 0, {Action::jump(1)}));
    if (!known)
      rules.rules.back().actions.insert(rules.rules.back().actions.begin(), Action::other("x"));
    rules.rules.push_back(rule_for_all(1, 0, {Action::drop()}));
    rules.rules.back().match.set(MatchField::kReg0, 1, 3);
    rules.rules.push_back(rule_for_all(1, 1, {Action::forward("p1")}));
    Traffic traffic;
    traffic.drawn = true;
    for (U128 mark : {0, 4, 8, 1, 2}) {  // in the bits that are asked for, three alike
      Packet packet;
      packet.set(MatchField::kReg0, mark);
      traffic.flows.push_back({packet, 1.0, 0});
    }
    UsualOptions options;
    options.first_added = 2;
    options.most_added = 10;
    options.least_share = 0.1;
    const UsualRules made = with_usual_ways(rules, traffic, options);
    // 3 of 5 hit, 2 with an entry more to try; without the one that the entry was made for, nothing is won.
    EXPECT_EQ(made.added, 0U);
    traffic.flows.push_back(traffic.flows.front());
    traffic.flows.push_back(traffic.flows.front());
    const UsualRules more = with_usual_ways(rules, traffic, options);
    ASSERT_EQ(more.added, known ? 1U : 0U);
    if (!known) continue;
    EXPECT_EQ(to_string(more.rules.rules.front().match), "reg0=0x0/0x3");
    EXPECT_EQ(more.rules.rules.front().actions, (std::vector<Action>{Action::forward("p1")}));
    EXPECT_EQ(more.rules.rules[1].actions, rules.rules.front().actions);
    EXPECT_EQ(more.rules.rules[1].priority, 1);
  }
}

}  // namespace
}  // namespace greynic::optimizer
