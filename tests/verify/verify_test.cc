#include "greynic/verify/verify.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "../optimizer/example_rules.h"
#include "../optimizer/random_rules.h"
#include "greynic/optimizer/optimize.h"
#include "greynic/rules/read_rules.h"
#include "greynic/rules/traffic.h"

namespace greynic::verify {
namespace {

/// What the layout does to a packet, by core's slow lookup; null when nothing matches.
const FlowRule* by_layout(const Layout& layout, std::uint32_t table, const Packet& packet) {
  const FlowRule* rule = look_up(layout, packet, table).rule;
  const bool jumped =
      rule != nullptr && !rule->actions.empty() && rule->actions.front().kind == ActionKind::kJump;
  return jumped ? nullptr : rule;
}

bool treated_alike(const RuleSet& rules, const Layout& layout, std::uint32_t table,
                   const Packet& packet) {
  const FlowRule* wanted = look_up(rules, table, packet);
  const FlowRule* got = by_layout(layout, table, packet);
  if (wanted == nullptr || got == nullptr) return wanted == got;
  return wanted->actions == got->actions;
}

bool equivalent_by_trying(const RuleSet& rules, const Layout& layout) {
  for (unsigned number = 0; number < 1U << SmallSpace::kBits; ++number) {
    if (!treated_alike(rules, layout, 0, SmallSpace::packet(number))) return false;
  }
  return true;
}

/// Breaks a layout in one of four ways, or leaves it whole where that way is not open.
Layout broken(Layout layout, std::mt19937_64& random) {
  LayoutTable& table = layout.tables[random() % layout.tables.size()];
  if (table.matchers.empty()) return layout;
  const std::size_t at = random() % table.matchers.size();
  Matcher& matcher = table.matchers[at];
  const std::size_t rule_at = random() % matcher.rules.size();
  switch (random() % 4) {
    case 0:  // two matchers change places
      std::swap(matcher, table.matchers[random() % table.matchers.size()]);
      break;
    case 1:  // a rule is lost
      matcher.rules.erase(matcher.rules.begin() + static_cast<std::ptrdiff_t>(rule_at));
      if (matcher.rules.empty()) {
        table.matchers.erase(table.matchers.begin() + static_cast<std::ptrdiff_t>(at));
      }
      break;
    case 2: {  // one bit of a mask is no longer looked at
      if (matcher.mask.fields().empty()) return layout;
      const FieldMask part = matcher.mask.fields()[random() % matcher.mask.fields().size()];
      Matcher changed{{}, matcher.priority, {}};
      for (FlowRule rule : matcher.rules) {
        for (const FieldMatch& entry : rule.match.fields()) {
          if (entry.field != part.field) continue;
          const U128 bits = entry.bits & (entry.bits - 1);  // without its lowest bit
          rule.match.set(entry.field, entry.value, bits);
          break;
        }
        changed.mask = rule.match.mask();
        changed.rules.push_back(std::move(rule));
      }
      matcher = std::move(changed);
      break;
    }
    default:  // one bit of a value is turned
      for (const FieldMatch& entry : matcher.rules[rule_at].match.fields()) {
        const U128 lowest = entry.bits & (~entry.bits + 1);
        matcher.rules[rule_at].match.set(entry.field, entry.value ^ lowest, entry.bits);
        break;
      }
      break;
  }
  return layout;
}

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
  EXPECT_EQ(whole->regions, 1U);

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

// Claim:  the verdict is right for whole and for broken layouts, and each counterexample shows it.
// Oracle: core's slow lookup of all 1,024 packets.
// Method: 1,000 layouts of random overlapping sets, one table or many, broken in four ways.
TEST(Verify, FindsEveryPlantedBugAndNoOther) {
  int different = 0;
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    std::mt19937_64 random(seed);
    const RuleSet rules = small_random_rules(8 + seed % 70, 2 + seed % 10, seed);
    optimizer::OptimizeOptions options;
    options.single_table = seed % 2 == 0;
    options.max_growth = 4.0;
    const auto made = optimizer::optimize(rules, rules::uniform_traffic(rules, seed), options);
    ASSERT_TRUE(made) << "seed " << seed << ": " << made.error().message;
    const Layout layout = seed % 4 == 0 ? made->layout : broken(made->layout, random);
    const auto verdict = verify(rules, layout);
    ASSERT_TRUE(verdict) << "seed " << seed << ": " << verdict.error().message;
    ASSERT_EQ(verdict->equivalent, equivalent_by_trying(rules, layout)) << "seed " << seed;
    if (verdict->equivalent) continue;
    ++different;
    EXPECT_FALSE(treated_alike(rules, layout, verdict->counterexample->table,
                               verdict->counterexample->packet))
        << "seed " << seed << ": " << to_string(verdict->counterexample->packet);
  }
  EXPECT_GT(different, 300);  // the planted bugs are real ones
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

// Claim:  whichever way comes to an end, the verdict is right: also with jumps to shared tables
//         written out, and witnesses.
// Oracle: core's slow lookup of all 1,024 packets.
// Method: as few comparisons as let halving alone give up; layouts of the optimizer, whole and
//         broken, and random ones against a rule for each of their packets, of which one may lie.
TEST(Verify, IsRightOnTheQuickWays) {
  int written_out = 0;
  int equal = 0;
  const auto judge = [&](const RuleSet& rules, const Layout& layout, const std::string& what) {
    for (const std::uint64_t most : {5'000U, 40'000U, 300'000U, 2'000'000U}) {
      VerifyOptions options;
      options.quick = true;
      options.most_comparisons = most;
      const auto verdict = verify(rules, layout, options);
      if (!verdict) continue;
      ASSERT_EQ(verdict->equivalent, equivalent_by_trying(rules, layout)) << what;
      if (verdict->comparisons <= most / 8) continue;
      ++written_out;
      equal += verdict->equivalent ? 1 : 0;
    }
  };
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    std::mt19937_64 random(seed);
    const RuleSet rules = small_random_rules(20 + seed % 70, 2 + seed % 10, seed);
    optimizer::OptimizeOptions options;
    options.max_growth = 4.0;
    const auto made = optimizer::optimize(rules, rules::uniform_traffic(rules, seed), options);
    ASSERT_TRUE(made) << "seed " << seed << ": " << made.error().message;
    const Layout layout = seed % 2 == 0 ? made->layout : broken(made->layout, random);
    judge(rules, layout, "made " + std::to_string(seed));
  }
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const Layout layout = random_shared_layout(seed);
    RuleSet rules = packet_by_packet(layout);
    if (rules.rules.empty()) continue;
    if (seed % 2 == 0) rules.rules[seed % rules.rules.size()].actions = {Action::forward("lie")};
    judge(rules, layout, "random " + std::to_string(seed));
  }
  EXPECT_GT(written_out, 50);
  EXPECT_GT(equal, 20);
  EXPECT_GT(written_out, equal);
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

TEST(Verify, RefusesARuleThatIsNotUnderItsMatchersMask) {
  const RuleSet rules = small_random_rules(5, 5, 1);
  Layout layout = optimizer::layout_in_rule_order(rules);
  layout.tables[0].matchers[0].mask.add(MatchField::kIpTtl, 1);
  EXPECT_EQ(verify(rules, layout).error().code, ErrorCode::kBadInput);
}

TEST(Verify, SaysSoWhenTheRegionsDoNotSuffice) {
  RuleSet rules;
  for (unsigned port = 0; port < 500; ++port) {
    FlowRule rule;
    rule.match.set(MatchField::kL4DstPort, port);
    rule.actions = {Action::forward(std::to_string(port))};
    rules.rules.push_back(std::move(rule));
  }
  Layout layout = optimizer::layout_in_rule_order(rules);
  layout.tables[0].matchers[0].rules.pop_back();
  VerifyOptions options;
  options.most_regions = 1;
  const auto verdict = verify(rules, layout, options);
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
  const auto rules = rules::read_rules(path);
  ASSERT_TRUE(rules) << rules.error().message;
  const auto made = optimizer::optimize(*rules, rules::uniform_traffic(*rules, 1));
  ASSERT_TRUE(made) << made.error().message;
  const auto whole = verify(*rules, made->layout);
  ASSERT_TRUE(whole) << whole.error().message;
  EXPECT_TRUE(whole->equivalent);
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    std::mt19937_64 random(seed);
    const Layout layout = broken(made->layout, random);
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
