/// Hardware of few entries before a slow path.

#include "greynic/optimizer/split.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "greynic/rules/read_rules.h"
#include "greynic/rules/traffic.h"
#include "greynic/verify/verify.h"
#include "made_rules.h"
#include "random_rules.h"

namespace greynic::optimizer {
namespace {

/// What one packet costs, by core's lookup: matchers of tables that are not software's, and the price
/// where the last of them sends it on or misses it.
struct Walked {
  double tried = 0.0;
  bool slow = false;
};
Walked walked(const Layout& hardware, const Packet& packet, std::uint32_t slow_table) {
  const Lookup found = look_up(hardware, packet);
  const bool slow =
      found.rule == nullptr ||
      std::any_of(found.rule->actions.begin(), found.rule->actions.end(),
                  [&](const Action& action) {
                    return action.kind == ActionKind::kJump && action.number == slow_table;
                  });
  return {static_cast<double>(found.matchers_tried), slow};
}

/// Core's lookup ends with the jump where nothing behind it matches.
void expect_right(const RuleSet& rules, const Layout& layout, const Packet& packet) {
  const FlowRule* const wanted = look_up(rules, 0, packet);
  const FlowRule* got = look_up(layout, packet).rule;
  if (got != nullptr && got->actions.front().kind == ActionKind::kJump) got = nullptr;
  ASSERT_EQ(wanted == nullptr, got == nullptr) << to_string(packet);
  if (wanted != nullptr) {
    ASSERT_EQ(wanted->actions, got->actions) << to_string(packet);
  }
}

// Claim:  hardware and slow path do to each packet what the rules do, with and without the hot flows'
//         entries; the hardware holds no more entries than it may; the cost that is told is right.
// Oracle: core's lookups of every packet there is.
TEST(Split, IsRightForEveryPacketAndKeepsToItsEntries) {
  std::size_t with_hyper = 0;
  std::size_t with_masks = 0;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    const RuleSet rules = small_random_rules(8 + seed % 60, 5, seed);
    const Traffic traffic = rules::zipf_traffic(rules, 1.2, seed);
    SplitOptions options;
    options.entries = 2 + seed % 14;
    options.slow_path = seed % 3 == 0 ? 2.0 : 50.0;
    options.idle_seconds = seed % 2 == 0 ? 10 : 0;
    if (seed % 4 == 1) options.act_above = 1.0;  // no hyper mask
    const auto made = split_hardware(rules, traffic, options);
    ASSERT_TRUE(made) << "seed " << seed << ": " << made.error().message;
    const Layout hardware = hardware_of(made->made.layout);
    EXPECT_LE(hardware.rule_count(), options.entries) << seed;
    EXPECT_EQ(made->made.layout.tables.size(), hardware.tables.size() + 1) << seed;
    const Layout left = without_idle(made->made.layout);
    for (unsigned number = 0; number < 1U << SmallSpace::kBits; ++number) {
      const Packet packet = SmallSpace::packet(number);
      ASSERT_NO_FATAL_FAILURE(expect_right(rules, made->made.layout, packet));
      ASSERT_NO_FATAL_FAILURE(expect_right(rules, left, packet));
    }
    double cost = 0.0;
    double all = 0.0;
    for (const TrafficFlow& flow : traffic.flows) {
      const Walked way = walked(hardware, flow.packet, made->slow_table);
      cost += flow.weight * (way.tried + (way.slow ? options.slow_path : 0.0));
      all += flow.weight;
    }
    EXPECT_NEAR(made->cost, cost / all, 1e-6 * made->cost) << seed;
    with_hyper += made->hyper_entries > 0 ? 1 : 0;
    with_masks += hardware.rule_count() > made->hyper_entries + 1 ? 1 : 0;
  }
  EXPECT_GE(with_hyper, 20U);
  EXPECT_GE(with_masks, 20U);
}

// Claim:  more entries never cost much more, and all of them in software is what none costs at most.
// Oracle: the costs of growing hardware, on rules that nobody tuned to.
TEST(Split, CostsLessWithMoreEntries) {
  const RuleSet rules = made_rules("made:acl:600:31");
  const Traffic traffic = rules::zipf_traffic(rules, 1.1, 3);
  double before = 200.0;
  for (const std::size_t entries : {4UL, 16UL, 64UL, 256UL}) {
    SplitOptions options;
    options.entries = entries;
    const auto made = split_hardware(rules, traffic, options);
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_LE(made->cost, 1.02 * before) << entries;
    EXPECT_LE(made->cost, options.slow_path + 4.0) << entries;
    before = made->cost;
  }
  EXPECT_LE(before, 25.0);
}

/// So many flows of each rule, drawn anew for each seed.
Traffic flows_of(const RuleSet& rules, int count, std::uint64_t seed) {
  const Traffic weights = rules::zipf_traffic(rules, 1.1, 3);
  Traffic traffic;
  for (int i = 0; i < count; ++i) {
    const Traffic drawn = rules::uniform_traffic(rules, 100 * seed + static_cast<std::uint64_t>(i));
    for (std::size_t r = 0; r < drawn.flows.size(); ++r) {
      traffic.flows.push_back(drawn.flows[r]);
      traffic.flows.back().weight = weights.flows[r].weight / (i + 1);
    }
  }
  return traffic;
}

// Claim:  entries that are chosen for flows which nobody has seen serve these as well, those that are
//         chosen for known flows serve the known better, and what is told of new flows comes near what
//         they cost.
// Oracle: flows of the same rules that were drawn apart.
TEST(Split, ServesNewFlowsWhereItIsAskedTo) {
  for (const char* name : {"made:acl:500:41", "made:ipc:500:42"}) {
    const RuleSet rules = made_rules(name);
    const Traffic known = flows_of(rules, 8, 1);
    const Traffic fresh = flows_of(rules, 8, 2);
    std::map<double, std::pair<double, double>> costs;
    for (const double share : {0.0, 1.0}) {
      SplitOptions options;
      options.entries = 40;
      options.new_flows = share;
      const auto made = split_hardware(rules, known, options);
      ASSERT_TRUE(made) << made.error().message;
      double slow = 0.0;
      const double cost = split_cost(hardware_of(made->made.layout), fresh, made->slow_table,
                                     options.slow_path, slow);
      costs[share] = {made->cost, cost};
      EXPECT_NEAR(made->cost_for_new, cost, 0.15 * cost) << name << " " << share;
      if (share == 1.0) {
        EXPECT_EQ(made->hyper_entries, 0U);
      }
    }
    EXPECT_LE(costs[1.0].second, 1.02 * costs[0.0].second) << name;
    EXPECT_LE(costs[0.0].first, 1.02 * costs[1.0].first) << name;
  }
}

// Claim:  a hyper mask comes only where it saves the share that was asked for.
// Oracle: the same rules with a share that nothing can save.
TEST(Split, OpensAHyperMaskOnlyWhereItSavesEnough) {
  const RuleSet rules = made_rules("made:fw:300:8");
  const Traffic traffic = rules::zipf_traffic(rules, 1.1, 3);
  SplitOptions options;
  options.entries = 40;
  const auto usual = split_hardware(rules, traffic, options);
  ASSERT_TRUE(usual) << usual.error().message;
  EXPECT_GT(usual->hyper_entries, 0U);
  EXPECT_LT(usual->cost, (1.0 - options.act_above) * usual->cost_without_hyper);
  options.act_above = 1.0;
  const auto never = split_hardware(rules, traffic, options);
  ASSERT_TRUE(never) << never.error().message;
  EXPECT_EQ(never->hyper_entries, 0U);
  EXPECT_DOUBLE_EQ(never->cost, never->cost_without_hyper);
}

// Claim:  verify refutes layouts where idle entries hide that nothing stands behind them, and such as
//         would let rules of two matchers leave.
// Oracle: layouts of one rule, made right and wrong on purpose.
TEST(Split, IsRefutedWhenWhatIsBehindIdleEntriesIsWrong) {
  FlowRule hot;
  hot.match.set(MatchField::kIpv4Dst, 0x0a000001);
  hot.actions = {Action::forward("p1")};
  RuleSet one;
  one.rules.push_back(hot);
  const auto judge = [&](std::vector<std::uint32_t> idle) {
    Layout layout{{{0, {}}}};
    for (const std::uint32_t seconds : idle) {
      const auto place = static_cast<RulePriority>(layout.tables.front().matchers.size());
      layout.tables.front().matchers.push_back({hot.match.mask(), place, {hot}, seconds});
    }
    return verify::verify(one, layout);
  };
  ASSERT_TRUE(judge({5}));
  EXPECT_FALSE(judge({5})->equivalent);
  EXPECT_TRUE(judge({0})->equivalent);
  EXPECT_TRUE(judge({5, 0})->equivalent);
  EXPECT_TRUE(judge({0, 5})->equivalent);
  const auto two = judge({5, 5});
  ASSERT_FALSE(two);
  EXPECT_EQ(two.error().code, ErrorCode::kUnsupported);
}

TEST(Split, RefusesWhatItCannotSplit) {
  const auto code = [](const RuleSet& rules, const SplitOptions& options) {
    const auto made = split_hardware(rules, rules::uniform_traffic(rules, 1), options);
    return made ? ErrorCode::kInternal : made.error().code;
  };
  const RuleSet rules = small_random_rules(10, 3, 1);
  EXPECT_EQ(code(rules, {.entries = 1}), ErrorCode::kBadInput);
  EXPECT_EQ(code(rules, {.entries = 5, .slow_path = 0.0}), ErrorCode::kBadInput);
  EXPECT_EQ(code(rules, {.entries = 5, .slow_path = std::nan("")}), ErrorCode::kBadInput);
  EXPECT_EQ(code({}, {.entries = 5}), ErrorCode::kBadInput);
  EXPECT_EQ(code(small_random_rules(20, 3, 1, 3), {.entries = 5}), ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace greynic::optimizer
