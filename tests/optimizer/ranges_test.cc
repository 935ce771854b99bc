/// Layouts for devices that compare ports with ranges.

#include <gtest/gtest.h>

#include <random>

#include "greynic/optimizer/live.h"
#include "greynic/optimizer/optimize.h"
#include "greynic/rules/made_filters.h"
#include "greynic/rules/read_rules.h"
#include "greynic/rules/traffic.h"
#include "greynic/verify/verify.h"
#include "nightly.h"
#include "range_rules.h"
#include "sized.h"

namespace greynic::optimizer {
namespace {

const FlowRule* decided(const Layout& layout, const Packet& packet) {
  const FlowRule* rule = look_up(layout, packet).rule;
  const bool jumped =
      rule != nullptr && !rule->actions.empty() && rule->actions.front().kind == ActionKind::kJump;
  return jumped ? nullptr : rule;
}

bool alike(const FlowRule* wanted, const FlowRule* got) {
  if (wanted == nullptr || got == nullptr) return wanted == got;
  return wanted->actions == got->actions;
}

OptimizeOptions with_ranges(std::size_t most) {
  OptimizeOptions options;
  options.limits.most_ranges = most;
  options.max_growth = 2.0;
  return options;
}

std::size_t most_ranges(const Layout& layout) {
  std::size_t most = 0;
  for (const LayoutTable& table : layout.tables) {
    for (const Matcher& matcher : table.matchers) {
      most = std::max(most, matcher.mask.ranges().size());
    }
  }
  return most;
}

// Claim:  a layout with ranges does to every packet what the rules do, and has no more ranges in a
//         matcher than the device compares.
// Oracle: every packet there is, looked up rule by rule in core, where a range is two comparisons.
TEST(Ranges, TreatEveryPacketOfSmallSetsAsTheRulesDo) {
  int with = 0;
  for (std::uint64_t seed = 1;
       seed <= static_cast<std::uint64_t>(by_night() ? 2000 : sized(150, 20)); ++seed) {
    const RuleSet rules = range_rules(5 + seed % 20, 4, seed);
    const std::size_t most = 1 + seed % 2;
    const auto made = optimize(rules, rules::uniform_traffic(rules, seed), with_ranges(most));
    ASSERT_TRUE(made) << "seed " << seed << ": " << made.error().message;
    EXPECT_LE(most_ranges(made->layout), most) << "seed " << seed;
    with += has_ranges(made->layout) ? 1 : 0;
    EXPECT_TRUE(made->notes.empty()) << "seed " << seed << ": " << made->notes.front();
    for (unsigned number = 0; number < RangeSpace::kPackets; ++number) {
      const Packet packet = RangeSpace::packet(number);
      ASSERT_TRUE(alike(look_up(rules, 0, packet), decided(made->layout, packet)))
          << "seed " << seed << ", packet " << to_string(packet);
    }
  }
  EXPECT_GT(with, sized(60, 6));
}

// Claim:  on filters with many ranges, packets never try more matchers than without ranges, of no more
//         than twice the rules, and neither do 99 % of them where these try many; each packet gets the
//         actions of before.
// Oracle: core's lookups, for packets of rules with ports at the ends of ranges; rules counted.
TEST(Ranges, SpareMatchersOnMadeFilters) {
  int with_ranges_in = 0;
  for (const char* family : {"acl", "fw", "ipc"}) {
    const auto text = rules::made_filters({family, sized(400, 100), 11});
    ASSERT_TRUE(text) << text.error().message;
    const auto rules = rules::parse_rules(*text, family, rules::Format::kClassbench);
    ASSERT_TRUE(rules) << rules.error().message;
    const Traffic traffic = rules::uniform_traffic(*rules, 1);
    OptimizeOptions plain;
    plain.max_growth = 2.0;
    const auto without = optimize(*rules, traffic, plain);
    const auto made = optimize(*rules, traffic, with_ranges(2));
    ASSERT_TRUE(made) << made.error().message;
    ASSERT_TRUE(without) << without.error().message;
    with_ranges_in += has_ranges(made->layout) ? 1 : 0;
    EXPECT_LE(made->after.matchers_tried, without->after.matchers_tried) << family;
    EXPECT_LE(made->after.matchers_tried_p99,
              std::max<std::size_t>(16, without->after.matchers_tried_p99))
        << family;
    EXPECT_LE(made->after.rules, 2U * rules->rules.size()) << family;
    EXPECT_NEAR(made->after.matchers_tried, expected_matchers_tried(made->layout, traffic), 1e-9);
    std::mt19937_64 random(3);
    for (int i = 0; i < 3000; ++i) {
      const FlowRule& rule = rules->rules[random() % rules->rules.size()];
      Packet packet;
      for (const FieldMatch& part : rule.match.fields()) {
        const U128 open = full_mask(part.field) & ~part.bits;
        const U128 drawn = random() % 3 == 0 ? U128{0} : random() % 2 == 0 ? open : U128{random()};
        packet.set(part.field, part.value | (drawn & open));
      }
      for (const MatchField port : {MatchField::kL4SrcPort, MatchField::kL4DstPort}) {
        if (random() % 4 == 0) packet.set(port, (packet.value(port) + random() % 3 - 1) & 0xffff);
      }
      ASSERT_TRUE(alike(look_up(*rules, 0, packet), decided(made->layout, packet)))
          << family << ": " << to_string(packet);
    }
    const Layout plain_again = without_ranges(made->layout);
    const auto verdict = verify::verify(*rules, plain_again);
    ASSERT_TRUE(verdict) << verdict.error().message;
    EXPECT_TRUE(verdict->equivalent) << family;
  }
  EXPECT_GE(with_ranges_in, 2);
}

// Claim:  99 % of the packets try no more matchers than without ranges where these are many. When only the mean
//         was asked, they tried 24 and 18 on these sets, and 23 and 15 without ranges.
// Oracle: the layout of masks.
TEST(Ranges, LeaveNoPacketsToWaitLonger) {
  for (const std::uint64_t seed : {5, 7}) {
    const auto text = rules::made_filters({"fw", 200, seed});
    ASSERT_TRUE(text) << text.error().message;
    const auto rules = rules::parse_rules(*text, "fw", rules::Format::kClassbench);
    ASSERT_TRUE(rules) << rules.error().message;
    const Traffic traffic = rules::uniform_traffic(*rules, 1);
    const auto without = optimize(*rules, traffic, with_ranges(0));
    const auto made = optimize(*rules, traffic, with_ranges(2));
    ASSERT_TRUE(without) << without.error().message;
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_LT(made->after.matchers_tried, without->after.matchers_tried);
    EXPECT_LE(made->after.matchers_tried_p99,
              std::max<std::size_t>(16, without->after.matchers_tried_p99));
  }
}

// Claim:  where cuts of masks are the better ones, their matchers compare ranges in the end, and packets
//         try a tenth fewer. Without that, the layout of masks is the best of this set.
// Oracle: the verifier, and the layout of masks.
TEST(Ranges, AreMadeOfMasksInTheEnd) {
  const auto text = rules::made_filters({"fw", 400, 2});
  ASSERT_TRUE(text) << text.error().message;
  const auto rules = rules::parse_rules(*text, "fw", rules::Format::kClassbench);
  ASSERT_TRUE(rules) << rules.error().message;
  const Traffic traffic = rules::uniform_traffic(*rules, 1);
  const auto without = optimize(*rules, traffic, with_ranges(0));
  const auto made = optimize(*rules, traffic, with_ranges(2));
  ASSERT_TRUE(without) << without.error().message;
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_TRUE(has_ranges(made->layout));
  EXPECT_LT(made->after.matchers_tried, 0.9 * without->after.matchers_tried);
  const auto verdict = verify::verify(*rules, made->layout);
  ASSERT_TRUE(verdict) << verdict.error().message;
  EXPECT_TRUE(verdict->equivalent);
}

// Claim:  a layout with ranges can be kept while rules come and go; the steps write ranges out.
// Oracle: the verifier, on the layout after a rule went.
TEST(Ranges, AreWrittenOutWhereStepsFollow) {
  RuleSet rules;
  Result<OptimizedLayout> made;
  for (std::uint64_t seed = 1; seed < 50 && !(made && has_ranges(made->layout)); ++seed) {
    rules = range_rules(12, 4, seed);
    made = optimize(rules, rules::uniform_traffic(rules, 1), with_ranges(2));
  }
  ASSERT_TRUE(made) << made.error().message;
  ASSERT_TRUE(has_ranges(made->layout));
  auto live = LiveLayout::create(rules, made->layout, {with_ranges(2)});
  ASSERT_TRUE(live) << live.error().message;
  EXPECT_FALSE(has_ranges(live->layout()));
  const auto verdict = verify::verify(rules, live->layout());
  ASSERT_TRUE(verdict) << verdict.error().message;
  EXPECT_TRUE(verdict->equivalent);
}

}  // namespace
}  // namespace greynic::optimizer
