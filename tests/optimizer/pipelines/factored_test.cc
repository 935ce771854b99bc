/// Tables that are products, taken apart.

#include <gtest/gtest.h>

#include "greynic/optimizer/optimize.h"
#include "greynic/rules/traffic.h"
#include "random_products.h"
#include "sized.h"
#include "src/entering.h"
#include "src/factored/factor.h"
#include "src/factored/prefixes.h"

namespace greynic::optimizer {
namespace {

using factored::DecisionTrees;
using factored::kNothing;
using factored::Prefix;

ArrivingTraffic arriving_at(const RuleSet& rules, std::uint64_t seed) {
  ArrivingTraffic arriving;
  for (const TrafficFlow& flow : rules::uniform_traffic(rules, seed).flows) {
    arriving[flow.table].flows.push_back(flow);
  }
  return arriving;
}

/// The rule that a packet ends at, through the tables of classes.
const FlowRule* hit_in(const RuleSet& rules, std::uint32_t table, std::uint32_t first_added,
                       const Packet& packet) {
  while (true) {
    const FlowRule* const hit = look_up(rules, table, packet);
    if (hit == nullptr || hit->actions.empty() || hit->actions.back().kind != ActionKind::kJump ||
        hit->actions.back().number < first_added) {
      return hit;
    }
    table = static_cast<std::uint32_t>(hit->actions.back().number);
  }
}

// Claim:  taken apart or not, a table does the same to every packet; most products are taken apart, and few
//         rules are left of them.
// Oracle: core's lookup of all 1,024 packets, one rule after another.
// Method: 400 tables of sets of sources and destinations under any masks, of one effect or several, with
//         other rules before and behind, at prices of an entry from nothing to far too much.
TEST(Factored, TablesDoTheSameToEveryPacket) {
  std::size_t products = 0;
  for (std::uint64_t seed = 1; seed <= sized(400U, 60U); ++seed) {
    RuleSet rules{small_product_rules(3, seed), "made"};
    FactorOptions options;
    options.first_free = first_free_table(rules);
    options.last_table = seed % 9 == 0 ? options.first_free : 1000;
    options.price = seed % 2 == 0 ? 0.0 : 1e-4 * static_cast<double>(seed % 300);
    options.all_weight = static_cast<double>(rules.rules.size());
    const FactoredRules made = factor_tables(rules, arriving_at(rules, seed), options);
    products += made.products;
    EXPECT_LE(made.rules.rules.size(), rules.rules.size()) << "seed " << seed;
    for (const FlowRule& rule : made.rules.rules) {
      ASSERT_LE(rule.table, options.last_table) << "seed " << seed;
    }
    for (unsigned number = 0; number < 1U << SmallSpace::kBits; ++number) {
      const Packet packet = SmallSpace::packet(number);
      const FlowRule* const wanted = look_up(rules, 3, packet);
      const FlowRule* const got = hit_in(made.rules, 3, options.first_free, packet);
      ASSERT_EQ(wanted == nullptr, got == nullptr) << "seed " << seed << ": " << to_string(packet);
      if (wanted == nullptr) continue;
      ASSERT_EQ(wanted->actions, got->actions) << "seed " << seed << ": " << to_string(packet);
    }
  }
  EXPECT_GE(products, sized(100U, 15U));
}

// Claim:  the same through whole pipelines, and nothing that was found is wrong.
// Oracle: each packet followed through all tables from each of them.
// Method: 90 pipelines of 2 to 4 tables, one of which is a product.
TEST(Factored, PipelinesDoTheSameToEveryPacketFromEveryEntrance) {
  std::size_t products = 0;
  for (std::uint64_t seed = 1; seed <= sized(90U, 15U); ++seed) {
    const auto tables = static_cast<std::uint32_t>(2 + seed % 3);
    const RuleSet rules = small_product_pipeline(8 + seed % 30, tables, seed);
    FactorOptions factoring;
    factoring.first_free = first_free_table(rules);
    factoring.last_table = 1000;
    products += factor_tables(rules, arriving_at(rules, seed), factoring).products;
    OptimizeOptions options;
    options.max_growth = 1.0 + 0.2 * static_cast<double>(seed % 6);
    const auto made = optimize(rules, rules::uniform_traffic(rules, seed), options);
    ASSERT_TRUE(made) << "seed " << seed << ": " << made.error().message;
    for (const std::string& note : made->notes) {
      EXPECT_EQ(note.find("please report"), std::string::npos) << "seed " << seed << ": " << note;
    }
    EXPECT_LE(static_cast<double>(made->layout.rule_count()),
              options.max_growth * static_cast<double>(rules.rules.size()))
        << "seed " << seed;
    for (std::uint32_t table = 0; table < tables; ++table) {
      for (unsigned number = 0; number < 1U << SmallSpace::kBits; ++number) {
        const Packet packet = SmallSpace::packet(number);
        ASSERT_EQ(way_by_rules(rules, table, packet),
                  way_by_layout(made->layout, rules, table, packet))
            << "seed " << seed << ", table " << table << ": " << to_string(packet);
      }
    }
  }
  EXPECT_GE(products, sized(10U, 2U));
}

// Claim:  sources that are told from one address by each of their bits, with the same ports, are one prefix behind that
//         address; all sources of one list of ports share a table.
// Oracle: by hand.
TEST(Factored, WritesAllButOneAsTwoPrefixes) {
  RuleSet rules;
  const auto add = [&](U128 source, U128 bits, U128 port) {
    FlowRule rule;
    rule.match.set(MatchField::kIpv4Src, source, bits);
    rule.match.set(MatchField::kL4DstPort, port);
    rule.actions = {Action::forward("p1")};
    rules.rules.push_back(std::move(rule));
  };
  for (U128 port = 1; port <= 8; ++port) {
    for (U128 bit = 1; bit <= 0x80; bit <<= 1) add(0x0a000000 | bit, 0xffffff00 | bit, port);
    for (U128 host = 0; host < 4; ++host) add(0x0b000000 | host, 0xffffffff, port);
  }
  FlowRule rest;
  rest.priority = 1;
  rules.rules.push_back(rest);
  FactorOptions options;
  options.first_free = 1;
  options.last_table = 9;
  options.price = 1e9;
  const FactoredRules made = factor_tables(rules, arriving_at(rules, 1), options);
  EXPECT_EQ(made.products, 1U);
  // 10.0.0.0, 10.0.0.0/24, 11.0.0.0/30 and the rest; ports 0, 0 to 7, 8 and the rest.
  EXPECT_EQ(made.rules.rules.size(), 4U + 4U);
}

// Claim:  prefixes decide for each value what the tree does, also when written out to fewer lengths.
// Oracle: the tree, walked bit by bit.
// Method: 500 trees over 6 bits, of four decisions, one of which is to decide nothing.
TEST(Factored, PrefixesDecideWhatTheTreeDoes) {
  constexpr unsigned kWidth = 6;
  std::size_t fewer = 0;
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    std::mt19937_64 random(seed);
    std::vector<std::uint32_t> decided;
    for (unsigned value = 0; value < 1U << kWidth; ++value) {
      const bool new_one = value == 0 || random() % (1 + seed % 8) == 0;
      const auto any = static_cast<std::uint32_t>(random() % 4);
      decided.push_back(!new_one ? decided.back() : any == 3 ? kNothing : any);
    }
    DecisionTrees trees;
    std::vector<std::uint32_t> level;
    for (const std::uint32_t decision : decided) level.push_back(trees.leaf(decision));
    while (level.size() > 1) {
      std::vector<std::uint32_t> above;
      for (std::size_t i = 0; i < level.size(); i += 2) {
        above.push_back(trees.both(level[i], level[i + 1]));
      }
      level = std::move(above);
    }
    // Bits apart from one another, as rules may look at them.
    const factored::FieldBits bits = factored::field_bits(0b10110110100);
    ASSERT_EQ(bits.width(), kWidth);
    auto found = factored::prefixes_of(trees, level.front(), bits, kNothing);
    ASSERT_TRUE(found);
    std::vector<std::vector<Prefix>> lists = {std::move(*found)};
    const auto check = [&] {
      for (unsigned value = 0; value < 1U << kWidth; ++value) {
        U128 packet = 0b01001001011;  // what no rule looks at
        for (unsigned at = 0; at < kWidth; ++at) {
          if ((value >> (kWidth - 1 - at) & 1) != 0) packet |= bits.bit[at];
        }
        const std::size_t hit = factored::longest_match(lists.front(), bits, packet);
        const std::uint32_t got =
            hit == lists.front().size() ? kNothing : lists.front()[hit].decision;
        ASSERT_EQ(got, decided[value]) << "seed " << seed << ", value " << value;
      }
    };
    check();
    const auto lengths = [&] {
      std::vector<unsigned> all;
      for (const Prefix& prefix : lists.front()) all.push_back(prefix.length);
      all.erase(std::unique(all.begin(), all.end()), all.end());
      return all.size();
    };
    const std::size_t before = lengths();
    factored::LengthWeights weights;
    for (unsigned length = 0; length <= kWidth; ++length) {
      weights.decided[length] = static_cast<double>(random() % 10);
    }
    factored::write_out(lists, bits, weights, false, 0.5);
    check();
    fewer += lengths() < before ? 1 : 0;
  }
  EXPECT_GE(fewer, 100U);
}

}  // namespace
}  // namespace greynic::optimizer
