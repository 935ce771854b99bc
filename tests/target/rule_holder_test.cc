#include "greynic/target/rule_holder.h"

#include <gtest/gtest.h>

#include "greynic/target/target.h"

namespace greynic::target {
namespace {

using F = MatchField;

/// Insists on an ether_type in every rule and searches the reversed order of matchers fastest: both
/// as plain to see as a real device's words and form. Keeps what was installed.
class Device final : public Target, public RuleHolder {
 public:
  Info info() const override { return {.name = "device"}; }
  Result<void> measure(std::span<const MeasureRequest>, const ObservationSink&) override {
    return {};
  }
  RuleHolder& rules() override { return *this; }

  RuleSet spell_out(RuleSet rules) const override {
    for (FlowRule& rule : rules.rules) rule.match.set(F::kEtherType, 0x0800);
    return rules;
  }
  Result<void> check(const FittedLayout&, const Placement&) override { return {}; }
  Result<void> install(const FittedLayout& layout, const Traffic*, const Placement&) override {
    installed = layout.layout();
    return {};
  }
  Result<void> roll_back() override {
    installed = {};
    return {};
  }

  Layout installed;

 protected:
  Layout spelled_out(const Layout& layout) const override {
    RuleSet rules;
    for (const Matcher& matcher : layout.tables.front().matchers) {
      for (const FlowRule& rule : matcher.rules) rules.rules.push_back(rule);
    }
    return flat_layout(spell_out(rules));
  }
  Layout fastest(Layout layout) const override {
    for (Matcher& matcher : layout.tables.front().matchers) matcher.priority = 7;
    return layout;
  }
};

RuleSet two_rules() {
  RuleSet rules;
  for (const F field : {F::kIpv4Src, F::kIpv4Dst}) {
    FlowRule rule;
    rule.match.set(field, 1);
    rule.priority = static_cast<RulePriority>(rules.rules.size());
    rule.actions = {Action::drop()};
    rules.rules.push_back(rule);
  }
  return rules;
}

// Claim:  the same layout goes into a device, whether its rules were spelled out before it was made
//         (tune), it comes from a file without the device's words (apply), or it was fitted before.
// Oracle: what the device holds afterwards.
TEST(RuleHolder, InstallsOneLayoutForOneSetOfRules) {
  Device device;
  RuleHolder& holder = device.rules();
  const RuleSet rules = two_rules();
  const FittedLayout tuned = holder.fit(flat_layout(holder.spell_out(rules)));
  ASSERT_TRUE(holder.install(tuned, nullptr, {}));
  const Layout by_tune = device.installed;
  EXPECT_EQ(by_tune, tuned.layout());
  ASSERT_TRUE(holder.install(holder.fit(flat_layout(rules)), nullptr, {}));
  EXPECT_EQ(device.installed, by_tune);
  ASSERT_TRUE(holder.install(holder.fit(by_tune), nullptr, {}));
  EXPECT_EQ(device.installed, by_tune);
  EXPECT_NE(device.installed.tables.front().matchers.front().mask.bits(F::kEtherType), 0U);
  EXPECT_EQ(device.installed.tables.front().matchers.front().priority, 7U);
}

// Claim:  the form as written has the device's words and keeps its order and tables.
TEST(RuleHolder, KeepsTheFormWhenAskedTo) {
  Device device;
  const Layout plain = flat_layout(device.spell_out(two_rules()));
  EXPECT_EQ(device.fit(flat_layout(two_rules()), LayoutForm::kAsWritten).layout(), plain);
}

// Claim:  a target without rules says so to whoever installs, checks or reads some.
TEST(RuleHolder, OfATargetWithoutRulesRefuses) {
  class Plain final : public Target {
   public:
    Info info() const override { return {.name = "plain"}; }
    Result<void> measure(std::span<const MeasureRequest>, const ObservationSink&) override {
      return {};
    }
  };
  Plain plain;
  RuleHolder& holder = plain.rules();
  const FittedLayout layout = holder.fit(flat_layout(two_rules()));
  EXPECT_EQ(layout.layout(), flat_layout(two_rules()));
  EXPECT_EQ(holder.check(layout, {}).error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(holder.install(layout, nullptr, {}).error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(holder.counted_rules().error().code, ErrorCode::kUnsupported);
  EXPECT_TRUE(holder.roll_back());
}

}  // namespace
}  // namespace greynic::target
