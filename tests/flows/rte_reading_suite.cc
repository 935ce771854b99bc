/// Rules in rte_flow's form and back, over every field and action that the driver has for it: what
/// net_tap, the only port in software, does not take is held against DPDK's headers here. Needs no
/// device and no rights.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "dpdk/rte_driver.h"
#include "fake_rte_port.h"
#include "random_rules.h"
#include "rte_reading.h"

namespace greynic::flows {
namespace {

using F = MatchField;

bool looks_at(const Match& match, std::initializer_list<MatchField> fields) {
  return std::any_of(fields.begin(), fields.end(),
                     [&](MatchField field) { return match.mask().bits(field) != 0; });
}

std::optional<FieldMatch> part_for_rte(MatchField field, std::mt19937_64& random) {
  if (!rte_takes(field)) return std::nullopt;
  constexpr std::array<unsigned, 5> kTypes = {0x0800, 0x86dd, 0x0806, 0x8847, 0x88cc};
  switch (field) {
    case F::kEtherType:
    case F::kInnerEtherType:
      return exactly(field, kTypes[random() % kTypes.size()]);
    case F::kMetadata: {
      FieldMatch part = any_masked(field, random);
      part.bits = std::max<U128>(1, part.bits & 0xffffffff);
      part.value &= part.bits;
      return part;
    }
    default:
      return info(field).width_bits == 1 ? exactly(field, random() % 2) : any_masked(field, random);
  }
}

std::vector<Action> actions_for_rte(const Match&, std::mt19937_64& random) {
  std::vector<Action> actions;
  const auto at_times = [&](Action action) {
    if (random() % 5 == 0) actions.push_back(std::move(action));
  };
  at_times({.kind = ActionKind::kVxlanDecap});
  at_times({.kind = ActionKind::kPopVlan});
  at_times({.kind = ActionKind::kPushVlan, .number = random() % 4096});
  at_times({.kind = ActionKind::kVxlanEncap,
            .number = random() % (1U << 24),
            .text = fmt::format("src=10.1.2.{},dst=192.4.5.{},port={}", random() % 256,
                                random() % 256, random() % 65536)});
  at_times({.kind = ActionKind::kSetField,
            .field = F::kPacketMark,
            .value = random() & 0xffffffff,
            .bits = 0xffffffff});
  at_times({.kind = ActionKind::kMeter, .number = random() & 0xffffffff});
  at_times({.kind = ActionKind::kCount});
  switch (random() % 5) {
    case 0:
      actions.push_back(Action::drop());
      break;
    case 1:
      actions.push_back(Action::forward(fmt::format("queue:{}", random() % 65536)));
      break;
    case 2:
      actions.push_back(Action::forward(fmt::format("{}", random() % 65536)));
      break;
    case 3:
      actions.push_back(Action::jump(random() & 0xffffffff));
      break;
    default:
      if (actions.empty()) actions.push_back({.kind = ActionKind::kCount});
  }
  return actions;
}

/// Headers that hang together tighter than one need each can say.
void name_headers(Match& match, std::mt19937_64& random) {
  if (looks_at(match, {F::kSvlanPresent, F::kSvlanId, F::kSvlanPriority})) {
    match.set(F::kVlanPresent, 1);
  }
  if (looks_at(match, {F::kInnerL4SrcPort, F::kInnerL4DstPort})) {
    match.set(F::kInnerIpProtocol, random() % 2 == 0 ? 6 : 17);
  }
  if (looks_at(match, {F::kInnerIpv6Src, F::kInnerIpv6Dst})) match.set(F::kInnerEtherType, 0x86dd);
  if (looks_at(match, {F::kInnerIpv4Src, F::kInnerIpv4Dst}) ||
      (looks_at(match, {F::kInnerIpProtocol}) &&
       !looks_at(match, {F::kInnerIpv6Src, F::kInnerIpv6Dst}))) {
    match.set(F::kInnerEtherType, 0x0800);
  }
}

// Claim:  1,000 random rules over every field, mask and action that the driver has for rte_flow say
//         in its structures what they say in greynic, and no bit more.
// Oracle: the members of DPDK's own structures, read by code of the test's own.
// Method: what the driver offers is asked of a port that takes everything.
TEST(RteRules, ReadBackFromDpdksStructuresAsTheyWere) {
  const std::uint64_t seed = seed_or(41);
  FakeRtePort port({});
  RteDriver driver(FakeRtePort::calls(), 0, "net_fake", choose_path(FakeRtePort::calls(), 0));
  const auto offer = driver.probe();
  ASSERT_TRUE(offer.has_value());
  RuleSet candidates = random_rules({.part = part_for_rte,
                                     .actions = actions_for_rte,
                                     .tables = 100'000,
                                     .priorities = 4'000'000},
                                    2000, seed);
  std::mt19937_64 random(seed);
  RuleSet rules;
  for (FlowRule& rule : candidates.rules) {
    name_headers(rule.match, random);
    const auto made = rte_rule_of(rule);
    if (!made) {
      EXPECT_EQ(made.error().code, ErrorCode::kUnsupported) << made.error().message;
      continue;
    }
    const FlowRule back = read_rte(made->attributes, made->pattern.data(), made->actions.data());
    ASSERT_EQ(to_string(back.match), to_string(rule.match)) << "seed " << seed;
    ASSERT_EQ(back, rule) << to_string(rule.match) << " seed " << seed;
    rules.rules.push_back(rule);
  }
  EXPECT_GE(rules.rules.size(), 1000U) << "seed " << seed;
  for (const std::string& what : missing_from(*offer, rules)) {
    ADD_FAILURE() << "of the offer: " << what << ", seed " << seed;
  }
}

}  // namespace
}  // namespace greynic::flows
