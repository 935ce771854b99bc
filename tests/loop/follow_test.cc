#include "greynic/loop/follow.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "greynic/files/core_json.h"

namespace greynic::loop {
namespace {

/// A switch that counts what hits its rules, packet by packet.
class CountingSwitch final : public target::RuleHolder {
 public:
  Result<void> check(const target::FittedLayout&, const target::Placement&) override { return {}; }
  Result<void> install(const target::FittedLayout& layout, const Traffic*,
                       const target::Placement&) override {
    layout_ = layout.layout();
    counts_.clear();
    for (const LayoutTable& table : layout_.tables) {
      for (const Matcher& matcher : table.matchers) {
        for (const FlowRule& rule : matcher.rules) {
          counts_.push_back({rule, 0, 0});
          counts_.back().rule.table = table.id;
        }
      }
    }
    ++installs;
    return {};
  }
  Result<void> roll_back() override { return {}; }
  Result<std::vector<target::CountedRule>> counted_rules() override { return counts_; }

  /// So many packets to 10.0.0.`host`.
  void send(unsigned host, std::uint64_t packets) {
    Packet packet;
    packet.set(MatchField::kIpv4Dst, 0x0a000000 + host);
    const Lookup found = look_up(layout_, packet);
    for (auto& row : counts_) {
      if (row.rule.match == found.rule->match) row.packets += packets;
    }
    tried += found.matchers_tried * packets;
  }

  std::size_t tried = 0;
  int installs = 0;

 private:
  Layout layout_;
  std::vector<target::CountedRule> counts_;
};

constexpr unsigned kMasks = 8;

/// Rule i takes the host 2^i..2^(i+1)-1 under a mask of its own; no two overlap.
RuleSet disjoint_rules() {
  RuleSet rules;
  for (unsigned i = 0; i < kMasks; ++i) {
    FlowRule rule;
    rule.match.set(MatchField::kIpv4Dst, 0x0a000000 + (1U << i), 0xffffffff & ~((1U << i) - 1));
    rule.priority = i;
    rule.actions = {Action::forward("p" + std::to_string(i))};
    rule.from = {i};
    rules.rules.push_back(std::move(rule));
  }
  return rules;
}

FollowOptions quick() {
  FollowOptions options;
  options.fewest_packets = 10;
  return options;
}

std::string fresh_folder(const std::string& name) {
  const auto folder = std::filesystem::path(testing::TempDir()) / ("follow_" + name);
  std::filesystem::remove_all(folder);
  return folder.string();
}

// Claim:  where a rule far behind becomes hot, one step brings it forward, the gain is confirmed by
//         what the switch counts, and the order is then left alone.
// Oracle: the switch's own walk of each packet.
TEST(Follow, BringsHotRulesForwardAndConfirmsTheGain) {
  CountingSwitch there;
  const RuleSet rules = disjoint_rules();
  auto follower = Follower::start(rules, flat_layout(rules), there, quick());
  ASSERT_TRUE(follower) << follower.error().message;
  const unsigned hot = 1U << (kMasks - 1);
  there.send(hot, 1000);
  EXPECT_EQ(there.tried, 8000U);
  const auto stepped = follower->poll();
  ASSERT_TRUE(stepped) << stepped.error().message;
  EXPECT_EQ(stepped->did, FollowDid::kStepped);
  EXPECT_DOUBLE_EQ(stepped->packets, 1000.0);
  EXPECT_DOUBLE_EQ(stepped->tried_now, 8.0);
  EXPECT_DOUBLE_EQ(stepped->tried_predicted, 1.0);
  there.tried = 0;
  there.send(hot, 500);
  EXPECT_EQ(there.tried, 500U);
  EXPECT_EQ(follower->poll()->did, FollowDid::kConfirmed);
  there.send(hot, 500);
  EXPECT_EQ(follower->poll()->did, FollowDid::kLeft);
  EXPECT_EQ(there.installs, 2);
}

// Claim:  when the traffic turns again before the gain comes, the layout of before returns.
TEST(Follow, TakesAStepBackWhoseGainDoesNotCome) {
  CountingSwitch there;
  const RuleSet rules = disjoint_rules();
  auto follower = Follower::start(rules, flat_layout(rules), there, quick());
  ASSERT_TRUE(follower);
  const Layout before = follower->layout();
  there.send(1U << (kMasks - 1), 1000);
  ASSERT_EQ(follower->poll()->did, FollowDid::kStepped);
  EXPECT_NE(follower->layout(), before);
  there.send(1, 1000);  // the first rule is hot now, which the step put second
  EXPECT_EQ(follower->poll()->did, FollowDid::kRolledBack);
  EXPECT_EQ(follower->layout(), before);
}

// Claim:  few packets, small gains and a bound on the rules of a step keep it from acting.
TEST(Follow, ActsOnlyWhereItIsTold) {
  const RuleSet rules = disjoint_rules();
  CountingSwitch there;
  FollowOptions options = quick();
  options.most_rules = 3;
  auto follower = Follower::start(rules, flat_layout(rules), there, options);
  ASSERT_TRUE(follower);
  there.send(1, 9);
  EXPECT_EQ(follower->poll()->did, FollowDid::kWaited);
  there.send(1, 1000);  // first already
  EXPECT_EQ(follower->poll()->did, FollowDid::kLeft);
  there.send(1, 100);
  there.send(2, 102);  // to exchange them saves under 1 %
  EXPECT_EQ(follower->poll()->did, FollowDid::kLeft);
  there.send(1U << (kMasks - 1), 1000);  // it would pass 7 rules
  EXPECT_EQ(follower->poll()->did, FollowDid::kLeft);
  there.send(4, 1000);  // third: passes two, three change
  const auto stepped = follower->poll();
  EXPECT_EQ(stepped->did, FollowDid::kStepped);
  EXPECT_EQ(stepped->rules_changed, 3U);
}

// Claim:  the store has the layout of the device; the next follower goes on with it, unless it is
//         none of these rules. A layout that is wrong for the rules is never installed.
TEST(Follow, GoesOnFromItsStoreAndInstallsNothingUnproven) {
  const RuleSet rules = disjoint_rules();
  CountingSwitch there;
  FollowOptions options = quick();
  options.store = fresh_folder("store");
  Layout kept;
  {
    auto follower = Follower::start(rules, flat_layout(rules), there, options);
    ASSERT_TRUE(follower) << follower.error().message;
    EXPECT_FALSE(follower->resumed());
    there.send(1U << (kMasks - 1), 1000);
    ASSERT_EQ(follower->poll()->did, FollowDid::kStepped);
    kept = follower->layout();
  }
  auto again = Follower::start(rules, flat_layout(rules), there, options);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_TRUE(again->resumed());
  EXPECT_EQ(again->layout(), kept);

  RuleSet others = rules;
  others.rules[0].actions = {Action::drop()};
  auto changed = Follower::start(others, flat_layout(others), there, options);
  ASSERT_TRUE(changed);
  EXPECT_FALSE(changed->resumed());

  const int installs = there.installs;
  options.store = fresh_folder("wrong");
  const auto wrong = Follower::start(rules, flat_layout(others), there, options);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, ErrorCode::kInternal);
  EXPECT_EQ(there.installs, installs);
}

}  // namespace
}  // namespace greynic::loop
