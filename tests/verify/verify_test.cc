#include "greynic/verify/verify.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <ctime>
#include <filesystem>
#include <tuple>

#include "../optimizer/example_rules.h"
#include "../optimizer/nightly.h"
#include "../optimizer/random_rules.h"
#include "greynic/optimizer/optimize.h"
#include "greynic/rules/read_rules.h"
#include "greynic/rules/traffic.h"
#include "planted.h"
#include "sized.h"

namespace greynic::verify {
namespace {

// Claim:  the example in verify.h says what comes out, for the layout and for its matchers
// exchanged. Oracle: worked out by hand there.
TEST(Verify, DoesWhatTheExampleInItsHeaderSays) {
  const RuleSet rules = example_rules();
  const auto made = optimizer::optimize(rules, rules::uniform_traffic(rules, 1));
  ASSERT_TRUE(made) << made.error().message;
  Layout layout = made->layout;
  const auto whole = verify(rules, layout);
  ASSERT_TRUE(whole) << whole.error().message;
  EXPECT_TRUE(whole->equivalent);
  EXPECT_EQ(whole->regions, 0U);  // nothing is left to search

  std::vector<Matcher>& matchers = layout.tables.front().matchers;
  ASSERT_EQ(matchers.size(), 2U);
  std::swap(matchers[0], matchers[1]);
  const auto exchanged = verify(rules, layout);
  ASSERT_TRUE(exchanged) << exchanged.error().message;
  ASSERT_FALSE(exchanged->equivalent);
  EXPECT_EQ(to_string(exchanged->counterexample->packet), "ipv4_dst=10.1.0.1,l4_dst_port=22");
  EXPECT_EQ(exchanged->counterexample->by_rules, "drop");
  EXPECT_EQ(exchanged->counterexample->by_layout, "forward p1");
}

/// Tables of random matchers, each rule drops, forwards or jumps to a later table; several jumps
/// lead to the same ones.
Layout random_shared_layout(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  constexpr std::uint32_t kTables = 6;
  Layout layout;
  for (std::uint32_t id = 0; id < kTables; ++id) {
    LayoutTable table{id, {}};
    for (const FlowRule& drawn : small_random_rules(4, 4, random()).rules) {
      FlowRule rule = drawn;
      rule.table = id;
      if (id + 1 < kTables && random() % 2 == 0) {
        const auto later = static_cast<std::uint32_t>(random() % (kTables - id - 1));
        rule.actions = {Action::jump(id + 1 + later)};
      }
      rule.priority = static_cast<RulePriority>(table.matchers.size());
      table.matchers.push_back({rule.match.mask(), rule.priority, {rule}});
    }
    layout.tables.push_back(std::move(table));
  }
  return layout;
}

/// A rule for each packet, with what the layout does to it.
RuleSet packet_by_packet(const Layout& layout) {
  RuleSet rules;
  for (unsigned number = 0; number < 1U << SmallSpace::kBits; ++number) {
    const Packet packet = SmallSpace::packet(number);
    const FlowRule* decides = by_layout(layout, 0, packet);
    if (decides == nullptr) continue;
    FlowRule rule;
    rule.match.set(MatchField::kIpv4Src, number & 0xf, 0xf);
    rule.match.set(MatchField::kIpv4Dst, number >> 4 & 0xf, 0xf);
    rule.match.set(MatchField::kIpProtocol, number >> 8 & 0x3, 0x3);
    rule.actions = decides->actions;
    rules.rules.push_back(std::move(rule));
  }
  return rules;
}

// Claim:  tables that many jumps share are judged rightly, whoever made them, and however few
//         comparisons there are: then there is a verdict or none, never a wrong one.
// Oracle: core's slow lookup of all 1,024 packets.
// Method: random tables against a rule for each of their packets, of which one may lie.
TEST(Verify, JudgesSharedTablesOfAnyMaker) {
  int equal = 0;
  int different = 0;
  const auto cases = static_cast<std::uint64_t>(more_by_night(200, 4000));
  for (std::uint64_t seed = 1; seed <= cases; ++seed) {
    const Layout layout = random_shared_layout(seed);
    RuleSet rules = packet_by_packet(layout);
    if (rules.rules.empty()) continue;
    if (seed % 2 == 0) rules.rules[seed % rules.rules.size()].actions = {Action::forward("lie")};
    for (const std::uint64_t most : {2'000U, 40'000U, 10'000'000U}) {
      VerifyOptions options;
      options.quick = true;
      options.most_comparisons = most;
      const auto verdict = verify(rules, layout, options);
      if (!verdict) continue;
      ASSERT_EQ(verdict->equivalent, equivalent_by_trying(rules, layout)) << "seed " << seed;
      ++(verdict->equivalent ? equal : different);
      if (verdict->equivalent) continue;
      EXPECT_FALSE(treated_alike(rules, layout, 0, verdict->counterexample->packet)) << seed;
    }
  }
  EXPECT_GT(equal, static_cast<int>(cases / 4));
  EXPECT_GT(different, static_cast<int>(cases / 4));
}

TEST(Verify, TakesMissingForOtherThanDropped) {
  RuleSet rules = small_random_rules(1, 1, 3);
  rules.rules[0].match = {};
  rules.rules[0].match.set(MatchField::kIpProtocol, 6);
  rules.rules[0].actions = {Action::drop()};
  const auto verdict = verify(rules, Layout{{{0, {}}}});
  ASSERT_TRUE(verdict);
  ASSERT_FALSE(verdict->equivalent);
  EXPECT_EQ(verdict->counterexample->by_rules, "drop");
  EXPECT_EQ(verdict->counterexample->by_layout, "no match");
  EXPECT_EQ(verdict->counterexample->packet.value(MatchField::kIpProtocol), U128{6});
}

TEST(Verify, FollowsJumpsToTablesOfTheLayoutOnly) {
  RuleSet rules;
  FlowRule rule;
  rule.match.set(MatchField::kIpProtocol, 6);
  rule.actions = {Action::jump(7)};
  rules.rules = {rule};
  Layout layout{{{0, {{rule.match.mask(), 0, {rule}}}}}};
  EXPECT_TRUE(verify(rules, layout)->equivalent);  // table 7 is the set's own business

  FlowRule inner = rule;
  inner.actions = {Action::jump(7)};
  layout.tables[0].matchers[0].rules[0].actions = {Action::jump(9)};
  layout.tables.push_back({9, {{inner.match.mask(), 0, {inner}}}});
  EXPECT_TRUE(verify(rules, layout)->equivalent);
  layout.tables[1].matchers[0].rules[0].actions = {Action::jump(9)};
  EXPECT_EQ(verify(rules, layout).error().code, ErrorCode::kUnsupported);  // a loop
}

// Claim:  a loop of jumps is refused though no packet can walk it: what leads back matches nothing
//         that comes there.
TEST(Verify, RefusesALoopThatNoPacketWalks) {
  RuleSet rules;
  FlowRule rule;
  rule.match.set(MatchField::kIpProtocol, 6);
  rule.actions = {Action::drop()};
  rules.rules = {rule};
  FlowRule onward = rule;
  onward.actions = {Action::jump(9)};
  FlowRule back = rule;
  back.match.set(MatchField::kIpProtocol, 17);
  back.actions = {Action::jump(9)};
  const Mask mask = rule.match.mask();
  const Layout layout{{{0, {{mask, 0, {onward}}}}, {9, {{mask, 0, {rule, back}}}}}};
  const auto verdict = verify(rules, layout);
  ASSERT_FALSE(verdict);
  EXPECT_EQ(verdict.error().code, ErrorCode::kUnsupported);
}

// Claim:  as many jumps are followed as devices follow, 64; more are refused, however many, before the tables are
//         gone through.
// Oracle: each table of the layout takes all packets to the next, and the last one drops them, as the rules do.
TEST(Verify, RefusesMoreJumpsThanDevicesFollow) {
  const auto chain = [](std::uint32_t jumps) {
    Layout layout;
    for (std::uint32_t i = 0; i <= jumps; ++i) {
      FlowRule rule;
      rule.actions = {i < jumps ? Action::jump(i + 1) : Action::drop()};
      layout.tables.push_back({i, {{{}, 0, {rule}}}});
    }
    return layout;
  };
  FlowRule rule;
  rule.actions = {Action::drop()};
  const RuleSet rules{{rule}, ""};
  ASSERT_TRUE(verify(rules, chain(64)));
  EXPECT_TRUE(verify(rules, chain(64))->equivalent);
  for (const std::uint32_t jumps : {65U, 100'000U}) {
    const auto verdict = verify(rules, chain(jumps));
    ASSERT_FALSE(verdict);
    EXPECT_EQ(verdict.error().code, ErrorCode::kUnsupported) << verdict.error().message;
  }
}

/// Processor time that a pipeline takes, each of whose tables jumps to the next.
double seconds_of_tables(std::uint32_t count) {
  RuleSet rules;
  for (std::uint32_t i = 0; i < count; ++i) {
    FlowRule rule;
    rule.table = i;
    rule.actions = {i + 1 < count ? Action::jump(i + 1) : Action::drop()};
    rules.rules.push_back(rule);
  }
  const Layout layout = optimizer::layout_in_rule_order(rules);
  const std::clock_t begin = std::clock();
  EXPECT_TRUE(verify(rules, layout));
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

// Claim:  what is done for each table of the rules does not go through all tables of the layout.
// Oracle: four times as many tables take a little over four times as long, and sixteen times where each asks all.
TEST(Verify, TakesTablesOneByOne) {
  const double few = seconds_of_tables(2'500), many = seconds_of_tables(10'000);
  EXPECT_LT(many, 9 * few);
}

TEST(Verify, RefusesARuleThatIsNotUnderItsMatchersMask) {
  const RuleSet rules = small_random_rules(5, 5, 1);
  Layout layout = optimizer::layout_in_rule_order(rules);
  layout.tables[0].matchers[0].mask.add(MatchField::kIpTtl, 1);
  EXPECT_EQ(verify(rules, layout).error().code, ErrorCode::kBadInput);
}

// Claim:  regions that leave the same to be asked are looked at once: rules on the source and rules on
//         the destination in turn cut the packet space into 40,000 pieces, of which few are looked at.
// Oracle: a fault in one place, of which the packet shows that it is real.
// Method: without the proof from matcher to matcher; the layout looks rules up by cuts.
TEST(Verify, LooksOnceAtWhatIsLeftOpenAlike) {
  constexpr std::uint32_t kEach = 200;
  RuleSet rules;
  for (std::uint32_t i = 0; i < 2 * kEach; ++i) {
    FlowRule rule;
    const MatchField field = i % 2 == 0 ? MatchField::kIpv4Src : MatchField::kIpv4Dst;
    rule.match.set(field, 0x0a000000U + (i / 2 << 8), 0xffffff00U);
    rule.priority = i;
    rule.actions = {Action::forward("p" + std::to_string(i % 7))};
    rules.rules.push_back(std::move(rule));
  }
  optimizer::OptimizeOptions cuts;
  cuts.max_growth = 4.0;
  const auto made = optimizer::optimize(rules, rules::uniform_traffic(rules, 1), cuts);
  ASSERT_TRUE(made) << made.error().message;
  VerifyOptions options;
  options.most_comparisons = 0;
  const auto verdict = verify(rules, made->layout, options);
  ASSERT_TRUE(verdict) << verdict.error().message;
  EXPECT_TRUE(verdict->equivalent);
  EXPECT_LT(verdict->regions, kEach * kEach / 4);

  Layout layout = made->layout;
  layout.tables.back().matchers.back().rules.back().actions = {Action::forward("other")};
  const auto broken_one = verify(rules, layout, options);
  ASSERT_TRUE(broken_one) << broken_one.error().message;
  ASSERT_FALSE(broken_one->equivalent);
  EXPECT_FALSE(treated_alike(rules, layout, 0, broken_one->counterexample->packet));
}

/// Hosts with two rules each, for packets to one port and to all others, and ports for all other hosts. The
/// layout sends what comes from a host to a table that all hosts share, or to one of its own, and from there to a last one.
std::pair<RuleSet, Layout> hosts_that_share(std::uint32_t hosts, bool own_tables) {
  RuleSet rules;
  Layout layout{{{0, {}}, {1, {}}, {2, {}}}};
  for (std::uint32_t id = 3; own_tables && id < 2 + hosts; ++id) layout.tables.push_back({id, {}});
  const auto add = [](LayoutTable& table, Match match, std::vector<Action> actions, bool fresh) {
    FlowRule rule;
    rule.match = std::move(match);
    rule.actions = std::move(actions);
    rule.table = table.id;
    if (fresh) table.matchers.push_back({rule.match.mask(), 0, {}});
    rule.priority = table.matchers.back().priority =
        static_cast<RulePriority>(table.matchers.size() - 1);
    table.matchers.back().rules.push_back(std::move(rule));
  };
  const auto serve = [&](LayoutTable& table, const Match& match, const std::string& port,
                         bool fresh) {
    FlowRule rule;
    rule.match = match;
    rule.priority = static_cast<RulePriority>(rules.rules.size());
    rule.actions = {Action::forward(port)};
    rules.rules.push_back(rule);
    add(table, match, rule.actions, fresh);
  };
  for (std::uint32_t i = 0; i < hosts; ++i) {
    Match host;
    host.set(MatchField::kIpv4Src, 0x0a000000U + i);
    LayoutTable& flows = layout.tables[own_tables && i > 0 ? 2 + i : 1];
    add(layout.tables[0], host, {Action::jump(flows.id)}, i == 0);
    Match flow = host;
    flow.set(MatchField::kL4DstPort, i % 100);
    serve(flows, flow, "flow" + std::to_string(i), flows.matchers.empty());
    if (own_tables || i + 1 == hosts) add(flows, {}, {Action::jump(2)}, true);
  }
  for (std::uint32_t i = 0; i < hosts; ++i) {
    Match host;
    host.set(MatchField::kIpv4Src, 0x0a000000U + i);
    serve(layout.tables[2], host, "host" + std::to_string(i), i == 0);
  }
  for (std::uint32_t i = 0; i < 100; ++i) {
    Match port;
    port.set(MatchField::kL4DstPort, i);
    serve(layout.tables[0], port, "port" + std::to_string(i), i == 0);
  }
  return {std::move(rules), std::move(layout)};
}

// Claim:  where each of many rules jumps to the same table, or to tables with the same rest, a rule costs some comparisons,
//         however many there are; and such a layout is judged right, also when one jump leads elsewhere or one port is wrong.
// Oracle: verify's own count, at two sizes; core's slow lookup of the counterexample.
TEST(Verify, LooksThroughATableOnceHoweverManyJumpsLeadThere) {
  for (const auto& [hosts, own_tables] : {std::pair(500U, false), std::pair(4000U, false),
                                          std::pair(500U, true), std::pair(4000U, true)}) {
    auto [rules, layout] = hosts_that_share(hosts, own_tables);
    VerifyOptions options;
    options.most_nodes = 0;
    const auto verdict = verify(rules, layout, options);
    ASSERT_TRUE(verdict) << verdict.error().message;
    EXPECT_TRUE(verdict->equivalent);
    EXPECT_EQ(verdict->regions, 0U);
    EXPECT_LT(verdict->comparisons, 200U * rules.rules.size());

    // The hosts take some of the packets of each port, but not all.
    for (const auto& [matcher, rule, action] : {std::tuple(0U, hosts / 2, Action::jump(2)),
                                                std::tuple(1U, 7U, Action::forward("other"))}) {
      Layout wrong = layout;
      wrong.tables[0].matchers[matcher].rules[rule].actions = {action};
      const auto judged = verify(rules, wrong, options);
      ASSERT_TRUE(judged) << judged.error().message;
      ASSERT_FALSE(judged->equivalent) << matcher;
      EXPECT_FALSE(treated_alike(rules, wrong, 0, judged->counterexample->packet));
    }
  }
}

// Claim:  behind more small matchers than are kept in mind, packets are still known to come that these take in part only.
// Oracle: core's slow lookup of the counterexample. Nothing is wrong at first; then a port's packets are taken before their rule is asked.
TEST(Verify, FindsWhatManySmallMatchersLeave) {
  RuleSet rules;
  Layout layout{{{0, {}}}};
  const auto add = [&](const Match& match, const std::string& port) {
    auto& matchers = layout.tables[0].matchers;
    FlowRule rule;
    rule.match = match;
    rule.actions = {Action::forward(port)};
    if (matchers.empty() || !(matchers.back().mask == match.mask())) {
      matchers.push_back({match.mask(), static_cast<RulePriority>(matchers.size()), {}});
    }
    FlowRule given = rule;
    given.priority = static_cast<RulePriority>(rules.rules.size());
    rules.rules.push_back(std::move(given));
    rule.priority = matchers.back().priority;
    matchers.back().rules.push_back(std::move(rule));
  };
  for (std::uint32_t length = 32; length > 24; --length) {
    for (std::uint32_t i = 0; i < 12; ++i) {
      Match network;
      network.set(MatchField::kIpv4Src, (length * 12 + i) << 16,
                  ~std::uint32_t{0} << (32 - length));
      add(network, fmt::format("network{}", rules.rules.size()));
    }
  }
  for (std::uint32_t i = 0; i < 20; ++i) {
    Match port;
    port.set(MatchField::kL4DstPort, i);
    add(port, fmt::format("port{}", i));
  }
  VerifyOptions options;
  options.most_nodes = 0;
  const auto right = verify(rules, layout, options);
  ASSERT_TRUE(right) << right.error().message;
  EXPECT_TRUE(right->equivalent);
  Matcher before = layout.tables[0].matchers.back();
  before.rules = {before.rules[7]};
  before.rules.front().actions = {Action::forward("port8")};
  layout.tables[0].matchers.insert(layout.tables[0].matchers.end() - 1, before);
  const auto wrong = verify(rules, layout, options);
  ASSERT_TRUE(wrong) << wrong.error().message;
  ASSERT_FALSE(wrong->equivalent);
  EXPECT_FALSE(treated_alike(rules, layout, 0, wrong->counterexample->packet));
}

// Claim:  what many rules leave of a cube is judged to the last part, also where hundreds are asked for in vain before.
// Oracle: core's slow lookup of the counterexample.
// Method: packets to all addresses but one go to another table; for 1,023 of them there are rules. Of the one that is left
//         two other rules decide, at first in their order; then the later one comes first.
TEST(Verify, LooksAtAllThatManyRulesLeave) {
  constexpr std::uint32_t kNetwork = 10U << 24;
  const auto rule_for = [](MatchField field, U128 value, U128 bits, const Action& action) {
    FlowRule rule;
    rule.match.set(field, value, bits);
    rule.actions = {action};
    return rule;
  };
  const auto first = rule_for(MatchField::kIpTtl, 1, 255, Action::forward("first"));
  const auto later = rule_for(MatchField::kIpProtocol, 6, 255, Action::forward("later"));
  for (std::uint32_t spared = 0; spared < 1024; spared += 93) {
    std::vector<FlowRule> hosts;
    for (std::uint32_t i = 0; i < 1024; ++i) {
      if (i == spared) continue;
      hosts.push_back(
          rule_for(MatchField::kIpv4Dst, kNetwork | i, 0xffffffff, Action::forward("host")));
    }
    RuleSet rules{hosts, {}};
    rules.rules.push_back(first);
    rules.rules.push_back(later);
    for (std::size_t i = 0; i < rules.rules.size(); ++i) {
      rules.rules[i].priority = static_cast<RulePriority>(i);
    }
    std::vector<std::vector<FlowRule>> jumps(2);  // by turns, so that neither leaves a cube
    for (const FlowRule& host : hosts) {
      auto& every_other = jumps[(jumps[0].size() + jumps[1].size()) % 2];
      every_other.push_back(host);
      every_other.back().actions = {Action::jump(1)};
    }
    for (std::uint32_t length = 1; length <= 22; ++length) {
      const std::uint32_t last = 1U << (32 - length);
      jumps.push_back({rule_for(MatchField::kIpv4Dst, (kNetwork ^ last) & ~(last - 1), ~(last - 1),
                                Action::jump(1))});
    }
    const auto table_of = [](std::uint32_t id, const std::vector<std::vector<FlowRule>>& groups) {
      LayoutTable table{id, {}};
      for (const std::vector<FlowRule>& group : groups) {
        const auto position = static_cast<RulePriority>(table.matchers.size());
        Matcher matcher{group.front().match.mask(), position, group};
        for (FlowRule& rule : matcher.rules) {
          rule.table = id;
          rule.priority = position;
        }
        table.matchers.push_back(std::move(matcher));
      }
      return table;
    };
    const auto layout_of = [&](std::vector<std::vector<FlowRule>> behind) {
      behind.insert(behind.begin(), jumps.begin(), jumps.end());
      return Layout{{table_of(0, behind), table_of(1, {hosts, {first}, {later}})}};
    };
    VerifyOptions options;
    options.most_nodes = 0;
    const auto right = verify(rules, layout_of({{first}, {later}, hosts}), options);
    ASSERT_TRUE(right) << right.error().message;
    EXPECT_TRUE(right->equivalent) << spared;
    const Layout wrong = layout_of({{later}, hosts, {first}});
    const auto judged = verify(rules, wrong, options);
    ASSERT_TRUE(judged) << judged.error().message;
    ASSERT_FALSE(judged->equivalent) << spared;
    EXPECT_FALSE(treated_alike(rules, wrong, 0, judged->counterexample->packet));
  }
}

TEST(Verify, SaysSoWhenTheComparisonsDoNotSuffice) {
  const RuleSet rules = small_random_rules(50, 5, 1);
  VerifyOptions options;
  options.quick = true;
  options.most_comparisons = 10;
  const auto verdict = verify(rules, optimizer::layout_in_rule_order(rules), options);
  ASSERT_FALSE(verdict);
  EXPECT_EQ(verdict.error().code, ErrorCode::kTooBig);
}

/// Real sets; each layout is checked whole and broken.
class VerifyRealSets : public testing::TestWithParam<const char*> {};

// Claim:  layouts of real sets verify, and a bug planted in one is found with a packet that shows
// it. Oracle: core's slow lookup of the counterexample.
TEST_P(VerifyRealSets, AreDecidedExactly) {
  const std::string path =
      std::string(GREYNIC_SOURCE_DIR) + "/../shared/data/rules/classbench/" + GetParam();
  if (!std::filesystem::exists(path))
    GTEST_SKIP()
        << path
        << " is not there; put the published data into ../shared/data, beside the source tree";
  if (waits_for_night(GetParam())) GTEST_SKIP() << "set GREYNIC_NIGHTLY for 10,000 rules";
  const auto rules = rules::read_rules(path);
  ASSERT_TRUE(rules) << rules.error().message;
  const auto made = optimizer::optimize(*rules, rules::uniform_traffic(*rules, 1));
  ASSERT_TRUE(made) << made.error().message;
  const auto whole = verify(*rules, made->layout);
  ASSERT_TRUE(whole) << whole.error().message;
  EXPECT_TRUE(whole->equivalent);
  const auto cases = static_cast<std::uint64_t>(more_by_night(5, 100));
  for (std::uint64_t seed = 1; seed <= cases; ++seed) {
    std::mt19937_64 random(seed);
    const Layout same = rewritten(made->layout, random);
    const auto alike = verify(*rules, same);
    ASSERT_TRUE(alike) << "seed " << seed << ": " << alike.error().message;
    EXPECT_TRUE(alike->equivalent) << "seed " << seed;
    const Layout layout = broken(same, random);
    if (layout.tables.empty()) continue;  // jumps in a circle, which is refused
    const auto verdict = verify(*rules, layout);
    ASSERT_TRUE(verdict) << "seed " << seed << ": " << verdict.error().message;
    if (verdict->equivalent) continue;  // two matchers that may swap
    EXPECT_FALSE(treated_alike(*rules, layout, 0, verdict->counterexample->packet)) << seed;
  }
}
INSTANTIATE_TEST_SUITE_P(ClassBench, VerifyRealSets,
                         testing::Values("acl1_1k.rules.xz", "fw1_1k.rules.xz", "ipc1_1k.rules.xz",
                                         "acl3_10k.rules.xz"));

}  // namespace
}  // namespace greynic::verify
