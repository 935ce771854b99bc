#include "greynic/core/flow_rule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace greynic {
namespace {

constexpr std::array kSmallFields = {MatchField::kIpDscp, MatchField::kIpEcn,
                                     MatchField::kVlanPriority};  // 11 bits in all

Match random_match(std::mt19937_64& random) {
  Match match;
  for (const MatchField field : kSmallFields) {
    if (random() % 3 != 0) match.set(field, random() & 63, random() & full_mask(field));
  }
  return match;
}

/// Every packet of the 11 bits.
std::vector<Packet> all_packets() {
  std::vector<Packet> packets;
  for (unsigned bits = 0; bits < 2048; ++bits) {
    Packet packet;
    packet.set(MatchField::kIpDscp, bits & 63);
    packet.set(MatchField::kIpEcn, bits >> 6 & 3);
    packet.set(MatchField::kVlanPriority, bits >> 8);
    packets.push_back(packet);
  }
  return packets;
}

// Claim:  overlaps and contains say what their words mean.
// Oracle: every packet of a space of 2,048.
TEST(Match, OverlapAndContainmentAgreeWithEnumeration) {
  std::mt19937_64 random(11);
  const auto packets = all_packets();
  for (int round = 0; round < 300; ++round) {
    const Match a = random_match(random);
    const Match b = random_match(random);
    bool overlap = false;
    bool contained = true;
    for (const Packet& packet : packets) {
      overlap |= a.matches(packet) && b.matches(packet);
      contained &= !b.matches(packet) || a.matches(packet);
    }
    EXPECT_EQ(a.overlaps(b), overlap) << to_string(a) << " and " << to_string(b);
    EXPECT_EQ(a.contains(b), contained) << to_string(a) << " and " << to_string(b);
  }
}

// Claim:  the flat layout means what the rule set means.
// Oracle: the scan by priority and input order, for every packet.
TEST(FlatLayout, KeepsTheWinningRuleOfEveryPacket) {
  std::mt19937_64 random(12);
  const auto packets = all_packets();
  for (int round = 0; round < 40; ++round) {
    RuleSet set;
    for (std::uint32_t i = 0; i < 25; ++i) {
      FlowRule rule;
      rule.match = random_match(random);
      rule.priority = static_cast<RulePriority>(random() % 4);
      rule.from = {i};
      set.rules.push_back(rule);
    }
    const Layout layout = flat_layout(set);
    ASSERT_EQ(layout.rule_count(), set.rules.size());
    for (const Packet& packet : packets) {
      const FlowRule* expected = look_up(set, 0, packet);
      const FlowRule* got = look_up(layout, packet).rule;
      ASSERT_EQ(expected == nullptr, got == nullptr) << to_string(packet);
      if (expected != nullptr) ASSERT_EQ(expected->from, got->from) << to_string(packet);
    }
  }
}

TEST(Layout, AJumpIsFollowedAndALoopEnds) {
  FlowRule to_one;
  to_one.actions = {Action::jump(1)};
  FlowRule back;
  back.actions = {Action::jump(0)};
  const Layout layout{{{0, {{Mask(), 0, {to_one}}}}, {1, {{Mask(), 0, {back}}}}}};
  EXPECT_GT(look_up(layout, Packet()).matchers_tried, 2U);
}

TEST(MatchField, ValuesReadBackAsWritten) {
  std::mt19937_64 random(13);
  for (const MatchFieldInfo& row : match_fields()) {
    EXPECT_EQ(match_field_named(row.name), row.field);
    for (int i = 0; i < 50; ++i) {
      const U128 noise = U128{random()} << 64 | random();
      const U128 value = (i % 2 == 0 ? noise : noise >> (random() % 128)) & full_mask(row.field);
      EXPECT_EQ(field_value_from_string(row.field, field_value_to_string(row.field, value)), value)
          << row.name;
    }
  }
  for (const char* text : {"", "::1::", "1.2.3", "1.2.3.256", "0x", "12345::", "g", "1:2"}) {
    EXPECT_FALSE(field_value_from_string(MatchField::kIpv6Src, text)) << text;
  }
  EXPECT_FALSE(field_value_from_string(MatchField::kIpEcn, "4"));
}

// Claim:  a range is its prefixes: they hold its values and no others, for every range of a field.
// Oracle: each value compared with both ends.
TEST(Ranges, AreTheirPrefixes) {
  for (unsigned low = 0; low < 256; low += 3) {
    for (unsigned high = low; high < 256; ++high) {
      Match match;
      match.set_range(MatchField::kIpTtl, low, high);
      const std::vector<Match> parts = without_ranges(match);
      for (unsigned value = 0; value < 256; ++value) {
        Packet packet;
        packet.set(MatchField::kIpTtl, value);
        const auto hits = std::count_if(parts.begin(), parts.end(),
                                        [&](const Match& part) { return part.matches(packet); });
        ASSERT_EQ(hits, low <= value && value <= high ? 1 : 0) << low << ".." << high;
        ASSERT_EQ(match.matches(packet), low <= value && value <= high);
      }
    }
  }
  EXPECT_EQ(prefixes_of({MatchField::kL4DstPort, 1024, 65535}).size(), 6U);
  EXPECT_EQ(prefixes_of({MatchField::kIpv6Dst, 0, full_mask(MatchField::kIpv6Dst)}).size(), 1U);
}

// Claim:  what ranges have in common, and whether one holds another, is what their packets say.
// Oracle: every packet of two small fields.
TEST(Ranges, OverlapAndContainAsTheirPacketsDo) {
  std::mt19937_64 random(7);
  const auto drawn = [&] {
    Match match;
    for (const MatchField field : {MatchField::kIpTtl, MatchField::kIpProtocol}) {
      const auto low = static_cast<unsigned>(random() % 8);
      if (random() % 3 == 0) match.set_range(field, low, low + random() % (8 - low));
      if (random() % 3 == 0) match.set(field, low, random() & 7U);
    }
    return match;
  };
  for (int i = 0; i < 3000; ++i) {
    const Match a = drawn();
    const Match b = drawn();
    bool meet = false;
    bool holds = true;
    for (unsigned number = 0; number < 16 * 16; ++number) {
      Packet packet;
      packet.set(MatchField::kIpTtl, number % 16 == 15 ? 255 : number % 16);
      packet.set(MatchField::kIpProtocol, number / 16 == 15 ? 255 : number / 16);
      meet = meet || (a.matches(packet) && b.matches(packet));
      holds = holds && (a.matches(packet) || !b.matches(packet));
    }
    ASSERT_EQ(a.overlaps(b), meet) << to_string(a) << " and " << to_string(b);
    if (a.contains(b)) ASSERT_TRUE(holds) << to_string(a) << " and " << to_string(b);
    if (b.fields().empty() && holds) ASSERT_TRUE(a.contains(b)) << to_string(a) << to_string(b);
  }
}

}  // namespace
}  // namespace greynic
