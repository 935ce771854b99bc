/// rte_flow's templates and asynchronous queue, against a port in memory that is strict about their
/// contract. Needs no device and no rights.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "dpdk/rte_driver.h"
#include "dpdk/rte_path.h"
#include "fake_rte_port.h"
#include "random_rules.h"

namespace greynic::flows {
namespace {

using F = MatchField;
using Traits = FakeRtePort::Traits;

constexpr std::uint16_t kPort = 0;

std::unique_ptr<RteDriver> driver_on(const FakeRtePort&) {
  return std::make_unique<RteDriver>(FakeRtePort::calls(), kPort, "net_fake",
                                     choose_path(FakeRtePort::calls(), kPort));
}

bool chooses_a_header(MatchField field) {
  return field == F::kEtherType || field == F::kIpProtocol || field == F::kVlanPresent;
}

std::vector<Action> random_actions(std::mt19937_64& random) {
  Action queue{.kind = ActionKind::kForward};
  queue.text = "queue:" + std::to_string(random() % 8);
  switch (random() % 4) {
    case 0:
      return {Action::drop()};
    case 1:
      return {queue};
    case 2:
      return {{.kind = ActionKind::kCount}, Action::drop()};
    default:
      return {{.kind = ActionKind::kJump, .number = 1 + random() % 3}};
  }
}

/// `masks` random masks with rules of random values under each: a mask is one priority of one of
/// three groups, so that no two rules contradict each other.
RuleSet rules_under_masks(std::size_t masks, std::size_t rules_each, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto part = [](MatchField field, std::mt19937_64& engine) -> std::optional<FieldMatch> {
    switch (field) {
      case F::kEthernetDst:
      case F::kIpv4Src:
      case F::kIpv4Dst:
      case F::kIpv6Src:
      case F::kIpv6Dst:
      case F::kL4SrcPort:
      case F::kL4DstPort:
        return any_masked(field, engine);
      default:
        return std::nullopt;
    }
  };
  const auto drop = [](const Match&, std::mt19937_64&) {
    return std::vector<Action>{Action::drop()};
  };
  RuleSet set;
  const RuleSet samples = random_rules({.part = part, .actions = drop}, masks, seed);
  for (std::size_t mask = 0; mask < masks; ++mask) {
    std::set<Match> seen;
    for (std::size_t i = 0; i < rules_each; ++i) {
      FlowRule rule;
      rule.table = static_cast<std::uint32_t>(mask % 3);
      rule.priority = static_cast<RulePriority>(mask / 3);
      for (const FieldMatch& field : samples.rules[mask].match.fields()) {
        const U128 value =
            chooses_a_header(field.field) ? field.value : random_value(field.field, random);
        rule.match.set(field.field, value & field.bits, field.bits);
      }
      rule.actions = random_actions(random);
      if (seen.insert(rule.match).second) set.rules.push_back(std::move(rule));
    }
  }
  return set;
}

std::multiset<std::string> held_one_by_one(const RuleSet& rules) {
  FakeRtePort port({.queues = 0});
  const auto driver = driver_on(port);
  const auto applied = driver->apply(rules);
  EXPECT_TRUE(applied.has_value()) << applied.error().message;
  return port.rules();
}

void expect_contract_kept(const FakeRtePort& port) {
  for (const std::string& what : port.violations) ADD_FAILURE() << what;
}

void expect_empty(const FakeRtePort& port) {
  EXPECT_EQ(port.rules().size(), 0U);
  EXPECT_EQ(port.tables(), 0U);
  EXPECT_EQ(port.patterns(), 0U);
  EXPECT_EQ(port.actions(), 0U);
}

// Claim:  1,000 random rules are the same rules in the port whether they go in by templates or one
//         by one; there is one pattern template a mask and one table a mask, group and priority;
//         nothing stays behind.
// Oracle: the port's own texts of the rules that came one by one.
TEST(RteTemplates, HoldTheRulesThatGoInOneByOne) {
  const std::uint64_t seed = 5;
  const RuleSet rules = rules_under_masks(/*masks=*/50, /*rules_each=*/30, seed);
  ASSERT_GE(rules.rules.size(), 1000U) << "seed " << seed;
  const auto expected = held_one_by_one(rules);
  std::set<std::string> masks;
  std::set<std::string> tables;
  for (const std::string& rule : expected) {
    masks.insert(FakeRtePort::mask_of(rule));
    tables.insert(FakeRtePort::place_of(rule) + FakeRtePort::mask_of(rule));
  }
  FakeRtePort port({.idle_pulls = 2, .results_a_pull = 7});
  auto driver = driver_on(port);
  const auto applied = driver->apply(rules);
  ASSERT_TRUE(applied.has_value()) << applied.error().message;
  EXPECT_EQ(port.rules(), expected) << "seed " << seed;
  EXPECT_EQ(port.patterns(), masks.size());
  EXPECT_EQ(port.tables(), tables.size());
  EXPECT_EQ(port.actions(), 4U);
  const auto listed = driver->list();
  ASSERT_TRUE(listed.has_value());
  ASSERT_EQ(listed->rules.size(), rules.rules.size());
  for (std::size_t i = 0; i < rules.rules.size(); ++i) {
    EXPECT_EQ(listed->rules[i].match, rules.rules[i].match);
  }
  ASSERT_TRUE(driver->roll_back().has_value());
  expect_empty(port);
  ASSERT_TRUE(driver->apply(rules).has_value());
  driver.reset();
  expect_empty(port);
  expect_contract_kept(port);
}

// Claim:  a queue is filled to the last place and never beyond, whatever it holds.
TEST(RteTemplates, FillTheQueueAndNoMore) {
  const RuleSet rules = rules_under_masks(/*masks=*/5, /*rules_each=*/20, /*seed=*/6);
  for (const std::uint32_t size : {1U, 2U, 5U, 64U}) {
    FakeRtePort port({.queue_size = size, .idle_pulls = 1, .results_a_pull = 3});
    const auto driver = driver_on(port);
    ASSERT_TRUE(driver->apply(rules).has_value());
    EXPECT_EQ(port.rules().size(), rules.rules.size());
    EXPECT_EQ(port.most_under_way, size);
    expect_contract_kept(port);
  }
}

// Claim:  at whichever rule the port says no, when asked or later in the queue, the rules of before
//         are there again, no other, and the message names the rule.
// Oracle: the port's rules before.
TEST(RteTemplates, ARefusalAnywherePutsTheRulesOfBeforeBack) {
  const RuleSet before = rules_under_masks(/*masks=*/4, /*rules_each=*/3, /*seed=*/7);
  const RuleSet after = rules_under_masks(/*masks=*/6, /*rules_each=*/4, /*seed=*/8);
  for (const bool later : {false, true}) {
    for (std::size_t n = 0; n < after.rules.size(); ++n) {
      FakeRtePort port({.queue_size = 8, .results_a_pull = 3});
      const auto driver = driver_on(port);
      ASSERT_TRUE(driver->apply(before).has_value());
      const auto there = port.rules();
      (later ? port.traits.failed_create : port.traits.refused_create) = port.creations + n;
      const auto refused = driver->apply(after);
      ASSERT_FALSE(refused.has_value());
      EXPECT_EQ(refused.error().code, ErrorCode::kRefused);
      EXPECT_NE(refused.error().message.find("rule " + std::to_string(n) + " ("), std::string::npos)
          << refused.error().message;
      // Nothing is begun after a refusal, beyond what was under way; then the rules of before.
      const std::size_t under_way = later ? port.traits.queue_size : 0;
      EXPECT_LE(port.creations, before.rules.size() + n + 1 + under_way + before.rules.size());
      EXPECT_EQ(port.rules(), there) << "at rule " << n;
      EXPECT_EQ(driver->list()->rules.size(), before.rules.size());
      expect_contract_kept(port);
    }
  }
}

// Claim:  a mask that the port does not take is found before any rule is touched.
TEST(RteTemplates, ARefusedMaskTouchesNoRule) {
  FakeRtePort port({.no_item = RTE_FLOW_ITEM_TYPE_IPV6});
  const auto driver = driver_on(port);
  FlowRule good;
  good.match.set(F::kEtherType, 0x0800);
  good.match.set(F::kIpv4Dst, 1);
  ASSERT_TRUE(driver->apply({{good}, ""}).has_value());
  const auto there = port.rules();
  FlowRule bad;
  bad.priority = 1;
  bad.match.set(F::kEtherType, 0x86dd);
  bad.match.set(F::kIpv6Dst, 1);
  for (const bool whole : {false, true}) {
    const auto refused =
        whole ? driver->apply({{good, bad}, ""}) : driver->check({{good, bad}, ""});
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);
    EXPECT_NE(refused.error().message.find("ipv6_dst"), std::string::npos)
        << refused.error().message;
    EXPECT_NE(refused.error().message.find("no such item"), std::string::npos);
  }
  EXPECT_EQ(port.rules(), there);
  EXPECT_EQ(port.creations, 1U);
  EXPECT_EQ(port.destructions, 0U);
  expect_contract_kept(port);
}

// Claim:  a port that stops answering ends in a message, at once at every later call, and no
//         operation is asked of it again.
TEST(RteTemplates, ASilentPortEndsInAMessage) {
  FakeRtePort port({});
  RteDriver driver(FakeRtePort::calls(), kPort, "net_fake",
                   choose_path(FakeRtePort::calls(), kPort, std::chrono::milliseconds(1)));
  const RuleSet rules = rules_under_masks(/*masks=*/2, /*rules_each=*/2, /*seed=*/9);
  port.traits.silent = true;
  const auto silent = driver.apply(rules);
  ASSERT_FALSE(silent.has_value());
  EXPECT_NE(silent.error().message.find("gives no result for 1 ms"), std::string::npos)
      << silent.error().message;
  const std::size_t asked = port.creations;
  ASSERT_FALSE(driver.apply(rules).has_value());
  EXPECT_EQ(port.creations, asked);
}

// Claim:  the path is the port's choice, and probing says which one it is and why.
TEST(RteTemplates, ThePortChoosesThePathAndProbingSaysSo) {
  struct Case {
    Traits traits;
    std::string note;
    bool templates;
  };
  for (const Case& one :
       {Case{{}, "by template tables and an asynchronous queue of 64 operations", true},
        Case{{.queue_size = 100'000}, "queue of 1024 operations", true},
        Case{{.queues = 0}, "one by one (rte_flow_create): the port offers no templates", false},
        Case{{.configures = false},
             "refuses to be configured for them: somebody else has it",
             false}}) {
    FakeRtePort port(one.traits);
    const auto driver = driver_on(port);
    const auto offer = driver->probe();
    ASSERT_TRUE(offer.has_value());
    EXPECT_NE(offer->notes.front().find(one.note), std::string::npos) << offer->notes.front();
    EXPECT_FALSE(offer->fields.empty());
    EXPECT_EQ(port.most_under_way > 0, one.templates);
    expect_empty(port);
    expect_contract_kept(port);
  }
}

}  // namespace
}  // namespace greynic::flows
