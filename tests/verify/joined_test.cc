/// Planted bugs and harmless rewrites in layouts whose tables are joined.

#include <array>
#include <numeric>
#include <string>

#include "../optimizer/pipelines/random_products.h"
#include "greynic/optimizer/optimize.h"
#include "greynic/rules/traffic.h"
#include "planted.h"

namespace greynic::verify {
namespace {

bool alike_everywhere(const RuleSet& rules, const Layout& layout, std::uint32_t tables) {
  // Rules around products ask for a mark that small packets do not have.
  const bool marked = std::ranges::any_of(rules.rules, [](const FlowRule& rule) {
    return std::ranges::count(rule.match.fields(), MatchField::kReg1, &FieldMatch::field) > 0;
  });
  const unsigned marks = marked ? 2 : 1;
  for (std::uint32_t table = 0; table < tables; ++table) {
    for (unsigned number = 0; number < 1U << SmallSpace::kBits; ++number) {
      for (unsigned mark = 0; mark < marks; ++mark) {
        Packet packet = SmallSpace::packet(number);
        if (mark > 0) packet.set(MatchField::kReg1, mark);
        if (way_by_rules(rules, table, packet) != way_by_layout(layout, rules, table, packet)) {
          return false;
        }
      }
    }
  }
  return true;
}

/// Without diagrams of bits.
VerifyOptions by_search() {
  VerifyOptions options;
  options.most_nodes = 0;
  return options;
}

/// Three times the rules leave much to join.
auto joined(const RuleSet& rules, std::uint64_t seed) {
  optimizer::OptimizeOptions options;
  options.max_growth = 3.0;
  return optimizer::optimize(rules, rules::uniform_traffic(rules, seed), options);
}

/// A rule whose actions a condition holds for; null where there is none.
template <typename Condition>
FlowRule* any_rule(Layout& layout, std::mt19937_64& random, const Condition& condition) {
  std::vector<FlowRule*> found;
  for (LayoutTable& table : layout.tables) {
    for (Matcher& matcher : table.matchers) {
      for (FlowRule& rule : matcher.rules) {
        if (condition(rule)) found.push_back(&rule);
      }
    }
  }
  return found.empty() ? nullptr : found[random() % found.size()];
}

bool sets_bits(const FlowRule& rule) {
  return std::ranges::any_of(
      rule.actions, [](const Action& action) { return action.kind == ActionKind::kSetField; });
}

bool jumps_to_rules(const FlowRule& rule, std::uint32_t tables) {
  return !rule.actions.empty() && rule.actions.back().kind == ActionKind::kJump &&
         rule.actions.back().number < tables;
}

/// Is an action of unknown kind on the way, or does the layout end with a jump that the rules do not make? Such jumps
/// are followed towards tables that were compared before, and else taken for different.
bool is_not_followed(const Counterexample& shown) {
  const auto has = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  return has(shown.by_rules, "learn") || has(shown.by_layout, "learn") ||
         has(shown.by_layout, "jump");
}

/// Breaks what joins tables, in one of five ways; false where that way is not open.
bool break_join(Layout& layout, std::uint32_t tables, unsigned way, std::mt19937_64& random) {
  const auto jumping = [&](const FlowRule& rule) { return jumps_to_rules(rule, tables); };
  switch (way) {
    case 0: {  // a table too many is passed by, or one too few
      FlowRule* const rule = any_rule(layout, random, jumping);
      if (rule == nullptr) return false;
      rule->actions.back().number = random() % tables;
      return true;
    }
    case 1: {  // what is right for packets of another rule
      FlowRule* const rule = any_rule(layout, random, jumping);
      const FlowRule* const other = any_rule(layout, random, jumping);
      if (rule == nullptr) return false;
      rule->actions = other->actions;
      return true;
    }
    case 2: {  // bits are not set
      FlowRule* const rule = any_rule(layout, random, sets_bits);
      if (rule == nullptr) return false;
      rule->actions.erase(std::ranges::find(rule->actions, ActionKind::kSetField, &Action::kind));
      return true;
    }
    case 3: {  // other bits are set
      FlowRule* const rule = any_rule(layout, random, sets_bits);
      if (rule == nullptr) return false;
      Action& set = *std::ranges::find(rule->actions, ActionKind::kSetField, &Action::kind);
      set.value ^= set.bits & (~set.bits + 1);
      return true;
    }
    default: {  // the packet ends before the next table
      FlowRule* const rule = any_rule(layout, random, jumping);
      if (rule == nullptr) return false;
      rule->actions.pop_back();
      return true;
    }
  }
}

using Pipelines = RuleSet (*)(std::size_t count, std::uint32_t tables, std::uint64_t seed);

/// Each layout broken in ten ways: wrong tables passed by, actions of another rule, writes lost or changed, ends too
/// early, and five that concern matchers.
void find_planted_bugs(Pipelines pipeline, std::uint64_t cases) {
  std::array<int, 6> caught{};
  int harmless = 0;
  for (std::uint64_t seed = 1; seed <= cases; ++seed) {
    std::mt19937_64 random(seed);
    const auto tables = static_cast<std::uint32_t>(3 + seed % 4);
    const RuleSet rules = pipeline(8 + seed % 40, tables, seed + 100'000);
    const auto made = joined(rules, seed);
    ASSERT_TRUE(made) << "seed " << seed << ": " << made.error().message;
    for (unsigned way = 0; way < 6; ++way) {
      Layout layout = made->layout;
      if (way < 5) {
        if (!break_join(layout, tables, way, random)) continue;
      } else {
        layout = broken(std::move(layout), random);
        if (layout.tables.empty()) continue;
      }
      const bool alike = alike_everywhere(rules, layout, tables);
      const auto verdict = verify(rules, layout);
      const auto searched = verify(rules, layout, by_search());
      ASSERT_EQ(verdict.has_value(), searched.has_value()) << "seed " << seed << ", way " << way;
      if (!verdict) {  // jumps in a circle
        EXPECT_FALSE(alike) << "seed " << seed << ", way " << way << verdict.error().message;
        continue;
      }
      ASSERT_EQ(verdict->equivalent, searched->equivalent) << "seed " << seed << ", way " << way;
      if (alike && !verdict->equivalent && is_not_followed(*verdict->counterexample)) continue;
      ASSERT_EQ(verdict->equivalent, alike) << "seed " << seed << ", way " << way;
      (alike ? harmless : caught[way]) += 1;
      if (alike) continue;
      const Counterexample& shown = *verdict->counterexample;
      if (is_not_followed(shown)) continue;
      EXPECT_NE(way_by_rules(rules, shown.table, shown.packet),
                way_by_layout(layout, rules, shown.table, shown.packet))
          << "seed " << seed << ", way " << way << ": " << to_string(shown.packet);
    }
  }
  for (const int count : caught) EXPECT_GE(count, static_cast<int>(cases / 8));
  EXPECT_GT(harmless, static_cast<int>(cases / 8));
  testing::Test::RecordProperty("caught", std::accumulate(caught.begin(), caught.end(), 0));
  testing::Test::RecordProperty("harmless", harmless);
}

/// Four rewrites each that change nothing: tables copied for one jump, rules split or repeated, tables written where a
/// jump led to them.
void find_no_bug(Pipelines pipeline, std::uint64_t cases) {
  int rewrites = 0;
  for (std::uint64_t seed = 1; seed <= cases; ++seed) {
    std::mt19937_64 random(seed);
    const auto tables = static_cast<std::uint32_t>(3 + seed % 4);
    const RuleSet rules = pipeline(8 + seed % 40, tables, seed + 200'000);
    const auto made = joined(rules, seed);
    ASSERT_TRUE(made) << "seed " << seed << ": " << made.error().message;
    Layout layout = made->layout;
    for (int i = 0; i < 4; ++i) layout = rewritten(std::move(layout), random);
    if (!alike_everywhere(rules, layout, tables)) continue;
    rewrites += layout == made->layout ? 0 : 1;
    const auto verdict = verify(rules, layout);
    ASSERT_TRUE(verdict) << "seed " << seed << ": " << verdict.error().message;
    ASSERT_TRUE(verdict->equivalent)
        << "seed " << seed << ": " << to_string(verdict->counterexample->packet);
  }
  EXPECT_GT(rewrites, static_cast<int>(cases / 2));
}

// Claim:  the verdict is right for joined tables, whole and broken, and each counterexample shows a packet
//         that is not treated alike.
// Oracle: every packet followed through all tables, rule by rule, from each table.
// Method: 300 pipelines (4,000 by night) of 3 to 6 tables.
TEST(VerifyJoined, FindsEveryPlantedBugAndNoOther) {
  find_planted_bugs(small_random_pipeline, static_cast<std::uint64_t>(more_by_night(300, 4000)));
}

// Claim:  the same where products are taken apart: tables of classes that many jumps share.
// Oracle: as above.
// Method: 100 pipelines (1,500 by night), one table of each a product.
TEST(VerifyJoined, FindsEveryPlantedBugInProductsAndNoOther) {
  find_planted_bugs(small_product_pipeline, static_cast<std::uint64_t>(more_by_night(100, 1500)));
}

// Claim:  joined layouts that are rewritten so that nothing changes are equivalent.
// Oracle: every packet followed through all tables; a copy of a table of the rules tells a miss in it otherwise, and is left
//         out.
// Method: 300 pipelines (4,000 by night).
TEST(VerifyJoined, HasNoFalseAlarm) {
  find_no_bug(small_random_pipeline, static_cast<std::uint64_t>(more_by_night(300, 4000)));
}

// Claim:  nor have products that are taken apart one.
// Oracle: as above.
// Method: 100 pipelines (1,500 by night).
TEST(VerifyJoined, HasNoFalseAlarmInProducts) {
  find_no_bug(small_product_pipeline, static_cast<std::uint64_t>(more_by_night(100, 1500)));
}

/// Table 0 tells sources apart and jumps to table 1, which tells destinations apart.
RuleSet two_tables(std::uint32_t count) {
  RuleSet rules;
  for (std::uint32_t i = 0; i < 2 * count; ++i) {
    FlowRule rule;
    rule.table = i / count;
    rule.priority = 1;
    rule.match.set(rule.table == 0 ? MatchField::kIpv4Src : MatchField::kIpv4Dst, i, 0xffffffff);
    rule.actions = {rule.table == 0 ? Action::jump(1) : Action::forward("p1")};
    rules.rules.push_back(rule);
  }
  return rules;
}

/// Does all at once: destinations stand in table 2, behind the sources.
Layout at_once(const RuleSet& rules) {
  Layout layout{{{0, {{}}}, {1, {{}}}, {2, {{}, {}}}}};
  for (FlowRule rule : rules.rules) {
    const bool first = rule.table == 0;
    if (first) rule.actions = {Action::jump(2)};
    for (const std::uint32_t table : first ? std::vector{0U} : std::vector{1U, 2U}) {
      Matcher& matcher = layout.tables[table].matchers.front();
      matcher.mask = rule.match.mask();
      matcher.rules.push_back(rule);
    }
  }
  FlowRule missed;
  missed.actions = {Action::jump(1)};
  layout.tables[2].matchers.back().rules.push_back(missed);
  return layout;
}

// Claim:  a layout that does at once what the rules do in 640,000 ways is decided, right or wrong, with a packet. By search
//         alone it is refused, and takes no memory for all ways.
// Oracle: by hand: 800 sources, behind each of which 800 destinations are looked up; then one destination does
//         something else.
TEST(VerifyJoined, DecidesLayoutsOfManyWays) {
  const RuleSet rules = two_tables(800);
  Layout layout = at_once(rules);
  const auto right = verify(rules, layout);
  ASSERT_TRUE(right) << right.error().message;
  EXPECT_TRUE(right->equivalent) << to_string(right->counterexample->packet);
  const auto searched = verify(rules, layout, by_search());
  ASSERT_FALSE(searched);
  EXPECT_EQ(searched.error().code, ErrorCode::kUnsupported) << searched.error().message;
  FlowRule& rule = layout.tables[2].matchers.front().rules[123];
  rule.actions = {Action::forward("p2")};
  const auto wrong = verify(rules, layout);
  ASSERT_TRUE(wrong) << wrong.error().message;
  ASSERT_FALSE(wrong->equivalent);
  const Packet& shown = wrong->counterexample->packet;
  EXPECT_EQ(wrong->counterexample->table, 0U);
  EXPECT_TRUE(rule.match.matches(shown));
  EXPECT_NE(look_up(rules, 0, shown), nullptr);
  EXPECT_EQ(wrong->counterexample->by_rules, "forward p1");
  EXPECT_EQ(wrong->counterexample->by_layout, "forward p2");
}

// Claim:  a layout that goes further at once than rules with long lists of actions is refused before these are written
//         out for each rule behind them.
// Oracle: 10,000 actions in front of 2,000 rules, and one table more: 2 GB of them, of an input of less than a
//         megabyte.
TEST(VerifyJoined, RefusesLayoutsOfTooLongWays) {
  constexpr std::uint32_t kActions = 10'000, kRules = 2'000;
  RuleSet rules;
  FlowRule first;
  for (std::uint32_t i = 0; i < kActions; ++i) {
    first.actions.push_back({.kind = ActionKind::kSetField,
                             .field = MatchField::kReg0,
                             .value = i,
                             .bits = 0xffffffff});
  }
  first.actions.push_back(Action::jump(1));
  rules.rules.push_back(first);
  Layout layout{{{0, {{}, {}}}, {1, {{}}}, {2, {{}}}}};
  layout.tables[0].matchers[1].rules.push_back(first);
  for (std::uint32_t i = 0; i < kRules; ++i) {
    FlowRule rule;
    rule.table = 1;
    rule.match.set(MatchField::kIpv4Dst, i, 0xffffffff);
    rule.actions = {Action::forward("p" + std::to_string(i)), Action::jump(2)};
    rules.rules.push_back(rule);
    for (const std::uint32_t table : {0U, 1U}) {
      layout.tables[table].matchers.front().mask = rule.match.mask();
      layout.tables[table].matchers.front().rules.push_back(rule);
    }
    layout.tables[0].matchers.front().rules.back().actions.pop_back();
  }
  FlowRule last;
  last.table = 2;
  last.actions = {Action::forward("end")};
  rules.rules.push_back(last);
  layout.tables[2].matchers.front().rules.push_back(last);
  for (const VerifyOptions& options : {VerifyOptions{}, by_search()}) {
    const auto verdict = verify(rules, layout, options);
    ASSERT_FALSE(verdict);
    EXPECT_EQ(verdict.error().code, ErrorCode::kUnsupported) << verdict.error().message;
  }
}

}  // namespace
}  // namespace greynic::verify
