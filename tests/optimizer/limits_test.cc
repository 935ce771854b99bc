/// Layouts for devices that do not take every layout.

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "greynic/optimizer/optimize.h"
#include "greynic/rules/made_filters.h"
#include "greynic/rules/read_rules.h"
#include "greynic/rules/traffic.h"
#include "random_rules.h"

namespace greynic::optimizer {
namespace {

constexpr std::size_t kNone = LayoutLimits::kNoLimit;

/// What a layout takes of a device, counted here once more.
struct Taken {
  std::uint32_t last_table = 0;
  std::size_t most_rules = 0;
  std::size_t words = 0;  ///< one for each field of each matcher, and one
  std::size_t widest = 0;
  std::size_t most_entrances = 0;  ///< tables that jump to one table
};

std::size_t words_of(const Mask& mask) { return mask.fields().size() + 1; }

Taken taken_by(const Layout& layout) {
  Taken taken;
  std::map<std::uint64_t, std::set<std::uint32_t>> entrances;
  for (const LayoutTable& table : layout.tables) {
    std::size_t rules = 0;
    taken.last_table = std::max(taken.last_table, table.id);
    for (const Matcher& matcher : table.matchers) {
      rules += matcher.rules.size();
      taken.words += words_of(matcher.mask);
      taken.widest = std::max(taken.widest, words_of(matcher.mask));
      for (const FlowRule& rule : matcher.rules) {
        if (rule.actions.empty() || rule.actions.front().kind != ActionKind::kJump) continue;
        auto& from = entrances[rule.actions.front().number];
        from.insert(table.id);
        taken.most_entrances = std::max(taken.most_entrances, from.size());
      }
    }
    taken.most_rules = std::max(taken.most_rules, rules);
  }
  return taken;
}

/// Looked up one rule after another; a jump that leads to no hit hits nothing.
const FlowRule* decided_by(const Layout& layout, const Packet& packet) {
  const FlowRule* rule = look_up(layout, packet).rule;
  const bool jumped =
      rule != nullptr && !rule->actions.empty() && rule->actions.front().kind == ActionKind::kJump;
  return jumped ? nullptr : rule;
}

// Claim:  a layout keeps to each limit, alone and with others, and still does to every packet what
//         the rules do; where none of them can be kept, that is said and nothing is returned.
// Oracle: what layouts take, counted here; core's lookups for each packet there is.
TEST(Limits, AreKeptByLayoutsThatAreRight) {
  int found = 0;
  int refused = 0;
  for (std::uint64_t seed = 1; seed <= 120; ++seed) {
    const RuleSet rules = small_random_rules(10 + seed % 40, 6, seed);
    std::mt19937_64 random(seed);
    LayoutLimits limits;
    if (random() % 2 == 0) limits.last_table = static_cast<std::uint32_t>(random() % 40);
    if (random() % 2 == 0) limits.most_rules = 2 + random() % 12;
    if (random() % 3 == 0) limits.shared_tables = false;
    limits.recipes_of = words_of;
    if (random() % 3 == 0) limits.most_recipes = 30 + random() % 150;
    if (random() % 8 == 0) limits.most_chained = 3;
    OptimizeOptions options;
    options.limits = limits;
    options.max_growth = 2.0;
    const auto made = optimize(rules, rules::uniform_traffic(rules, seed), options);
    if (!made) {
      EXPECT_EQ(made.error().code, ErrorCode::kTooBig) << made.error().message;
      ++refused;
      continue;
    }
    ++found;
    const Taken taken = taken_by(made->layout);
    EXPECT_LE(taken.last_table, limits.last_table) << "seed " << seed;
    EXPECT_LE(taken.most_rules, limits.most_rules) << "seed " << seed;
    EXPECT_LE(taken.words, limits.most_recipes) << "seed " << seed;
    EXPECT_LE(taken.widest, limits.most_chained) << "seed " << seed;
    if (!limits.shared_tables) EXPECT_LE(taken.most_entrances, 1U) << "seed " << seed;
    for (unsigned number = 0; number < 1U << SmallSpace::kBits; ++number) {
      const Packet packet = SmallSpace::packet(number);
      const FlowRule* const wanted = look_up(rules, 0, packet);
      const FlowRule* const got = decided_by(made->layout, packet);
      ASSERT_EQ(wanted == nullptr, got == nullptr) << "seed " << seed << ", packet " << number;
      if (wanted != nullptr) ASSERT_EQ(wanted->actions, got->actions) << "seed " << seed;
    }
  }
  EXPECT_GT(found, 60);
  EXPECT_GT(refused, 5);
}

// Claim:  limits cost no more than they must: where the layout without limits keeps to them, it is
//         the one that comes out, and each single limit still gains much over the order given.
// Oracle: the same search without limits; the cost of the rules in their order.
TEST(Limits, CostNoMoreThanTheyMust) {
  const auto text = rules::made_filters({"acl", 500, 3});
  ASSERT_TRUE(text) << text.error().message;
  const auto read = rules::parse_rules(*text, "made", rules::Format::kClassbench);
  ASSERT_TRUE(read) << read.error().message;
  const RuleSet& rules = *read;
  const Traffic traffic = rules::uniform_traffic(rules, 1);
  OptimizeOptions options;
  const auto free = optimize(rules, traffic, options);
  ASSERT_TRUE(free) << free.error().message;
  const Taken taken = taken_by(free->layout);
  options.limits.last_table = taken.last_table;
  options.limits.most_rules = kNone - 1;
  const auto same = optimize(rules, traffic, options);
  ASSERT_TRUE(same) << same.error().message;
  EXPECT_LE(same->after.matchers_tried, free->after.matchers_tried * 1.02);

  const auto tried_with = [&](const LayoutLimits& limits) {
    OptimizeOptions limited;
    limited.limits = limits;
    const auto made = optimize(rules, traffic, limited);
    EXPECT_TRUE(made) << made.error().message;
    return made ? made->after.matchers_tried : 1e9;
  };
  EXPECT_LT(tried_with({.shared_tables = false}), 0.25 * free->before.matchers_tried);
  EXPECT_LT(tried_with({.most_rules = 100}), 0.25 * free->before.matchers_tried);
  const std::size_t chain = free->bound.matchers;
  EXPECT_LT(tried_with({.most_recipes = 2 * chain}), 0.25 * free->before.matchers_tried);
}

// Claim:  what no layout can keep is named with its number, and the remedy is the reader's to take.
// Oracle: three rules of three masks, on a device for two.
TEST(Limits, ThatNothingKeepsAreNamed) {
  RuleSet rules;
  for (const unsigned bits : {0xffU, 0xf0U, 0x0fU}) {
    FlowRule rule;
    rule.match.set(MatchField::kIpProtocol, bits, bits);
    rule.priority = static_cast<RulePriority>(rules.rules.size());
    rule.actions = {Action::forward("p" + std::to_string(bits))};
    rules.rules.push_back(rule);
  }
  OptimizeOptions options;
  options.limits.most_recipes = 2;
  const auto made = optimize(rules, rules::uniform_traffic(rules, 1), options);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ErrorCode::kTooBig);
  EXPECT_NE(made.error().message.find("3 matchers take 3 recipes; there may be 2"),
            std::string::npos)
      << made.error().message;
}

}  // namespace
}  // namespace greynic::optimizer
