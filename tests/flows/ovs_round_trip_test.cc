#include <fmt/core.h>
#include <gtest/gtest.h>

#include <map>

#include "common/named_headers.h"
#include "ovs/ovs_driver.h"
#include "private_ovs.h"
#include "random_rules.h"

namespace greynic::flows {
namespace {

using F = MatchField;

std::unique_ptr<PrivateSwitch> started() {
  auto ovs = PrivateSwitch::start({});
  EXPECT_TRUE(ovs.has_value()) << (ovs ? "" : ovs.error().message);
  return ovs ? std::move(*ovs) : nullptr;
}

std::unique_ptr<OvsDriver> driver_of(PrivateSwitch& ovs) {
  return std::make_unique<OvsDriver>(
      ovs.folder() + "/br0.mgmt", [&ovs] { return ovs.database().ports("br0"); },
      Journal::in_memory());
}

/// Fields as ovs-fields(7) takes them.
std::optional<FieldMatch> part_for_ovs(MatchField field, std::mt19937_64& random) {
  if (!ovs_takes(field)) return std::nullopt;
  switch (field) {
    case F::kInPort:
      return exactly(field, 1 + random() % 60000);
    case F::kArpOperation:
      return exactly(field, random() % 256);
    case F::kEtherType: {
      constexpr unsigned kTypes[] = {0x0800, 0x86dd, 0x0806, 0x88cc};
      return exactly(field, kTypes[random() % std::size(kTypes)]);
    }
    case F::kCtState: {
      const U128 bits = 1 + random() % 255;
      return FieldMatch{field, random() & bits, bits};
    }
    case F::kIcmpType:
      return exactly(field, random() % 100);  // beyond lie the types of neighbour discovery
    case F::kIpFragment: {
      const FieldMatch forms[] = {
          {field, 0, 3}, {field, 1, 1}, {field, 1, 3}, {field, 0, 2}, {field, 3, 3}};
      return forms[random() % std::size(forms)];
    }
    case F::kIpv6Src:
    case F::kIpv6Dst:
    case F::kNdTarget: {
      FieldMatch part = any_masked(field, random);
      part.bits |= U128{0xf} << 124;  // ovs-ofctl misreads masks that begin with a decimal digit
      return part;
    }
    default:
      break;
  }
  return ovs_takes_any_mask(field) ? any_masked(field, random)
                                   : exactly(field, random_value(field, random));
}

/// A later fragment carries nothing behind the IP header, which has a claim of its own below.
void spare_later_fragments(Match& match) {
  const bool ports =
      std::any_of(match.fields().begin(), match.fields().end(), [](const auto& part) {
        return info(part.field).layer == FieldLayer::kL4 ||
               info(part.field).layer == FieldLayer::kIcmp;
      });
  if (ports && exact_value(match, F::kIpFragment) == U128{3}) match.set(F::kIpFragment, 1, 1);
}

constexpr std::uint64_t kMeters[] = {7, 4242};

/// Does the header that a field is in stand in the match, so that the field may be written?
bool may_write(const Match& match, F field) {
  const bool neighbour = field == F::kNdTarget;
  if (neighbour && !exact_value(match, F::kIcmpType)) return false;
  return info(field).layer == FieldLayer::kTunnel || !missing_header(match, field);
}

/// How often each field was written; what came up least is next, so that all come up.
using Writes = std::map<F, std::size_t>;

std::optional<Action> write_for_ovs(const Match& match, Writes& writes, std::mt19937_64& random) {
  std::optional<Action> least;
  for (const MatchFieldInfo& row : match_fields()) {
    if (!may_write(match, row.field)) continue;
    if (least && writes[row.field] >= writes[least->field]) continue;
    const FieldMatch part = part_for_ovs(row.field, random).value_or(exactly(row.field, 0));
    Action action{
        .kind = ActionKind::kSetField, .field = row.field, .value = part.value, .bits = part.bits};
    if (ovs_actions_text({.match = match, .actions = {action}}, {})) least = action;
  }
  if (least) ++writes[least->field];
  return least;
}

std::vector<Action> actions_for_ovs(const Match& match, Writes& writes, std::mt19937_64& random) {
  static constexpr const char* kPorts[] = {"left", "right"};
  std::vector<Action> actions;
  if (random() % 8 == 0) return {Action::drop()};
  if (random() % 8 == 0) {
    actions.push_back({.kind = ActionKind::kMeter, .number = kMeters[random() % 2]});
  }
  for (std::size_t count = random() % 3; count > 0; --count) {
    if (auto action = write_for_ovs(match, writes, random)) {
      actions.push_back(std::move(*action));
    }
  }
  if (random() % 5 == 0) actions.push_back({.kind = ActionKind::kCount});
  // A write of a header behind the tag would need it named again.
  const bool tagged = exact_value(match, F::kVlanPresent) == U128{1};
  if (tagged && random() % 2 == 0) actions.push_back({.kind = ActionKind::kPopVlan});
  if (random() % 5 == 0) {
    actions.push_back({.kind = ActionKind::kPushVlan, .number = random() % 4096});
  }
  if (random() % 8 == 0 && exact_value(match, F::kEtherType) == U128{0x0800}) {
    actions.push_back({.kind = ActionKind::kOther, .text = "dec_ttl"});
  }
  if (random() % 4 == 0) actions.push_back(Action::forward(kPorts[random() % 2]));
  if (random() % 2 == 0) {
    actions.push_back(Action::forward(kPorts[random() % 2]));
  } else {
    actions.push_back(Action::jump(random() % 200));
  }
  return actions;
}

// Claim:  rules come back from the switch as they went in, whatever field they match.
// Oracle: the rules themselves; in between lies nothing but Open vSwitch.
// Method: 1,000 random rules over every field that Open vSwitch has, in one transaction; every
//         field that can be written is, and every kind of action that the driver offers comes up.
TEST(OvsRoundTrip, ReadsBackAThousandRandomRulesAsTheyWere) {
  GREYNIC_NEEDS_OVS();
  const std::uint64_t seed = seed_or(20);
  auto ovs = started();
  ASSERT_NE(ovs, nullptr);
  ASSERT_TRUE(ovs->ensure_sink("left").has_value());
  ASSERT_TRUE(ovs->ensure_sink("right").has_value());
  auto driver = driver_of(*ovs);
  Writes writes;
  const auto actions = [&](const Match& match, std::mt19937_64& random) {
    return actions_for_ovs(match, writes, random);
  };
  RuleSet rules =
      random_rules({.part = part_for_ovs, .actions = actions, .tables = 200}, 1000, seed);
  for (FlowRule& rule : rules.rules) spare_later_fragments(rule.match);
  for (const std::uint64_t meter : kMeters) {
    ASSERT_EQ(std::system(fmt::format("ovs-ofctl -O OpenFlow13 add-meter unix:{}/br0.mgmt "
                                      "meter={},kbps,band=type=drop,rate=1000",
                                      ovs->folder(), meter)
                              .c_str()),
              0);
  }
  EXPECT_GE(writes.size(), 39U) << "fields that can be written";
  const auto offer = driver->probe();
  ASSERT_TRUE(offer.has_value()) << offer.error().message;
  for (const std::string& what : missing_from(*offer, rules)) {
    ADD_FAILURE() << "of the offer: " << what << ", seed " << seed;
  }
  const auto applied = driver->apply(rules);
  ASSERT_TRUE(applied.has_value()) << applied.error().message;
  const auto back = driver->list();
  ASSERT_TRUE(back.has_value()) << back.error().message;
  ASSERT_EQ(back->rules.size(), rules.rules.size());
  for (std::size_t i = 0; i < rules.rules.size(); ++i) {
    const FlowRule& went = rules.rules[i];
    const FlowRule& came = back->rules[i];
    ASSERT_EQ(to_string(came.match), to_string(went.match)) << "rule " << i << ", seed " << seed;
    ASSERT_EQ(came.priority, went.priority);
    ASSERT_EQ(came.table, went.table);
    ASSERT_EQ(came.actions.size(), went.actions.size()) << to_string(went.match);
    for (std::size_t a = 0; a < went.actions.size(); ++a) {
      ASSERT_EQ(to_string(came.actions[a]), to_string(went.actions[a]));
    }
    ASSERT_EQ(came, went);
  }
}

Match later_fragment_with_port() {
  Match match;
  match.set(F::kEtherType, 0x0800);
  match.set(F::kIpProtocol, 17);
  match.set(F::kIpFragment, 3);
  match.set(F::kL4DstPort, 80);
  return match;
}

// Claim:  what Open vSwitch cannot hold is refused by name, and nothing is changed.
// Oracle: ovs-fields(7).
// Method: one rule for each kind of refusal beside a good one; the rules that were there stay.
TEST(OvsRoundTrip, RefusesByNameWhatItCannotHold) {
  GREYNIC_NEEDS_OVS();
  auto ovs = started();
  ASSERT_NE(ovs, nullptr);
  auto driver = driver_of(*ovs);
  FlowRule good;
  good.match.set(F::kEtherType, 0x0800);
  good.actions = {Action::drop()};
  ASSERT_TRUE(driver->apply({{good}, ""}).has_value());
  struct Case {
    Match match;
    std::vector<Action> actions;
    std::string names;
  };
  const auto match_of = [](MatchField field, U128 value, U128 bits) {
    Match match;
    match.set(field, value, bits);
    return match;
  };
  const std::vector<Case> cases = {
      {match_of(F::kBthOpcode, 1, 255), {}, "bth_opcode"},
      {match_of(F::kEtherType, 0x0800, 0xff00), {}, "ether_type"},
      {match_of(F::kIpv4Src, 1, 0xffffffff), {}, "ether_type=0x0800"},
      {match_of(F::kInPort, 1, 0xffffffff), {Action::forward("nowhere")}, "nowhere"},
      {match_of(F::kInPort, 1, 0xffffffff), {{.kind = ActionKind::kVxlanDecap}}, "tunnel"},
      {match_of(F::kInPort, 1, 0xffffffff), {Action::jump(254)}, "253"},
      {match_of(F::kInPort, 1, 0xffffffff),
       {{.kind = ActionKind::kPushVlan, .number = 4096}},
       "12 bits"},
      {later_fragment_with_port(), {}, "later fragment"},
      {match_of(F::kEtherType, 0x86dd, 0xffff),
       {{.kind = ActionKind::kSetField, .field = F::kIpv6Src, .bits = U128{0x8421} << 112}},
       "decimal digit"},
      {match_of(F::kInPort, 1, 0xffffffff),
       {Action::forward("1"), {.kind = ActionKind::kMeter, .number = 1}},
       "before all other actions"},
      // This one only the switch itself can refuse: there is no such meter.
      {match_of(F::kInPort, 1, 0xffffffff),
       {{.kind = ActionKind::kMeter, .number = 77}, Action::jump(3)},
       "METER"}};
  for (const Case& bad : cases) {
    FlowRule rule;
    rule.match = bad.match;
    rule.priority = 5;
    rule.actions = bad.actions;
    const auto applied = driver->apply({{good, rule}, ""});
    ASSERT_FALSE(applied.has_value()) << bad.names;
    EXPECT_NE(applied.error().message.find(bad.names), std::string::npos)
        << applied.error().message;
    EXPECT_NE(applied.error().message.find("rule 1 ("), std::string::npos)
        << applied.error().message;
    const auto back = driver->list();
    ASSERT_TRUE(back.has_value());
    ASSERT_EQ(back->rules.size(), 1u) << bad.names;
    EXPECT_EQ(back->rules.front(), good);
  }
}

// Claim:  roll_back returns to the rules that were there before the first change.
// Oracle: the rules that the test installed by another driver.
TEST(OvsRoundTrip, RollsBackToTheFirstRules) {
  GREYNIC_NEEDS_OVS();
  auto ovs = started();
  ASSERT_NE(ovs, nullptr);
  const RandomRules kind{
      .part = part_for_ovs,
      .actions = [](const Match&, std::mt19937_64&) { return std::vector<Action>{Action::drop()}; },
      .tables = 5};
  ASSERT_TRUE(driver_of(*ovs)->apply(random_rules(kind, 50, 1)).has_value());
  auto driver = driver_of(*ovs);
  const auto first = driver->list();
  ASSERT_TRUE(first.has_value());
  ASSERT_TRUE(driver->apply(random_rules(kind, 30, 2)).has_value());
  ASSERT_TRUE(driver->apply(random_rules(kind, 40, 3)).has_value());
  ASSERT_EQ(driver->list()->rules.size(), 40u);
  ASSERT_TRUE(driver->roll_back().has_value());
  EXPECT_EQ(driver->list()->rules, first->rules);
}

}  // namespace
}  // namespace greynic::flows
