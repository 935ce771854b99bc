/// Lists of rules as diagrams of bits, and what is asked of packets.

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "../optimizer/pipelines/random_pipelines.h"
#include "src/bits/bit_diagrams.h"
#include "src/bits/first_match.h"
#include "src/bits/questions.h"

namespace greynic::verify {
namespace {

constexpr std::uint32_t kBits = 10;
constexpr std::uint32_t kMissed = 99;

struct Listed {
  FirstMatch::Asked asked;
  std::uint32_t value = 0;
};

std::vector<Listed> random_list(std::mt19937_64& random) {
  std::vector<Listed> list;
  const std::size_t rules = random() % 30;
  const std::uint64_t sparse = 1 + random() % 5;
  for (std::size_t i = 0; i < rules; ++i) {
    Listed rule;
    for (std::uint32_t bit = 0; bit < kBits; ++bit) {
      if (random() % sparse == 0) rule.asked.emplace_back(bit, random() % 2 == 0);
    }
    rule.value = static_cast<std::uint32_t>(random() % 4);
    list.push_back(std::move(rule));
  }
  return list;
}

KnownBits packet_of(unsigned number) {
  KnownBits bits;
  for (std::uint32_t bit = 0; bit < kBits; ++bit) bits.push_back(number >> bit & 1);
  return bits;
}

std::uint32_t first_match(const std::vector<Listed>& list, const KnownBits& packet) {
  const auto hit = std::ranges::find_if(list, [&](const Listed& rule) {
    return std::ranges::all_of(rule.asked, [&](const auto& asked) {
      return packet[asked.first] == (asked.second ? 1 : 0);
    });
  });
  return hit == list.end() ? kMissed : hit->value;
}

FunctionId function_of(const std::vector<Listed>& list, FirstMatch& lists) {
  for (const Listed& rule : list) lists.add(rule.asked, rule.value);
  return lists.take(kMissed);
}

/// A rule is told apart by one bit, or comes again further down.
std::vector<Listed> told_apart(std::vector<Listed> list, std::mt19937_64& random) {
  if (list.empty()) return list;
  const std::size_t at = random() % list.size();
  Listed again = list[at];
  const auto bit = static_cast<std::uint32_t>(random() % kBits);
  const bool asks =
      std::ranges::count(again.asked, bit, &std::pair<std::uint32_t, bool>::first) > 0;
  if (asks) {
    list.insert(list.begin() + static_cast<std::ptrdiff_t>(at + random() % (list.size() - at)) + 1,
                std::move(again));
    return list;
  }
  for (Listed* rule : {&list[at], &again}) {
    rule->asked.emplace_back(bit, rule == &again);
    std::ranges::sort(rule->asked);
  }
  list.insert(list.begin() + static_cast<std::ptrdiff_t>(at), std::move(again));
  return list;
}

// Claim:  the diagram of a list does to every packet what the first rule that matches does; lists that do the same are one
//         diagram; sets, cut and joined, hold what they should.
// Oracle: all 1,024 packets, one rule after another.
// Method: 300 lists of up to 30 rules over 10 bits, from exact to wide ones, and one rewrite of each.
TEST(BitDiagrams, DoWhatTheListDoes) {
  BitDiagrams diagrams(1'000'000, 100'000'000);
  FirstMatch lists(diagrams);
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    std::mt19937_64 random(seed);
    const std::vector<Listed> one = random_list(random);
    const std::vector<Listed> other = random_list(random);
    const FunctionId function = function_of(one, lists);
    const FunctionId second = function_of(other, lists);
    ASSERT_EQ(function_of(told_apart(one, random), lists), function) << "seed " << seed;
    const BitDiagrams::Parts parts = diagrams.parts(function);
    FunctionId low = BitDiagrams::kNone;  // packets whose value is 0 or 1
    for (const auto& [value, packets] : parts) {
      if (value < 2) low = diagrams.either(low, packets);
    }
    const FunctionId cut = diagrams.within(low, second);
    const auto now = [&](FunctionId at, const KnownBits& packet) {
      return diagrams.known(at, packet);
    };
    for (unsigned number = 0; number < 1U << kBits; ++number) {
      const KnownBits packet = packet_of(number);
      const std::uint32_t value = first_match(one, packet);
      ASSERT_EQ(now(function, packet), diagrams.leaf(value)) << "seed " << seed;
      for (const auto& [part, packets] : parts) {
        const FunctionId wanted = part == value ? BitDiagrams::kAll : BitDiagrams::kNone;
        ASSERT_EQ(now(packets, packet), wanted) << "seed " << seed;
      }
      const FunctionId wanted =
          value < 2 ? diagrams.leaf(first_match(other, packet)) : BitDiagrams::kNone;
      ASSERT_EQ(now(cut, packet), wanted) << "seed " << seed;
    }
    for (const auto& [value, packets] : parts) {
      KnownBits member(kBits, 0);
      for (const std::uint32_t bit : diagrams.member(packets)) member[bit] = 1;
      ASSERT_EQ(first_match(one, member), value) << "seed " << seed;
    }
  }
}

// Claim:  a product of n addresses and the same ports is the addresses and the ports, not each with each; where nodes or
//         steps run out, that is said.
// Oracle: by hand: 256 sources of 16 bits with the same 64 ports: at most 16 nodes a source, and 16 a port.
TEST(BitDiagrams, AreSmallForProducts) {
  const auto fill = [](FirstMatch& lists) {
    std::mt19937_64 random(7);
    std::vector<std::uint64_t> ports;
    for (int port = 0; port < 64; ++port) ports.push_back(random());
    for (int source = 0; source < 256; ++source) {
      const std::uint64_t address = random();
      for (const std::uint64_t port : ports) {
        FirstMatch::Asked asked;
        for (std::uint32_t bit = 0; bit < 16; ++bit) asked.emplace_back(bit, address >> bit & 1);
        for (std::uint32_t bit = 0; bit < 16; ++bit) asked.emplace_back(16 + bit, port >> bit & 1);
        lists.add(asked, 1);
      }
    }
    return lists.take(kMissed);
  };
  BitDiagrams enough(10'000, 10'000'000);
  FirstMatch lists(enough);
  EXPECT_NE(fill(lists), BitDiagrams::kNone);
  EXPECT_FALSE(enough.ran_out());
  EXPECT_LT(enough.size(), 16U * (256 + 64));
  BitDiagrams few_nodes(1000, 10'000'000);
  FirstMatch short_of_nodes(few_nodes);
  (void)fill(short_of_nodes);
  EXPECT_TRUE(few_nodes.ran_out());
  BitDiagrams few_steps(10'000, 1000);
  FirstMatch short_of_steps(few_steps);
  (void)fill(short_of_steps);
  EXPECT_TRUE(few_steps.ran_out());
}

/// Fields of few values: bits of their own, bits that always go together, and parts of a field that are set.
RuleSet rules_of_few_values(std::mt19937_64& random) {
  RuleSet rules;
  const U128 upper = random() & 0xffff0000;
  for (int i = 0; i < 20; ++i) {
    FlowRule rule;
    if (random() % 3 != 0)
      rule.match.set(MatchField::kMetadata, random() % 4, full_mask(MatchField::kMetadata));
    const U128 lower = random() % 2 == 0 ? 0xff00 : 0xfffff;
    rule.match.set(MatchField::kIpv4Dst, upper | (random() & lower), 0xfff00000 | lower);
    if (random() % 2 == 0) rule.match.set(MatchField::kReg0, 0x30, 0xf0);
    if (random() % 4 == 0) {
      rule.actions.push_back({.kind = ActionKind::kSetField,
                              .field = MatchField::kReg0,
                              .value = random() & 0x70,
                              .bits = 0x70});
    }
    rules.rules.push_back(std::move(rule));
  }
  return rules;
}

// Claim:  a packet matches a rule when it answers all that the rule asks as the rule wants; once actions are done, their
//         answers count; what rules always ask together is one question.
// Oracle: core's match of the packet that gives these answers.
// Method: 100 sets of 20 rules, 50 packets each, before and after the actions of each rule.
TEST(Questions, AreAnsweredAsTheRulesMatch) {
  std::size_t matched = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    std::mt19937_64 random(seed);
    const RuleSet rules = rules_of_few_values(random);
    TablesOfSet tables;
    for (const FlowRule& rule : rules.rules) tables[0].push_back(&rule);
    const Questions questions(tables, {});
    // Of metadata two bits and all others, of reg0 what is set and what is not, of addresses each that differs.
    EXPECT_LE(questions.count(), 3U + 2 + 1 + 20);
    for (int packets = 0; packets < 50; ++packets) {
      std::vector<bool> answers;
      std::vector<std::uint32_t> yes;
      const FlowRule& near = rules.rules[random() % rules.rules.size()];
      for (std::uint32_t number = 0; number < questions.count(); ++number) {
        answers.push_back(random() % 4 == 0);
      }
      for (const auto& [number, wanted] : questions.asked(near.match)) {
        if (random() % 40 != 0) answers[number] = wanted;
      }
      for (std::uint32_t number = 0; number < answers.size(); ++number) {
        if (answers[number]) yes.push_back(number);
      }
      const Packet packet = questions.packet(yes);
      for (const FlowRule& by : rules.rules) {
        Packet changed = packet;
        for (const Action& action : by.actions) {
          changed.set(action.field,
                      (changed.value(action.field) & ~action.bits) | (action.value & action.bits));
        }
        const auto known = questions.written(by.actions);
        for (const FlowRule& rule : rules.rules) {
          const auto asked = questions.asked(rule.match);
          const bool hit = std::ranges::all_of(asked, [&](const auto& one) {
            const auto set = known.find(one.first);
            return one.second == (set == known.end() ? bool{answers[one.first]} : set->second);
          });
          ASSERT_EQ(rule.match.matches(changed), hit) << "seed " << seed;
          matched += hit ? 1 : 0;
        }
      }
    }
  }
  EXPECT_GT(matched, 10'000U);
}

}  // namespace
}  // namespace greynic::verify
