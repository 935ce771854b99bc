#include "greynic/flows/few_masks.h"

#include <gtest/gtest.h>

#include <random>

#include "greynic/flows/kinds.h"
#include "greynic/rules/traffic.h"
#include "private_ovs.h"

namespace greynic::flows {
namespace {

using F = MatchField;

/// Filter rules whose prefixes overlap, as firewalls write them; each forwards to its own mark.
RuleSet filter_rules(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  RuleSet set;
  for (std::size_t i = 0; i < count; ++i) {
    FlowRule rule;
    const auto bits = [&] { return U128{0xffffffffu << (random() % 25)}; };
    const U128 src = bits() & 0xffffffffu;
    const U128 dst = bits() & 0xffffffffu;
    rule.match.set(F::kEtherType, 0x0800);
    rule.match.set(F::kIpProtocol, random() % 2 == 0 ? 6 : 17);
    rule.match.set(F::kIpv4Src, random() & src, src);
    rule.match.set(F::kIpv4Dst, random() & dst, dst);
    if (random() % 2 == 0) rule.match.set(F::kL4DstPort, random() % 1024);
    rule.priority = static_cast<RulePriority>(i);
    rule.actions = {{.kind = ActionKind::kSetField,
                     .field = F::kPacketMark,
                     .value = i,
                     .bits = full_mask(F::kPacketMark)}};
    set.rules.push_back(std::move(rule));
  }
  return set;
}

// Claim:  the reading table changes no packet's fate.
// Oracle: core's reference lookup in the layout without it.
// Method: packets inside each of 300 random rules, and as many that hit whatever they hit.
TEST(FewMasks, LeavesEveryPacketToTheSameRule) {
  const std::uint64_t seed = 4;
  const RuleSet rules = filter_rules(300, seed);
  const Layout plain = flat_layout(rules);
  const auto reading = few_masks(plain);
  ASSERT_TRUE(reading.has_value()) << reading.error().message;
  Traffic traffic = rules::uniform_traffic(rules, seed);
  for (const TrafficFlow& flow : rules::uniform_traffic(filter_rules(300, seed + 1), seed).flows) {
    traffic.flows.push_back(flow);
  }
  for (const TrafficFlow& flow : traffic.flows) {
    const Lookup before = look_up(plain, flow.packet);
    const Lookup after = look_up(*reading, flow.packet);
    if (before.rule == nullptr) {
      // It ends in the reading table's jump, whose target has nothing for it.
      ASSERT_TRUE(after.rule == nullptr || after.rule->table == 0) << to_string(flow.packet);
    } else {
      ASSERT_NE(after.rule, nullptr);
      ASSERT_EQ(after.rule->actions, before.rule->actions) << "seed " << seed;
    }
  }
}

// Claim:  rules that use every register leave no room to read, and that is said.
TEST(FewMasks, SaysWhenNoRegisterIsFree) {
  FlowRule rule;
  for (unsigned i = 0; i < 16; ++i) {
    rule.match.set(static_cast<F>(static_cast<unsigned>(F::kReg0) + i), 1);
  }
  rule.match.set(F::kIpv4Src, 1);
  const auto refused = few_masks(flat_layout({{rule}, ""}));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);
}

// Claim:  on a real switch the reading table cuts masks and cost of a filter list by a lot.
// Oracle: the switch's own dump and its packet thread's CPU time, under the same traffic.
TEST(FewMasks, MakesARealSwitchFaster) {
  GREYNIC_NEEDS_OVS();
  const RuleSet rules = filter_rules(400, 9);
  const Traffic traffic = rules::uniform_traffic(rules, 9);
  auto opened = ovs_kind().open({.text = "ovs:br0", .kind = "ovs", .place = "br0", .options = {}});
  ASSERT_TRUE(opened.has_value()) << opened.error().message;
  target::RuleHolder& holder = (*opened)->rules();
  const auto measured = [&](const target::FittedLayout& layout) {
    const auto applied = holder.install(layout, &traffic, {});
    EXPECT_TRUE(applied.has_value()) << (applied ? "" : applied.error().message);
    auto got = target::measure_one(
        **opened, {.configuration = {{"message_bytes", 22.0}, {"exact_match_cache", false}},
                   .duration = std::chrono::milliseconds(300)});
    EXPECT_TRUE(got.has_value());
    EXPECT_EQ(got->outcome, Outcome::kMeasured) << got->reason;
    return *got;
  };
  const Layout plain = flat_layout(rules);
  const Observation before = measured(holder.fit(plain, target::LayoutForm::kAsWritten));
  const Observation after = measured(holder.fit(plain));
  EXPECT_LE(after.value("megaflow_masks").value_or(99), 6.0);
  EXPECT_GT(before.value("megaflow_masks").value_or(0), 20.0);
  EXPECT_LT(after.value("packet_cost_ns").value_or(1e9),
            0.7 * before.value("packet_cost_ns").value_or(0));
  // With the rules gone the target measures configurations again.
  ASSERT_TRUE(holder.roll_back().has_value());
}

}  // namespace
}  // namespace greynic::flows
