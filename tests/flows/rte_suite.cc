/// rte_flow on DPDK's net_tap, which turns rules into tc flower filters of its tap interface: what
/// it made of them is read back there by another driver. Runs in the small machine, as root.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <set>

#include "common/named_headers.h"
#include "dpdk/rte_open.h"
#include "random_rules.h"
#include "tc/tc_driver.h"

namespace greynic::flows {
namespace {

using F = MatchField;

/// DPDK can be started once a process, so all tests share its one port.
FlowDriver& port() {
  static const auto driver = [] {
    auto opened = open_rte("net_tap0,iface=tap7,remote=dummy7");
    if (!opened) {
      fmt::print(stderr, "{}\n", opened.error().message);
      std::exit(1);
    }
    return std::move(*opened);
  }();
  return *driver;
}

/// Probing takes seconds in an emulated machine, and the port does not change.
const Result<Offer>& offer_of_port() {
  static const Result<Offer> offer = port().probe();
  return offer;
}

std::set<MatchField> offered(const Offer& offer, bool masked) {
  std::set<MatchField> found;
  for (const OfferedField& field : offer.fields) {
    if (!masked || field.any_mask) found.insert(field.field);
  }
  return found;
}

// Claim:  probing finds what net_tap's documentation lists, and nothing else.
// Oracle: doc/guides/nics/tap.rst of DPDK: items eth, vlan, ipv4, ipv6, udp and tcp; actions drop,
//         queue, passthru and rss.
TEST(Rte, ProbesWhatThePortTakes) {
  const Result<Offer>& offer = offer_of_port();
  ASSERT_TRUE(offer.has_value()) << offer.error().message;
  const auto fields = offered(*offer, false);
  for (const F there : {F::kEthernetDst, F::kEthernetSrc, F::kEtherType, F::kIpv4Src, F::kIpv4Dst,
                        F::kIpv6Src, F::kIpv6Dst, F::kIpProtocol, F::kL4SrcPort, F::kL4DstPort}) {
    EXPECT_TRUE(fields.contains(there)) << info(there).name;
  }
  for (const F missing : {F::kTcpFlags, F::kVxlanVni, F::kIpTtl, F::kMetadata, F::kInnerIpv4Src}) {
    EXPECT_FALSE(fields.contains(missing)) << info(missing).name;
  }
  const std::set<ActionKind> actions(offer->actions.begin(), offer->actions.end());
  EXPECT_TRUE(actions.contains(ActionKind::kDrop));
  EXPECT_TRUE(actions.contains(ActionKind::kForward));
  EXPECT_FALSE(actions.contains(ActionKind::kJump));
  EXPECT_FALSE(actions.contains(ActionKind::kVxlanEncap));
  // As probing found them with DPDK 22.11: 16 groups of 4,095 priorities.
  EXPECT_EQ(offer->last_table, 15U);
  EXPECT_EQ(offer->last_priority, 4094U);
}

// Claim:  1,000 random rules over every field that the port offers go in, are listed as they were
//         given, and are the filters that the kernel then has.
// Oracle: the kernel's own list of the tap's remote interface, read by netlink.
TEST(Rte, RoundTripsRandomRulesThroughTheKernel) {
  const Result<Offer>& offer = offer_of_port();
  ASSERT_TRUE(offer.has_value());
  const auto fields = offered(*offer, false);
  const auto masked = offered(*offer, true);
  const std::uint64_t seed = seed_or(31);
  const auto part = [&](MatchField field, std::mt19937_64& random) -> std::optional<FieldMatch> {
    if (!fields.contains(field)) return std::nullopt;
    if (!masked.contains(field)) return exactly(field, random_value(field, random));
    return any_masked(field, random);
  };
  // count and jump the port does not offer; a queue is what it forwards to.
  const auto actions = [](const Match&, std::mt19937_64& random) {
    return std::vector<Action>{random() % 2 == 0 ? Action::drop() : Action::forward("queue:0")};
  };
  const RuleSet candidates = random_rules(
      {.part = part, .actions = actions, .tables = 16, .priorities = 4095}, 4000, seed);
  // What the port does not take in this combination is refused by name, never dropped in silence.
  RuleSet rules;
  for (const FlowRule& rule : candidates.rules) {
    const auto good = port().check({{rule}, ""});
    if (!good) {
      EXPECT_EQ(good.error().code, ErrorCode::kUnsupported) << good.error().message;
      continue;
    }
    if (rules.rules.size() < 1000) rules.rules.push_back(rule);
  }
  ASSERT_EQ(rules.rules.size(), 1000U) << "seed " << seed;
  for (const std::string& what : missing_from(*offer, rules)) {
    ADD_FAILURE() << "of the offer: " << what << ", seed " << seed;
  }
  const auto applied = port().apply(rules);
  ASSERT_TRUE(applied.has_value()) << applied.error().message;
  const auto listed = port().list();
  ASSERT_TRUE(listed.has_value());
  ASSERT_EQ(listed->rules.size(), rules.rules.size());
  for (std::size_t i = 0; i < rules.rules.size(); ++i) {
    EXPECT_EQ(listed->rules[i], rules.rules[i]) << to_string(rules.rules[i].match);
  }
  auto kernel = TcDriver::open("dummy7", TcPlace::kBoth, Journal::in_memory());
  ASSERT_TRUE(kernel.has_value()) << kernel.error().message;
  const auto there = (*kernel)->list();
  ASSERT_TRUE(there.has_value()) << there.error().message;
  std::multiset<std::string> made;
  for (const FlowRule& rule : there->rules) made.insert(to_string(rule.match));
  std::size_t missing = 0;
  for (const FlowRule& rule : rules.rules) {
    const auto found = made.find(to_string(rule.match));
    if (found == made.end()) {
      if (++missing < 5) ADD_FAILURE() << to_string(rule.match) << " is not in the kernel";
      continue;
    }
    made.erase(found);
  }
  EXPECT_EQ(missing, 0U) << "seed " << seed;
  ASSERT_TRUE(port().roll_back().has_value());
  EXPECT_TRUE(port().list()->rules.empty());
}

// Claim:  a rule that the port refuses leaves the rules of before.
TEST(Rte, PutsTheRulesBackOnRefusal) {
  FlowRule good;
  good.match.set(F::kEtherType, 0x0800);
  good.match.set(F::kIpv4Dst, 1);
  ASSERT_TRUE(port().apply({{good}, ""}).has_value());
  FlowRule bad = good;
  bad.match.set(F::kIpTtl, 1);
  bad.priority = 1;
  const auto refused = port().apply({{good, bad}, ""});
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().message.find("rule 1 ("), std::string::npos) << refused.error().message;
  EXPECT_EQ(port().list()->rules.size(), 1U);
  ASSERT_TRUE(port().roll_back().has_value());
}

// Claim:  what rte_flow has no item for is refused by name.
TEST(Rte, RefusesByName) {
  FlowRule rule;
  rule.match.set(F::kBthOpcode, 1);
  const auto refused = port().check({{rule}, ""});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(refused.error().message.find("bth_opcode"), std::string::npos);
}

// Claim:  what net_tap is known to take and to make another rule of is refused by name, and so it
//         is not offered.
TEST(Rte, RefusesWhatThePortWouldGetWrong) {
  FlowRule half;
  half.match.set(F::kEtherType, 0x0800);
  half.match.set(F::kIpProtocol, 6, 0xfe);
  FlowRule tagged;
  tagged.match.set(F::kVlanPresent, 1);
  tagged.match.set(F::kVlanId, 5);
  FlowRule zero;
  zero.match.set(F::kEtherType, 0x0800);
  zero.match.set(F::kIpProtocol, 0);
  FlowRule port_zero;
  port_zero.match.set(F::kEtherType, 0x0800);
  port_zero.match.set(F::kIpProtocol, 17);
  port_zero.match.set(F::kL4DstPort, 0);
  for (const FlowRule& rule : {half, tagged, zero, port_zero}) {
    const auto refused = port().apply({{rule}, ""});
    ASSERT_FALSE(refused.has_value()) << to_string(rule.match);
    EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);
    const auto name = std::string(info(rule.match.fields().back().field).name);
    EXPECT_NE(refused.error().message.find(name), std::string::npos) << refused.error().message;
  }
  // Beside net_tap's own rules: the last priority that may be used is taken, the next is not.
  FlowRule last;
  last.match.set(F::kEtherType, 0x0800);
  last.match.set(F::kIpv4Dst, 1);
  last.table = 15;
  last.priority = 4087;
  EXPECT_TRUE(port().apply({{last}, ""}).has_value());
  last.priority = 4088;
  const auto kept = port().check({{last}, ""});
  ASSERT_FALSE(kept.has_value());
  EXPECT_NE(kept.error().message.find("4087"), std::string::npos) << kept.error().message;
  ASSERT_TRUE(port().roll_back().has_value());
  const Result<Offer>& offer = offer_of_port();
  ASSERT_TRUE(offer.has_value());
  EXPECT_FALSE(offered(*offer, false).contains(F::kVlanId));
  EXPECT_FALSE(offered(*offer, true).contains(F::kIpProtocol));
}

}  // namespace
}  // namespace greynic::flows
