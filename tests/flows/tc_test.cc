#include <fmt/core.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <random>

#include "common/named_headers.h"
#include "greynic/flows/kinds.h"
#include "greynic/rules/read_rules.h"
#include "killed_changes.h"
#include "random_rules.h"
#include "tc/tc_driver.h"
#include "tc/tc_flower.h"
#include "tc/tc_target.h"
#include "tc/veth_wire.h"

/// What flower on a real kernel does with our rules. Needs root and cls_flower; tests/vm/run_tc
/// runs these in the small machine where this one has neither.
#define GREYNIC_NEEDS_TC()                                                              \
  if (const auto obstacle = greynic::flows::tc_obstacle(); !obstacle.why_not.empty()) { \
    GTEST_SKIP() << obstacle.why_not << "; " << obstacle.remedy;                        \
  }                                                                                     \
  static_assert(true)

namespace greynic::flows {
namespace {

using F = MatchField;

/// A wire and a driver on its port, with an interface "sink" to forward to.
struct Bench {
  std::unique_ptr<VethWire> wire;
  [[nodiscard]] std::unique_ptr<TcDriver> driver(Journal journal) const {
    std::unique_ptr<TcDriver> made;
    const auto entered = wire->place().inside([&] {
      auto opened = TcDriver::open(VethWire::kPort, TcPlace::kBoth, std::move(journal));
      if (opened) made = std::move(*opened);
    });
    EXPECT_TRUE(entered.has_value() && made != nullptr);
    return made;
  }
};

Bench bench() {
  auto wire = VethWire::create();
  EXPECT_TRUE(wire.has_value()) << wire.error().message;
  EXPECT_TRUE((*wire)->ensure_sink("sink").has_value());
  return {std::move(*wire)};
}

/// A value that flower takes, or none where it takes none.
std::optional<FieldMatch> flower_part(MatchField field, std::mt19937_64& random) {
  if (!tc_takes(field)) return std::nullopt;
  if (field == F::kVlanPresent || field == F::kSvlanPresent) return exactly(field, 1);
  if (field == F::kArpOperation) return exactly(field, random() % 256);
  if (field == F::kIpFragment) {
    constexpr std::array<std::pair<unsigned, unsigned>, 4> kForms = {
        {{0, 3}, {1, 1}, {1, 3}, {3, 3}}};
    const auto& form = kForms[random() % kForms.size()];
    return FieldMatch{field, form.first, form.second};
  }
  if (field == F::kCtState) {
    constexpr std::array<unsigned, 8> kStates = {0x00, 0x20, 0x21, 0x22, 0x2a, 0x24, 0x30, 0x2e};
    const U128 value = kStates[random() % kStates.size()];
    return FieldMatch{field, value, value | (random() & 0x3f) | 0x20};
  }
  if (!tc_takes_any_mask(field)) return exactly(field, random_value(field, random));
  return any_masked(field, random);
}

std::vector<Action> flower_actions(const Match&, std::mt19937_64& random) {
  std::vector<Action> actions = count_and_mark(random);
  switch (random() % 6) {
    case 0:
      actions.push_back({.kind = ActionKind::kPushVlan, .number = random() % 4095});
      actions.push_back(Action::forward("sink"));
      break;
    case 1:
      actions.push_back({.kind = ActionKind::kPopVlan});
      break;
    case 2:
      actions.push_back({.kind = ActionKind::kVxlanEncap,
                         .number = random() % (1U << 24),
                         .text = fmt::format("src=10.1.2.{},dst=10.4.5.{},port={}", random() % 256,
                                             random() % 256, 1 + random() % 65535)});
      actions.push_back(Action::forward("sink"));
      break;
    case 3:
      actions.push_back({.kind = ActionKind::kVxlanDecap});
      actions.push_back(Action::jump(random() % 1000));
      break;
    case 4:
      actions.push_back(Action::forward("sink"));
      actions.push_back(Action::forward("source"));
      break;
    default:
      actions.push_back(Action::drop());
  }
  return actions;
}

// Claim:  1,000 random rules over every field that flower has come back from the kernel equal.
// Oracle: the rules themselves.
TEST(TcRoundTrip, GivesBackRandomRulesOverAllFields) {
  GREYNIC_NEEDS_TC();
  const Bench here = bench();
  const auto driver = here.driver(Journal::in_memory());
  const std::uint64_t seed = seed_or(21);
  RuleSet rules = random_rules(
      {.part = flower_part, .actions = flower_actions, .tables = 8, .priorities = 60'000}, 1000,
      seed);
  for (FlowRule& rule : rules.rules) {
    // A second tag comes behind a first one.
    if (rule.match.mask().bits(F::kSvlanPresent) != 0) rule.match.set(F::kVlanPresent, 1);
  }
  const auto applied = driver->apply(rules);
  ASSERT_TRUE(applied.has_value()) << applied.error().message << " seed " << seed;
  const auto back = driver->list();
  ASSERT_TRUE(back.has_value()) << back.error().message;
  std::sort(rules.rules.begin(), rules.rules.end(), [](const FlowRule& a, const FlowRule& b) {
    return std::pair(a.table, a.priority) < std::pair(b.table, b.priority);
  });
  ASSERT_EQ(back->rules.size(), rules.rules.size());
  for (std::size_t i = 0; i < rules.rules.size(); ++i) {
    FlowRule wanted = rules.rules[i];
    wanted.weight = 0;
    wanted.from.clear();
    ASSERT_EQ(to_string(back->rules[i].match), to_string(wanted.match)) << "seed " << seed;
    ASSERT_EQ(back->rules[i], wanted) << to_string(wanted.match) << " seed " << seed;
  }
  const auto offer = driver->probe();
  ASSERT_TRUE(offer.has_value()) << offer.error().message;
  for (const std::string& what : missing_from(*offer, rules)) {
    ADD_FAILURE() << "of the offer: " << what << ", seed " << seed;
  }
  ASSERT_TRUE(driver->roll_back().has_value());
  EXPECT_TRUE(driver->list()->rules.empty());
}

// Claim:  what the driver says it takes is what the kernel takes: probing finds every field.
// Oracle: the kernel, asked with one filter for each.
TEST(TcProbe, FindsEveryFieldThatIsOffered) {
  GREYNIC_NEEDS_TC();
  const Bench here = bench();
  const auto driver = here.driver(Journal::in_memory());
  const auto offer = driver->probe();
  ASSERT_TRUE(offer.has_value()) << offer.error().message;
  std::set<MatchField> found;
  for (const OfferedField& field : offer->fields) found.insert(field.field);
  for (const MatchFieldInfo& row : match_fields()) {
    EXPECT_EQ(found.contains(row.field), tc_takes(row.field)) << row.name;
  }
  EXPECT_EQ(offer->actions.size(), 9U);
  EXPECT_TRUE(driver->list()->rules.empty()) << "probing leaves nothing behind";
}

// Claim:  `tc` itself shows the rules that were meant.
// Oracle: iproute2's own decoder, read by the reader of its format.
TEST(TcRoundTrip, IsReadTheSameByIproute) {
  GREYNIC_NEEDS_TC();
  if (os::find_program("tc").empty())
    GTEST_SKIP() << "tc is not installed; apt-get install iproute2";
  const Bench here = bench();
  const auto driver = here.driver(Journal::in_memory());
  RuleSet rules;
  const auto add = [&](std::initializer_list<std::tuple<MatchField, U128, U128>> parts) {
    FlowRule rule;
    rule.priority = static_cast<RulePriority>(10 + rules.rules.size());
    for (const auto& [field, value, bits] : parts) rule.match.set(field, value, bits);
    rule.actions = {Action::drop()};
    rules.rules.push_back(rule);
  };
  add({{F::kEtherType, 0x0800, 0xffff},
       {F::kIpv4Dst, 0x0a010200, 0xffffff00},
       {F::kIpProtocol, 6, 0xff},
       {F::kL4DstPort, 443, 0xffff},
       {F::kTcpFlags, 2, 0x12}});
  add({{F::kEtherType, 0x86dd, 0xffff},
       {F::kIpv6Src, U128{0xfd00} << 112, U128{0xffff} << 112},
       {F::kIpProtocol, 58, 0xff},
       {F::kIcmpType, 135, 0xff},
       {F::kIpTtl, 255, 0xff}});
  add({{F::kEtherType, 0x0806, 0xffff},
       {F::kArpTargetIpv4, 0x0a000001, 0xffffffff},
       {F::kArpOperation, 1, 0xffff}});
  add({{F::kVlanPresent, 1, 1},
       {F::kVlanId, 100, 0xfff},
       {F::kEtherType, 0x0800, 0xffff},
       {F::kIpProtocol, 17, 0xff},
       {F::kEthernetDst, 0x020000000001, 0xffffffffffff}});
  add({{F::kEtherType, 0x0800, 0xffff},
       {F::kIpDscp, 10, 0x3e},
       {F::kIpTtl, 16, 0xf0},
       {F::kIpFragment, 1, 3}});
  add({{F::kEtherType, 0x0800, 0xffff},
       {F::kIpProtocol, 17, 0xff},
       {F::kL4DstPort, 1024, 0xfc00},
       {F::kIpFragment, 0, 3}});
  add({{F::kCtState, 0x22, 0x22}, {F::kCtZone, 77, 0xffff}, {F::kCtMark, 0x1200, 0xff00}});
  add({{F::kTunnelIpv4Dst, 0x0a000001, 0xffffffff}, {F::kVxlanVni, 4711, 0xffffff}});
  ASSERT_TRUE(driver->apply(rules).has_value());
  Result<std::string> text = fail(ErrorCode::kInternal, "not run");
  ASSERT_TRUE(
      here.wire->place()
          .inside([&] {
            text = os::run({.words = {"tc", "-j", "filter", "show", "dev", "port", "ingress"}});
          })
          .has_value());
  ASSERT_TRUE(text.has_value()) << text.error().message;
  const auto read = rules::parse_rules(*text, "tc", rules::Format::kTcFilter);
  ASSERT_TRUE(read.has_value()) << read.error().message << "\n" << *text;
  ASSERT_EQ(read->rules.size(), rules.rules.size());
  for (std::size_t i = 0; i < rules.rules.size(); ++i) {
    EXPECT_EQ(to_string(read->rules[i].match), to_string(rules.rules[i].match)) << *text;
  }
}

// Claim:  what flower has no key for is refused by name, before anything is changed.
TEST(TcCheck, RefusesByName) {
  FlowRule rule;
  const auto said = [&](const Match& match) {
    os::NetlinkMessage message(0, 0, std::uint32_t{0});
    const auto put = put_flower_match(message, match);
    return put ? std::string("taken") : put.error().message;
  };
  Match match;
  match.set(F::kMetadata, 1);
  EXPECT_NE(said(match).find("metadata"), std::string::npos);
  match = {};
  match.set(F::kIpv4Src, 1);
  EXPECT_NE(said(match).find("ether_type"), std::string::npos);
  match = {};
  match.set(F::kEtherType, 0x0800);
  match.set(F::kIpProtocol, 2, 0x0f);
  EXPECT_NE(said(match).find("ip_protocol: it takes no mask"), std::string::npos);
  match = {};
  match.set(F::kCtState, 1, 1);
  EXPECT_NE(said(match).find("trk"), std::string::npos);
  os::NetlinkMessage message(0, 0, std::uint32_t{0});
  const auto meter = put_tc_actions(message, {{.kind = ActionKind::kMeter, .number = 1}}, {});
  ASSERT_FALSE(meter.has_value());
  EXPECT_NE(meter.error().message.find("meter"), std::string::npos);
  // The kernel says "numerical result out of range" to the whole rule.
  const auto reserved =
      put_tc_actions(message, {{.kind = ActionKind::kPushVlan, .number = 4095}}, {});
  ASSERT_FALSE(reserved.has_value());
  EXPECT_NE(reserved.error().message.find("4095 is reserved"), std::string::npos);
  // Numbers that a packet has no room for are not cut to what fits.
  for (const Action& action :
       {Action{.kind = ActionKind::kPushVlan, .number = 4096},
        Action{
            .kind = ActionKind::kVxlanEncap, .number = 1U << 24, .text = "src=1.2.3.4,dst=5.6.7.8"},
        Action{.kind = ActionKind::kSetField,
        .field = F::kPacketMark,
        .value = U128{1} << 32,
        .bits = 1}}) {
    const auto cut = put_tc_actions(message, {action}, {});
    ASSERT_FALSE(cut.has_value()) << to_string(action);
    EXPECT_NE(cut.error().message.find(" bits"), std::string::npos) << cut.error().message;
  }
}

// Claim:  a process that is killed in the middle of a change leaves an interface that greynic puts
//         back: the next opening finds the filters of before, all of them, or the change finished.
// Oracle: the filters that the test installed before.
// Method: 20 times a child that puts 800 rules in place of 100 is killed at a random moment of it.
TEST(TcCrash, LosesNoRulesWhenTheProcessIsKilledInTheMiddle) {
  GREYNIC_NEEDS_TC();
  const Bench here = bench();
  std::string journals = "/tmp/greynic-tc-crash-XXXXXX";
  ASSERT_NE(mkdtemp(journals.data()), nullptr);
  const auto driver = [&] { return here.driver(Journal::on_disk("tc:test", journals)); };
  const RuleSet before = numbered_rules(100, 0x0a000000);
  const RuleSet wanted = numbered_rules(800, 0x14000000);
  ASSERT_TRUE(driver()->apply(before).has_value());
  std::filesystem::remove_all(journals);  // the filters of before are somebody else's
  kill_changes(driver, before, wanted, 5);
  std::filesystem::remove_all(journals);
}

// Claim:  a refusal puts back rules over every field and action as they were, those on VLAN tags
//         too, which the kernel shows otherwise than it wants to be told.
// Oracle: the rules that were given.
TEST(TcTransaction, PutsRulesOverAllFieldsBackOnRefusal) {
  GREYNIC_NEEDS_TC();
  const Bench here = bench();
  const auto driver = here.driver(Journal::in_memory());
  const std::uint64_t seed = seed_or(22);
  RuleSet before = random_rules(
      {.part = flower_part, .actions = flower_actions, .tables = 8, .priorities = 60'000}, 300,
      seed);
  for (FlowRule& rule : before.rules) {
    if (rule.match.mask().bits(F::kSvlanPresent) != 0) rule.match.set(F::kVlanPresent, 1);
  }
  ASSERT_TRUE(driver->apply(before).has_value());
  const auto listed = driver->list();
  ASSERT_TRUE(listed.has_value());
  RuleSet twice = numbered_rules(50, 0x14000000);
  twice.rules.push_back(twice.rules.back());
  ASSERT_FALSE(driver->apply(twice).has_value());
  const auto back = driver->list();
  ASSERT_TRUE(back.has_value()) << back.error().message;
  ASSERT_EQ(back->rules.size(), listed->rules.size()) << "seed " << seed;
  for (std::size_t i = 0; i < listed->rules.size(); ++i) {
    EXPECT_EQ(back->rules[i], listed->rules[i])
        << to_string(listed->rules[i].match) << " seed " << seed;
  }
}

// Claim:  a filter that the kernel refuses leaves the filters of before, and the reason is said.
// Method: a redirect to an interface that goes between check and apply cannot be made here, so a
//         jump is given a chain that the kernel knows but the rule before it has no end: two rules
//         alike under one preference, of which the kernel takes only one.
TEST(TcTransaction, PutsTheSnapshotBackOnRefusal) {
  GREYNIC_NEEDS_TC();
  const Bench here = bench();
  const auto driver = here.driver(Journal::in_memory());
  const RuleSet before = numbered_rules(50, 0x0a000000);
  ASSERT_TRUE(driver->apply(before).has_value());
  RuleSet twice = numbered_rules(50, 0x14000000);
  twice.rules.push_back(twice.rules.back());
  const auto refused = driver->apply(twice);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(sorted_texts(*driver->list()), sorted_texts(before));
}

// Claim:  counters count the packets and bytes that were sent, each at the rule that it matches.
// Oracle: of ten frames that are sent over and over one goes to port 1, two to port 2, three to
//         port 3, and none to port 9; the four others match no rule.
TEST(TcCounters, CountWhatWasSent) {
  GREYNIC_NEEDS_TC();
  const Bench here = bench();
  const auto driver = here.driver(Journal::in_memory());
  const auto to_port = [](std::uint64_t port) {
    Packet packet;
    packet.set(F::kEtherType, 0x0800);
    packet.set(F::kIpProtocol, 17);
    packet.set(F::kL4DstPort, port);
    return packet;
  };
  RuleSet rules;
  for (const std::uint64_t port : {1, 2, 3, 9}) {
    FlowRule rule;
    rule.match.set(F::kEtherType, 0x0800);
    rule.match.set(F::kIpProtocol, 17);
    rule.match.set(F::kL4DstPort, port);
    rule.priority = static_cast<RulePriority>(port);
    rule.actions = {Action::drop()};
    rules.rules.push_back(rule);
  }
  ASSERT_TRUE(driver->apply(rules).has_value());
  std::vector<Frame> frames;
  for (const std::uint64_t port : {1, 2, 2, 3, 3, 3, 7, 7, 7, 7}) {
    frames.push_back(frame_of(to_port(port), 100).value());
  }
  ASSERT_TRUE(here.wire->time(frames, std::chrono::milliseconds(50)).has_value());
  const auto counted = driver->counters();
  ASSERT_TRUE(counted.has_value()) << counted.error().message;
  ASSERT_EQ(counted->size(), 4U);
  const double rounds = static_cast<double>((*counted)[0].packets);
  EXPECT_GT(rounds, 10);
  for (const std::size_t i : {1U, 2U}) {
    EXPECT_NEAR(static_cast<double>((*counted)[i].packets), rounds * static_cast<double>(i + 1), 3);
  }
  for (const std::size_t i : {0U, 1U, 2U}) {
    // The kernel counts what is behind the Ethernet header.
    EXPECT_EQ((*counted)[i].bytes, (*counted)[i].packets * (frames.front().size() - 14));
  }
  EXPECT_EQ((*counted)[3].packets, 0U);
}

}  // namespace
}  // namespace greynic::flows
