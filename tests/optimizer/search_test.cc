/// Parts of the search that are quick ways to what a slow, obvious way finds.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <random>
#include <string>
#include <utility>

#include "greynic/rules/traffic.h"
#include "greynic/verify/verify.h"
#include "search/searched.h"
#include "sized.h"
#include "src/drafts/draft.h"
#include "src/spend/spend.h"
#include "src/table_planner.h"

namespace greynic::optimizer {
namespace {

/// Filters of many narrow port ranges: two of them may have a port in common, and each one with certain low bits,
/// but none of these in common.
RuleSet of_ranges(std::size_t count, std::mt19937_64& random) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    text += "@" + std::to_string(random() % 4 * 64) + ".0.0.0/2\t0.0.0.0/0";
    for (int field = 0; field < 2; ++field) {
      const std::size_t low = random() % 64;
      const std::size_t high = low + random() % 16;
      text += "\t" + std::to_string(low) + " : " + std::to_string(high);
    }
    text += "\t0x06/0xFF\n";
  }
  return rules::parse_rules(text, "ranges", rules::Format::kClassbench).value();
}

/// What is open of some rows of a region in a cube, or, where the mask is empty, of some of its rows.
struct Part {
  chained::UnitRows rows;
  std::vector<std::uint32_t> from;
};

Part part_of(chained::Units& units, const chained::UnitRows& rows, const std::vector<Word>& mask,
             std::mt19937_64& random) {
  const std::size_t words = mask.size();
  const bool all = std::ranges::all_of(mask, [](Word word) { return word == 0; });
  const std::size_t model = random() % rows.size();
  std::vector<Word> value(rows.hull.value[model], rows.hull.value[model] + words);
  for (const chained::Slot& slot : units.slot) slot.set(random() & 0x3f, value.data());
  for (std::size_t w = 0; w < words; ++w) value[w] &= mask[w];
  Part part{chained::UnitRows(words), {}};
  for (std::uint32_t row = 0; row < rows.size(); ++row) {
    if (all ? random() % 3 == 0 : !units.meets(rows, row, value.data(), mask.data())) continue;
    units.add_within(part.rows, rows, row, value.data(), mask.data());
    part.from.push_back(row);
  }
  return part;
}

// Claim:  what must come before a row of a part of a region is what is found when all rows of the part are looked
//         through, in parts of parts, too, with cubes of ports and of addresses, and where few or many are listed.
// Oracle: conflicts_of, of the rows of the part.
TEST(Conflicts, OfPartsAreThoseOfAllTheirRows) {
  std::mt19937_64 random(11);
  std::size_t too_many = 0;
  std::size_t no_more = 0;
  for (const std::string family : {"acl", "fw", "ipc", "ranges"}) {
    const RuleSet rules = family == "ranges" ? of_ranges(200, random) : made(family, 300, 7);
    const Table table(rules);
    chained::Units units(table.problem);
    if (family == "acl" || family == "ranges") {  // some rows do the same
      for (std::uint32_t& effect : units.effect) effect %= 3;
    }
    const Columns& columns = table.problem.columns;
    for (std::size_t i = 0; i < sized<std::size_t>(60, 20); ++i) {
      const std::size_t most = std::array{1U, 3U, 10U, 100U}[i % 4];
      chained::UnitRows outer = units.rows;
      chained::Conflicts among = chained::conflicts_of(units, outer, most);
      for (int depth = 0; depth < 4 && outer.size() > 1; ++depth) {
        std::vector<Word> mask(columns.words(), 0);
        const std::size_t kind = random() % 3;  // some of its rows, addresses, ports
        for (const chained::Slot& slot : units.slot) {
          if (kind == 2 && random() % 2 == 0) slot.set(random() & random() & 0x3f, mask.data());
        }
        if (kind == 1) {
          const Word* looks_at = outer.hull.mask[random() % outer.size()];
          for (std::size_t w = 0; w < mask.size(); ++w) mask[w] = looks_at[w] & random();
          for (const chained::Slot& slot : units.slot) slot.set(0, mask.data());
        }
        Part part = part_of(units, outer, mask, random);
        std::vector<std::uint32_t> row_inside(outer.size(), kNoRow);
        const auto inherited = chained::conflicts_within(
            units, among, outer, part.rows, part.from,
            kind == 2 ? chained::Meeting::kOfPorts : chained::Meeting::kSure, row_inside);
        const auto anew = chained::conflicts_of(units, part.rows, most);
        for (std::size_t row = 0; row < part.rows.size(); ++row) {
          ASSERT_EQ(inherited.many[row], anew.many[row]) << family << ' ' << i << ' ' << depth;
          if (!anew.many[row]) {
            ASSERT_TRUE(std::ranges::equal(inherited.before(row), anew.before(row))) << family;
          }
          if (anew.many[row]) ++too_many;
          if (among.many[part.from[row]] && !anew.many[row]) ++no_more;
        }
        outer = std::move(part.rows);
        among = inherited;
      }
    }
  }
  EXPECT_GT(too_many, 0U);
  EXPECT_GT(no_more, 0U);
}

