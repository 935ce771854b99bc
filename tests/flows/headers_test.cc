#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "../optimizer/nightly.h"
#include "common/named_headers.h"
#include "greynic/flows/few_masks.h"
#include "greynic/optimizer/optimize.h"
#include "greynic/rules/read_rules.h"
#include "greynic/rules/traffic.h"
#include "greynic/verify/verify.h"

namespace greynic::flows {
namespace {

using F = MatchField;

/// Does a packet of this type and protocol have the field? Written out, as the standards say it.
bool has(U128 type, U128 protocol, MatchField field) {
  const bool v4 = type == 0x0800;
  const bool v6 = type == 0x86dd;
  switch (field) {
    case F::kEtherType:
      return true;
    case F::kIpv4Src:
      return v4;
    case F::kIpv6Src:
      return v6;
    case F::kIpProtocol:
      return v4 || v6;
    case F::kL4DstPort:
      return (v4 || v6) && (protocol == 6 || protocol == 17 || protocol == 132);
    case F::kTcpFlags:
      return (v4 || v6) && protocol == 6;
    case F::kIcmpType:
      return (v4 && protocol == 1) || (v6 && protocol == 58);
    default:
      return false;
  }
}

constexpr std::array kProtocols = {1, 6, 17, 58, 89, 132};
constexpr std::array kEtherTypes = {0x0800, 0x86dd, 0x0806};

Packet random_packet(std::mt19937_64& random) {
  Packet packet;
  const U128 type = static_cast<unsigned>(kEtherTypes[random() % kEtherTypes.size()]);
  const U128 protocol = static_cast<unsigned>(kProtocols[random() % kProtocols.size()]);
  packet.set(F::kEtherType, type);
  for (const F field :
       {F::kIpv4Src, F::kIpv6Src, F::kIpProtocol, F::kL4DstPort, F::kTcpFlags, F::kIcmpType}) {
    if (!has(type, protocol, field)) continue;
    packet.set(field, field == F::kIpProtocol ? protocol : U128{random() % 8});
  }
  return packet;
}

/// Rules that name headers or do not, or name the wrong ones.
RuleSet careless_rules(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  RuleSet set;
  for (std::size_t i = 0; i < count; ++i) {
    FlowRule rule;
    const auto sometimes = [&](MatchField field, U128 value, U128 bits) {
      if (random() % 3 == 0) rule.match.set(field, value & bits, bits);
    };
    sometimes(F::kEtherType, static_cast<unsigned>(kEtherTypes[random() % kEtherTypes.size()]),
              0xffff);
    sometimes(F::kIpProtocol, static_cast<unsigned>(kProtocols[random() % kProtocols.size()]),
              0xff);
    sometimes(F::kIpv4Src, random() % 8, random() % 8);
    sometimes(F::kL4DstPort, random() % 8, random() % 8);
    sometimes(F::kTcpFlags, random() % 8, random() % 8);
    sometimes(F::kIcmpType, random() % 8, random() % 8);
    rule.priority = static_cast<RulePriority>(i);
    rule.from = {static_cast<std::uint32_t>(i)};
    set.rules.push_back(std::move(rule));
  }
  return set;
}

/// A rule speaks of packets that have its fields; where it names a header that excludes a field,
/// that field reads as zero.
bool means(const FlowRule& rule, const Packet& packet) {
  const U128 type = packet.value(F::kEtherType);
  const U128 protocol = packet.value(F::kIpProtocol);
  const auto named_type = exact_value(rule.match, F::kEtherType);
  const auto named_protocol = exact_value(rule.match, F::kIpProtocol);
  for (const FieldMatch& part : rule.match.fields()) {
    if (has(type, protocol, part.field)) {
      if ((packet.value(part.field) & part.bits) != part.value) return false;
      continue;
    }
    bool excluded = true;  // by what the rule names: no type and protocol that it allows has it
    for (const int t : kEtherTypes) {
      for (const int p : kProtocols) {
        const U128 some_type = static_cast<unsigned>(t);
        const U128 some_protocol = static_cast<unsigned>(p);
        if (named_type.value_or(some_type) == some_type &&
            named_protocol.value_or(some_protocol) == some_protocol &&
            has(some_type, some_protocol, part.field)) {
          excluded = false;
        }
      }
    }
    if (!excluded || part.value != 0) return false;
  }
  return true;
}

/// The first input line whose rule matches; -1 for none.
long first_line(const RuleSet& rules, const Packet& packet) {
  const FlowRule* found = look_up(rules, 0, packet);
  return found == nullptr ? -1 : static_cast<long>(found->from.front());
}

// Claim:  naming headers keeps, for every packet that can exist, which input line it hits.
// Oracle: which header holds which field, written out above, line by line.
// Method: 400 careless rules, one at a time and all together, against 20,000 random packets.
TEST(WithHeaders, KeepsWhichLineAPacketHits) {
  const std::uint64_t seed = 11;
  const RuleSet rules = careless_rules(400, seed);
  const RuleSet named = with_headers(rules);
  std::mt19937_64 random(seed);
  for (int i = 0; i < 20'000; ++i) {
    const Packet packet = random_packet(random);
    long wanted = -1;
    for (std::size_t line = 0; line < rules.rules.size() && wanted < 0; ++line) {
      if (means(rules.rules[line], packet)) wanted = static_cast<long>(line);
    }
    const long got = first_line(named, packet);
    ASSERT_EQ(got, wanted)
        << to_string(packet) << " seed " << seed << "; line " << std::min(got, wanted) << " is "
        << to_string(
               rules.rules[static_cast<std::size_t>(std::max(0L, std::min(got, wanted)))].match);
  }
  for (const FlowRule& line : rules.rules) {
    RuleSet others = rules;  // keeps the table one that names types
    others.rules.erase(others.rules.begin() + 1, others.rules.end());
    others.rules.front() = line;
    FlowRule outspoken;
    outspoken.match.set(F::kEtherType, 0x88cc);
    outspoken.priority = line.priority + 1;
    outspoken.from = {9999};
    others.rules.push_back(outspoken);
    const RuleSet alone = with_headers(others);
    for (int i = 0; i < 50; ++i) {
      const Packet packet = random_packet(random);
      ASSERT_EQ(first_line(alone, packet) == static_cast<long>(line.from.front()),
                means(line, packet))
          << to_string(line.match) << " and " << to_string(packet) << " seed " << seed;
    }
  }
}

// Claim:  what all jumps to a table have decided is named there, where foreign words lead to other tables; what tracks
//         connections names IP: as decided, or once for each kind.
// Oracle: by hand. Table 0 sends IPv4 to 200, both kinds to 201, and "resubmit(,7)" leads to 7.
TEST(WithHeaders, NamesWhatJumpsAndWordsDecide) {
  const auto rule = [](std::uint32_t table, Match match, std::vector<Action> actions) {
    FlowRule made;
    made.table = table;
    made.match = std::move(match);
    made.actions = std::move(actions);
    return made;
  };
  const auto asks = [](MatchField field, U128 value) {
    Match match;
    match.set(field, value);
    return match;
  };
  const Action track = Action::other("ct(table=7,zone=1,nat)");
  Layout layout;
  const auto add = [&](FlowRule made) {
    auto table = std::ranges::find(layout.tables, made.table, &LayoutTable::id);
    if (table == layout.tables.end()) {
      table = layout.tables.insert(table, LayoutTable{.id = made.table, .matchers = {}});
    }
    Matcher matcher;
    matcher.mask = made.match.mask();
    matcher.rules.push_back(std::move(made));
    table->matchers.push_back(std::move(matcher));
  };
  Match one = asks(F::kEtherType, 0x800);
  one.set(F::kInPort, 1);
  Match two = asks(F::kEtherType, 0x800);
  two.set(F::kInPort, 2);
  Match three = asks(F::kEtherType, 0x86dd);
  three.set(F::kInPort, 2);
  add(rule(0, one, {Action::jump(200)}));
  add(rule(0, two, {Action::jump(201)}));
  add(rule(0, three, {Action::jump(201)}));
  add(rule(0, {}, {Action::other("resubmit(,7)")}));
  for (const std::uint32_t table : {7U, 200U, 201U}) {
    add(rule(table, asks(F::kReg0, 4), {track}));
    add(rule(table, asks(F::kL4DstPort, 80), {Action::drop()}));
  }
  std::map<std::uint32_t, std::set<std::string>> named;
  for (const LayoutTable& table : with_headers(layout).tables) {
    for (const Matcher& matcher : table.matchers) {
      for (const FlowRule& made : matcher.rules) named[table.id].insert(to_string(made.match));
    }
  }
  const auto count_of = [&](std::uint32_t table, const std::string& words) {
    return std::ranges::count_if(named[table], [&](const std::string& match) {
      return match.find(words) != std::string::npos;
    });
  };
  EXPECT_EQ(count_of(200, "reg0"), 1);
  EXPECT_EQ(count_of(200, "ether_type=0x86dd"), 0);
  EXPECT_EQ(count_of(200, "l4_dst_port"), 3);  // TCP, UDP, SCTP
  for (const std::uint32_t table : {7U, 201U}) {
    EXPECT_EQ(count_of(table, "reg0"), 2);
    EXPECT_EQ(count_of(table, "l4_dst_port"), 6);
  }
}

// Claim:  afterwards no rule lacks a header.
TEST(WithHeaders, LeavesNoFieldWithoutItsHeader) {
  for (const FlowRule& rule : with_headers(careless_rules(1000, 3)).rules) {
    for (const FieldMatch& part : rule.match.fields()) {
      EXPECT_EQ(missing_header(rule.match, part.field), std::nullopt) << to_string(rule.match);
    }
  }
}

class RealRules : public testing::TestWithParam<const char*> {};

// Claim:  the layouts that a switch gets of real rule sets are proven by independent code in both
//         forms, cut into tables and behind a reading table; every rule names its headers, and no
//         table lies beyond the last one that the switch has.
// Oracle: the verifier, which shares no code with the optimizer or with these forms.
TEST_P(RealRules, FitASwitchAndAreProven) {
  const std::string path = GREYNIC_SOURCE_DIR "/../shared/data/rules/" + std::string(GetParam());
  if (!std::filesystem::exists(path))
    GTEST_SKIP()
        << path
        << " is not there; put the published data into ../shared/data, beside the source tree";
  if (path.find("fw4") != std::string::npos && !by_night()) {
    GTEST_SKIP() << "set GREYNIC_NIGHTLY for the set with the most masks";
  }
  auto read = rules::read_rules(path);
  ASSERT_TRUE(read.has_value()) << read.error().message;
  const RuleSet rules = with_headers(std::move(*read));
  const Traffic traffic = rules::uniform_traffic(rules, 1);
  optimizer::OptimizeOptions options;
  options.limits.last_table = 100;
  const auto cut = optimizer::optimize(rules, traffic, options);
  ASSERT_TRUE(cut.has_value()) << cut.error().message;
  const Layout named = with_headers(cut->layout);
  EXPECT_EQ(with_headers(named), named);
  for (const LayoutTable& table : named.tables) {
    EXPECT_LE(table.id, 100U);
    for (const Matcher& matcher : table.matchers) {
      for (const FlowRule& rule : matcher.rules) {
        EXPECT_EQ(rule.match.mask(), matcher.mask);
        for (const FieldMatch& part : rule.match.fields()) {
          ASSERT_EQ(missing_header(rule.match, part.field), std::nullopt)
              << "table " << table.id << ": " << to_string(rule.match);
        }
      }
    }
  }
  options.single_table = true;
  const auto chain = optimizer::optimize(rules, traffic, options);
  ASSERT_TRUE(chain.has_value()) << chain.error().message;
  const auto reading = few_masks(chain->layout);
  ASSERT_TRUE(reading.has_value()) << reading.error().message;
  for (const Layout* layout : {&named, &*reading}) {
    const auto verdict = verify::verify(rules, *layout);
    ASSERT_TRUE(verdict.has_value()) << verdict.error().message;
    EXPECT_TRUE(verdict->equivalent)
        << to_string(verdict->counterexample->packet) << ": " << verdict->counterexample->by_rules
        << " became " << verdict->counterexample->by_layout;
  }
}

INSTANTIATE_TEST_SUITE_P(Sets, RealRules,
                         testing::Values("classbench/acl1_1k.rules.xz",
                                         "classbench/acl5_1k.rules.xz",
                                         "classbench/fw4_1k.rules.xz",
                                         "classbench/ipc1_1k.rules.xz", "openflow/of1_1k.of.xz"),
                         [](const auto& set) {
                           const std::string name = set.param;
                           return name.substr(name.find('/') + 1,
                                              name.find('.') - name.find('/') - 1);
                         });

// Claim:  a copy into a register counts as looking only while nothing looks at that register.
// Method: a rule of the set matches the register that the reading table copies into.
TEST(FewMasks, IsNotProvenWhereSomethingLooksAtTheCopy) {
  RuleSet rules;
  FlowRule rule;
  rule.match.set(F::kEtherType, 0x0800);
  rule.match.set(F::kIpv4Src, 1);
  rule.actions = {Action::forward("a")};
  rules.rules = {rule};
  auto reading = few_masks(flat_layout(rules));
  ASSERT_TRUE(reading.has_value());
  EXPECT_TRUE(verify::verify(rules, *reading)->equivalent);
  FlowRule spy;
  spy.match.set(F::kReg15, 1);
  spy.priority = 1;
  rules.rules.push_back(spy);
  reading->tables.back().matchers.push_back({spy.match.mask(), 1, {spy}});
  const auto refused = verify::verify(rules, *reading);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace greynic::flows
