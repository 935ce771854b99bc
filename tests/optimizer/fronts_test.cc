/// Matchers in front of a table for what most of its packets do there.

#include "src/fronts/fronts.h"

#include <gtest/gtest.h>

#include "greynic/optimizer/optimize.h"
#include "greynic/rules/traffic.h"
#include "random_rules.h"

namespace greynic::optimizer {
namespace {

// Claim:  with fronts each table does to every packet what it did, there are no more rules than may be
//         added, and the traffic tries fewer matchers, or as many.
// Oracle: core's lookup of every packet there is, table by table; a count by cost_of.
TEST(Fronts, ChangeNothingAndSaveMatchers) {
  std::size_t saved = 0;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    const RuleSet rules = small_random_rules(10 + seed % 60, 3, seed, 1 + seed % 3);
    Traffic traffic = rules::zipf_traffic(rules, seed % 2 == 0 ? 0.5 : 1.3, seed);
    traffic.drawn = false;  // these packets, and no others
    const Layout plain = layout_in_rule_order(rules);
    const std::size_t room = seed % 12;
    const Layout fronted = with_fronts(plain, traffic, room);
    EXPECT_LE(fronted.rule_count(), plain.rule_count() + room) << seed;
    ASSERT_EQ(fronted.tables.size(), plain.tables.size()) << seed;
    for (std::size_t t = 0; t < plain.tables.size(); ++t) {
      const Layout before{{plain.tables[t]}};
      const Layout after{{fronted.tables[t]}};
      const std::uint32_t id = plain.tables[t].id;
      for (unsigned number = 0; number < 1U << SmallSpace::kBits; ++number) {
        const Packet packet = SmallSpace::packet(number);
        const FlowRule* const was = look_up(before, packet, id).rule;
        const FlowRule* const is = look_up(after, packet, id).rule;
        ASSERT_EQ(was == nullptr, is == nullptr) << seed << ": " << to_string(packet);
        if (was != nullptr)
          ASSERT_EQ(was->actions, is->actions) << seed << ": " << to_string(packet);
      }
    }
    const double before = cost_of(plain, traffic).matchers_tried;
    const double after = cost_of(fronted, traffic).matchers_tried;
    EXPECT_LE(after, before + 1e-9) << seed;
    saved += after < 0.98 * before ? 1 : 0;
  }
  EXPECT_GE(saved, 50U);
}

// Claim:  a rule for most packets behind a few for special ones is met at the first matcher, by one entry.
// Oracle: by hand.
TEST(Fronts, LetMostPacketsPassSpecialRules) {
  RuleSet rules;
  for (int i = 0; i < 4; ++i) {
    FlowRule rule;
    rule.priority = static_cast<RulePriority>(i);
    if (i < 3) {
      rule.match.set(MatchField::kCtState, 1, 1);
      rule.match.set(i == 0   ? MatchField::kIpv4Src
                     : i == 1 ? MatchField::kIpv4Dst
                              : MatchField::kL4DstPort,
                     7);
    }
    rule.actions = {Action::forward("p" + std::to_string(i))};
    rule.from = {static_cast<std::uint32_t>(i)};
    rules.rules.push_back(rule);
  }
  Traffic traffic;
  for (std::uint32_t i = 0; i < 50; ++i) {
    TrafficFlow flow;
    flow.packet.set(MatchField::kIpv4Src, 1000 + i);
    traffic.flows.push_back(flow);
  }
  const Layout plain = layout_in_rule_order(rules);
  EXPECT_DOUBLE_EQ(cost_of(plain, traffic).matchers_tried, 4.0);
  const Layout fronted = with_fronts(plain, traffic, 1);
  EXPECT_DOUBLE_EQ(cost_of(fronted, traffic).matchers_tried, 1.0);
  ASSERT_EQ(fronted.tables.front().matchers.front().rules.size(), 1U);
  EXPECT_EQ(to_string(fronted.tables.front().matchers.front().rules.front().match),
            "ct_state=0x0/0x1");
}

/// One network's rules for its hosts, in front of all others some for special packets, and one for what is left.
RuleSet hosts_and_special_packets() {
  RuleSet rules;
  const auto add = [&](Match match, const std::string& port) {
    FlowRule rule;
    rule.priority = static_cast<RulePriority>(rules.rules.size());
    rule.match = std::move(match);
    rule.actions = {Action::forward(port)};
    rule.from = {static_cast<std::uint32_t>(rules.rules.size())};
    rules.rules.push_back(std::move(rule));
  };
  constexpr MatchField kSpecial[] = {MatchField::kEthernetSrc, MatchField::kIpv4Src,
                                     MatchField::kL4SrcPort, MatchField::kIpTtl};
  for (const MatchField field : kSpecial) {
    Match match;
    match.set(MatchField::kEtherType, 0x0806);
    match.set(field, 7);
    add(std::move(match), "special");
  }
  for (unsigned host = 0; host < 300; ++host) {
    Match match;
    match.set(MatchField::kEthernetDst, 0x020000000000 + host);
    add(std::move(match), "p" + std::to_string(host));
  }
  for (int i = 0; i < 300; ++i) add({}, "rest");  // so that as many packets are drawn for it
  return rules;
}

// Claim:  where packets are examples, entries serve others like them: packets drawn anew try as few matchers as those that
//         entries were chosen for, and few.
// Oracle: a count by cost_of, for packets of three other seeds.
TEST(Fronts, ServePacketsThatWereNotSeen) {
  const RuleSet rules = hosts_and_special_packets();
  const Traffic traffic = rules::uniform_traffic(rules, 1);
  const Layout plain = layout_in_rule_order(rules);
  const Layout fronted = with_fronts(plain, traffic, 700);
  const double made_for = cost_of(fronted, traffic).matchers_tried;
  for (const std::uint64_t seed : {2, 3, 4}) {
    const Traffic anew = rules::uniform_traffic(rules, seed);
    const double tried = cost_of(fronted, anew).matchers_tried;
    EXPECT_LE(tried, 1.06 * made_for) << seed;
    EXPECT_LE(tried, 4.5) << seed << "; before: " << cost_of(plain, anew).matchers_tried;
  }
}

}  // namespace
}  // namespace greynic::optimizer