// Claim:  chains made again with all care have the entries of those made quickly, in an order that decides every
//         packet alike, and on the mean packets try less.
// Oracle: the first entry of each chain that matches a packet, followed matcher by matcher.
TEST(GrowPlan, MakesChainsAgainThatDoTheSame) {
  double before = 0.0;
  double after = 0.0;
  std::size_t chains = 0;
  for (const std::uint64_t seed : {5U, 6U, 8U}) {
    const RuleSet rules = made("acl", 1000, seed);
    Searched searched(rules);
    const chained::GrowOptions options{2e-2, 0, 1'000'000, 60};  // one chain
    chained::GrownPlan grown = searched.grow(options).plan;
    const std::vector<chained::QuickChain> quick = grown.quick;
    const chained::Plan quickly = grown.plan;
    chains += quick.size();
    EXPECT_EQ(chained::make_chains_again(grown), !quick.empty());
    EXPECT_EQ(chained::entries_of(grown.plan), chained::entries_of(quickly));
    for (const chained::QuickChain& chain : quick) {
      const auto decides = [&](const chained::Plan& plan, const Word* packet) -> std::uint32_t {
        const auto& matchers = plan[chain.table].matchers;
        for (std::size_t m = chain.begin; m < matchers.size(); ++m) {
          for (std::size_t e = 0; e < matchers[m].entries.size(); ++e) {
            if (matches(matchers[m].values[e], matchers[m].mask.data(), packet,
                        matchers[m].mask.size())) {
              return searched.units.effect[matchers[m].entries[e].unit];
            }
          }
        }
        return kNoRow;
      };
      const Rows& packets = searched.table.entered.packets;
      for (std::size_t i = 0; i < packets.size(); i += 7) {
        ASSERT_EQ(decides(grown.plan, packets[i]), decides(quickly, packets[i]));
      }
    }
    before += chained::tried_in(quickly);
    after += chained::tried_in(grown.plan);
  }
  ASSERT_GT(chains, 0U) << "choose other seeds: no chain of these sets has a circle";
  EXPECT_LT(after, before);
}

// Claim:  1025:65535, of which 0:1023 and 1024 are left out, is guarded as 1024:65535 is, by a matcher more: over several
//         sets layouts cost at most a fifth more.
// Oracle: the same filters with 1024:65535, the layouts priced by core's walk.
TEST(Guard, TakesPortsThatSeveralPrefixesLeaveOut) {
  const auto cost = [](std::uint64_t seed, const std::string& ports) {
    const RuleSet rules = made("fw", sized(300, 150), seed, ports);
    const Table table(rules);
    const TableRoom room = room_for(rules);
    const TablePlanner planner(rules, table.problem, table.entered, table.traffic, table.decider,
                               room);
    return planner.joined().front().cost;
  };
  double by_two = 0.0;
  double by_one = 0.0;
  for (std::uint64_t seed = 3; seed < 7; ++seed) {
    by_two += cost(seed, "1025 : 65535");
    by_one += cost(seed, "1024 : 65535");
  }
  EXPECT_LT(by_two, 1.2 * by_one);
}

// Claim:  a layout that takes too many comparisons to prove gives way to one without filters, which is proven, and not
//         to the searches that come last.
// Oracle: verify's count for the layout that is found first.
TEST(Draft, TakesALayoutThatIsEasierToProve) {
  const RuleSet rules = made("acl", 1000, 5);
  const Traffic traffic = rules::uniform_traffic(rules, 1);
  const std::vector<std::uint32_t> members = rules_by_table(rules).begin()->second;
  const TableRoom room = room_for(rules);
  const auto drafted = [&](QuickProver quick) {
    Effects effects;
    return draft_table(rules, members, traffic, {}, room, effects, quick);
  };
  const auto filters = [](const TableDraft& draft) {
    return std::ranges::count_if(draft.tables, [](const LayoutTable& table) {
      return std::ranges::any_of(table.matchers, [](const Matcher& matcher) {
        return sends_all_to_one(matcher.rules, [](const FlowRule& rule) {
          const Action& last = rule.actions.back();
          return last.kind == ActionKind::kJump ? last.number : chained::kNowhere;
        });
      });
    });
  };
  const TableDraft found = drafted(QuickProver());
  ASSERT_TRUE(found.proven);
  EXPECT_GT(filters(found), 0) << "choose another seed: this set needs no filter";
  const auto proof = verify::verify(rules, Layout{found.tables});
  ASSERT_TRUE(proof) << proof.error().message;
  const TableDraft easier = drafted(QuickProver(false, proof->comparisons - 1));
  EXPECT_TRUE(easier.proven);
  EXPECT_LT(easier.proof.pairs, proof->comparisons);
  EXPECT_EQ(filters(easier), 0);
}

