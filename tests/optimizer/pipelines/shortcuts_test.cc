/// Ways around tables that would ask again what is known.

#include "src/joined/shortcuts.h"

#include <gtest/gtest.h>

#include "greynic/optimizer/optimize.h"
#include "greynic/rules/traffic.h"
#include "random_products.h"
#include "sized.h"
#include "src/entering.h"
#include "src/factored/factor.h"

namespace greynic::optimizer {
namespace {

FactoredRules taken_apart(const RuleSet& rules, const Traffic& traffic) {
  ArrivingTraffic arriving;
  for (const TrafficFlow& flow : traffic.flows) arriving[flow.table].flows.push_back(flow);
  FactorOptions options;
  options.first_free = first_free_table(rules);
  options.last_table = 1000;
  return factor_tables(rules, arriving, options);
}

/// Tables of classes miss for the table that leads to them.
std::string wherever_missed(std::string way) {
  for (std::size_t at = 0; (at = way.find("; at ", at)) != std::string::npos; at += 2) {
    way.erase(at, way.find(" no match", at) - at);
  }
  return way;
}

ShortcutOptions any_number(const RuleSet& rules, const RuleSet& factored) {
  ShortcutOptions options;
  options.first_added = first_free_table(rules);
  options.first_free = first_free_table(factored);
  options.last_table = 1000;
  options.most_added = 1000;
  options.least_share = 0.0;
  return options;
}

/// A packet of the small space, with one mark or another.
Packet marked(unsigned number) {
  Packet packet = SmallSpace::packet(number);
  packet.set(MatchField::kReg2, (number ^ number >> 3 ^ number >> 7) & 3);
  return packet;
}

// Claim:  whatever table a packet comes to, the same is done to it, in the same order, with ways around tables or
//         without; all rules name lines of the input; tables get no ids beyond the last, and no more rules than may be
//         are added.
// Oracle: each of 1,024 packets, with some mark, followed through all tables by core's lookup.
// Method: those of 300 pipelines, two tables of which are nearly one product, in which a way was found.
TEST(Shortcuts, TablesDoTheSameToEveryPacketFromEveryEntrance) {
  std::size_t led_around = 0;
  for (std::uint64_t seed = 1; seed <= sized(300U, 60U); ++seed) {
    const RuleSet rules = small_repeated_product(seed);
    const Traffic traffic = rules::uniform_traffic(rules, seed);
    const RuleSet factored = taken_apart(rules, traffic).rules;
    ShortcutOptions options = any_number(rules, factored);
    if (seed % 5 == 0) options.last_table = options.first_free;
    if (seed % 7 == 0) options.most_added = seed % 10;
    const ShortcutRules made = with_shortcuts(factored, traffic, options);
    if (made.shortcuts == 0) continue;
    ++led_around;
    EXPECT_LE(made.rules.rules.size(), factored.rules.size() + options.most_added) << seed;
    for (const FlowRule& rule : made.rules.rules) {
      ASSERT_LE(rule.table, options.last_table) << seed;
      ASSERT_FALSE(rule.table >= options.first_free && rule.from.empty()) << seed;
    }
    for (std::uint32_t table = 0; table < 3; ++table) {
      for (unsigned number = 0; number < 1U << SmallSpace::kBits; ++number) {
        const Packet packet = marked(number);
        ASSERT_EQ(wherever_missed(way_by_rules(rules, table, packet)),
                  wherever_missed(way_by_rules(made.rules, table, packet)))
            << "seed " << seed << ", table " << table << ": " << to_string(packet);
      }
    }
  }
  EXPECT_GE(led_around, sized(10U, 2U));
}

// Claim:  the layouts of such pipelines are proven, and do the same to every packet.
// Oracle: each packet followed through the layout and the rules.
TEST(Shortcuts, LayoutsDoTheSameToEveryPacket) {
  for (std::uint64_t seed = 31; seed <= sized(60U, 36U); ++seed) {
    const RuleSet rules = small_repeated_product(seed);
    OptimizeOptions options;
    options.max_growth = 1.0 + 0.2 * static_cast<double>(seed % 6);
    const auto made = optimize(rules, rules::uniform_traffic(rules, seed), options);
    ASSERT_TRUE(made) << "seed " << seed << ": " << made.error().message;
    for (const std::string& note : made->notes) {
      EXPECT_EQ(note.find("please report"), std::string::npos) << "seed " << seed << ": " << note;
    }
    for (std::uint32_t table = 0; table < 3; ++table) {
      for (unsigned number = 0; number < 1U << SmallSpace::kBits; ++number) {
        const Packet packet = marked(number);
        ASSERT_EQ(way_by_rules(rules, table, packet),
                  way_by_layout(made->layout, rules, table, packet))
            << "seed " << seed << ", table " << table << ": " << to_string(packet);
      }
    }
  }
}

/// Eight addresses with eight ports, twice: table 0 marks, table 1 asks for the mark first.
RuleSet asked_twice() {
  RuleSet rules;
  const auto add = [&](std::uint32_t table, Match match, std::vector<Action> actions) {
    FlowRule rule;
    rule.match = std::move(match);
    rule.priority = static_cast<RulePriority>(rules.rules.size());
    rule.table = table;
    rule.actions = std::move(actions);
    rule.from = {static_cast<std::uint32_t>(rules.rules.size())};
    rules.rules.push_back(std::move(rule));
  };
  const Action mark{
      .kind = ActionKind::kSetField, .field = MatchField::kReg0, .value = 1, .bits = 1};
  for (const std::uint32_t table : {0U, 1U}) {
    if (table == 1) {
      Match broken;
      broken.set(MatchField::kCtState, 1, 1);
      add(1, broken, {Action::drop()});
      Match unmarked;
      unmarked.set(MatchField::kReg0, 0, 1);
      add(1, unmarked, {Action::forward("unmarked")});
    }
    for (U128 address = 0; address < 8; ++address) {
      for (U128 port = 0; port < 8; ++port) {
        Match match;
        match.set(MatchField::kIpv4Src, 10 + 7 * address);
        match.set(MatchField::kL4DstPort, 80 + 5 * port);
        if (table == 0) {
          add(0, match, {mark, Action::jump(1)});
        } else {
          add(1, match, {Action::forward("allowed")});
        }
      }
    }
    add(table, {}, {Action::drop()});
  }
  return rules;
}

// Claim:  what is known is asked no more: a mark, an address and a port. One table of two rules serves all ports.
// Oracle: by hand.
TEST(Shortcuts, AskOnlyWhatIsNotKnown) {
  const RuleSet rules = asked_twice();
  const Traffic traffic = rules::uniform_traffic(rules, 1);
  const FactoredRules factored = taken_apart(rules, traffic);
  ASSERT_EQ(factored.products, 2U);
  const ShortcutOptions options = any_number(rules, factored.rules);
  const ShortcutRules made = with_shortcuts(factored.rules, traffic, options);
  ASSERT_EQ(made.rules.rules.size(), factored.rules.rules.size() + 2);
  const FlowRule& broken = made.rules.rules[factored.rules.rules.size()];
  const FlowRule& allowed = made.rules.rules.back();
  EXPECT_EQ(to_string(broken.match), "ct_state=0x1/0x1");
  EXPECT_EQ(broken.actions.size(), 1U);
  EXPECT_TRUE(allowed.match.fields().empty());
  ASSERT_EQ(allowed.actions.size(), 2U);
  EXPECT_EQ(allowed.actions.back(), Action::forward("allowed"));
  EXPECT_EQ(made.shortcuts, 8U);
}

// Claim:  where jumps lead in a circle, nothing is done.
TEST(Shortcuts, LeaveCirclesAlone) {
  RuleSet rules = asked_twice();
  for (FlowRule& rule : rules.rules) {
    if (rule.table == 1 && rule.actions.front() == Action::forward("unmarked")) {
      rule.actions = {Action::jump(0)};
    }
  }
  const Traffic traffic = rules::uniform_traffic(rules, 1);
  const RuleSet factored = taken_apart(rules, traffic).rules;
  EXPECT_EQ(with_shortcuts(factored, traffic, any_number(rules, factored)).shortcuts, 0U);
}

}  // namespace
}  // namespace greynic::optimizer