// Claim:  the plan without filters that comes beside one with filters is the one that a search without
//         filters finds.
// Oracle: that search.
TEST(GrowPlan, LeavesFiltersOutWhereOnlyTheyAreGrownAgain) {
  const RuleSet rules = made("acl", 1000, 5);
  Searched searched(rules);
  const auto grow = [&](bool filters) {
    chained::GrowOptions options{2e-3, 1'000'000, 1'000'000, 60};
    options.filters = filters;
    options.without_too = filters;
    return searched.grow(options);
  };
  chained::Grown both = grow(true);
  ASSERT_TRUE(both.filtered) << "choose another seed: this set needs no filter";
  chained::Grown alone = grow(false);
  EXPECT_FALSE(alone.filtered);
  EXPECT_TRUE(Sum(both.without.plan) == Sum(alone.plan.plan));
  EXPECT_FALSE(Sum(both.plan.plan) == Sum(alone.plan.plan));
  EXPECT_GT(both.without.quick.size(), 0U) << "choose another seed: no chain has a circle";
  EXPECT_EQ(both.without.quick.size(), alone.plan.quick.size());
  EXPECT_EQ(chained::make_chains_again(both.without), chained::make_chains_again(alone.plan));
  EXPECT_TRUE(Sum(both.without.plan) == Sum(alone.plan.plan));
}

// Claim:  a quick search ends with a layout that is proven, too, and that tries no fewer matchers than what the whole
//         search finds; on some set it tries more.
// Oracle: the whole search, its layouts proven by verify.
TEST(Optimize, QuicklyFindsALayoutThatIsProven) {
  int worse = 0;
  for (const char* family : {"acl", "ipc", "fw"}) {
    const RuleSet rules = made(family, sized(300, 150), 5);
    const Traffic traffic = rules::uniform_traffic(rules, 1);
    OptimizeOptions options;
    const auto whole = optimize(rules, traffic, options);
    options.quick = true;
    const auto quick = optimize(rules, traffic, options);
    ASSERT_TRUE(whole && quick);
    const auto verdict = verify::verify(rules, quick->layout);
    ASSERT_TRUE(verdict) << verdict.error().message;
    EXPECT_TRUE(verdict->equivalent) << family;
    EXPECT_GE(quick->after.matchers_tried, whole->after.matchers_tried) << family;
    if (quick->after.matchers_tried > 1.01 * whole->after.matchers_tried) ++worse;
  }
  EXPECT_GT(worse, 0) << "choose other seeds: on these sets the first plan is the best";
}

// Claim:  where later steps taken otherwise make a layout better, the one before them is kept behind it, should the
//         better one not be proven.
// Oracle: verify, and core's walk by which both are priced.
TEST(TablePlanner, KeepsTheLayoutBeforeLaterSteps) {
  const RuleSet rules = made("acl", sized(600, 300), 5);
  const Table table(rules);
  const TableRoom room = room_for(rules);
  const TablePlanner planner(rules, table.problem, table.entered, table.traffic, table.decider,
                             room);
  const auto found = planner.joined();
  ASSERT_EQ(found.size(), 2U) << "choose another seed: no later step is better on this set";
  EXPECT_LT(found[0].cost, found[1].cost);
  for (const Costed& one : found) {
    const auto verdict = verify::verify(rules, Layout{one.tables});
    ASSERT_TRUE(verdict) << verdict.error().message;
    EXPECT_TRUE(verdict->equivalent);
    EXPECT_DOUBLE_EQ(cost_of(Layout{one.tables}, table.traffic).matchers_tried, one.cost);
  }
}

// Claim:  where some packets wait for many matchers, more of what must come before a rule is listed as long as first
//         plans gain by it: the outcome costs no more than the first plan with 100 or 900 listed, and on some set less
//         than all that the search finds with 100.
// Oracle: the search with so many listed, its layouts priced by core's walk.
TEST(TablePlanner, ListsMoreConflictsWhileThatPays) {
  int gained = 0;
  for (const std::uint64_t seed : {4U, 5U}) {
    const RuleSet rules = made("ipc", 1000, seed);
    const Table table(rules);
    const TableRoom room = room_for(rules);
    const TablePlanner planner(rules, table.problem, table.entered, table.traffic, table.decider,
                               room);
    const double cost = planner.joined().front().cost;
    chained::TableSearch search(rules, table.problem, table.entered.packets, table.entered.weight,
                                table.decider);
    const auto cheaper = [&](chained::LaidOut made) {
      const double best = planner.costed(std::move(made.tables)).cost;
      return made.other.empty() ? best : std::min(best, planner.costed(std::move(made.other)).cost);
    };
    chained::TableOptions options{0, 1, room.most_rules, room.most_tables};
    if (cost < 0.99 * cheaper(search.lay_out(options))) ++gained;
    for (const std::size_t listed : {100, 900}) {
      options.most_conflicts = listed;
      EXPECT_LE(cost, cheaper(search.attempt(options).lay_out()) * 1.000001) << "seed " << seed;
    }
    if (kSanitized && gained > 0) break;
  }
  EXPECT_GT(gained, 0) << "choose other seeds: these sets need no more";
}

}  // namespace
}  // namespace greynic::optimizer
