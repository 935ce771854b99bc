/// Parts of the search that are quick ways to what a slow, obvious way finds.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <random>

#include "greynic/rules/made_filters.h"
#include "greynic/rules/read_rules.h"
#include "greynic/rules/traffic.h"
#include "sized.h"
#include "src/chained/grow.h"
#include "src/entering.h"
#include "src/overlap.h"
#include "src/problem.h"
#include "src/table_planner.h"

namespace greynic::optimizer {
namespace {

constexpr std::size_t kWords = 2;

/// Rows that look at some of 12 columns in each word, under so many masks.
Ternaries random_rows(std::size_t count, std::size_t masks, std::mt19937_64& random) {
  std::vector<std::array<Word, kWords>> looks_at(masks);
  for (auto& mask : looks_at) {
    for (Word& word : mask) word = random() & random() & 0xfff;
  }
  Ternaries rows(kWords);
  for (std::size_t i = 0; i < count; ++i) {
    const auto& mask = looks_at[random() % masks];
    std::array<Word, kWords> value{};
    for (std::size_t w = 0; w < kWords; ++w) value[w] = random() & mask[w];
    rows.add(value.data(), mask.data());
  }
  return rows;
}

// Claim:  the first row that matches a packet is found, with few masks and with many, in any order.
// Oracle: a scan of all rows.
// Method: rows in random order and sorted by mask, as the matchers of a layout are; many are alike.
TEST(FirstMatches, AreThoseOfAScan) {
  std::mt19937_64 random(5);
  for (const std::size_t masks : {1, 5, 32, 33, 400, 600}) {
    for (const std::size_t count : {13, 200, 2500}) {
      const Ternaries rows = random_rows(count, masks, random);
      Rows packets(kWords);
      for (std::size_t i = 0; i < sized(300, 60); ++i) {
        for (Word *packet = packets.add(), *end = packet + kWords; packet != end; ++packet) {
          *packet = random() & 0xfff;
        }
      }
      const auto found = first_matches(rows, packets);
      for (std::size_t i = 0; i < packets.size(); ++i) {
        std::uint32_t first = 0;
        while (first < rows.size() &&
               !matches(rows.value[first], rows.mask[first], packets[i], kWords)) {
          ++first;
        }
        ASSERT_EQ(found[i], first < rows.size() ? first : kNoRow)
            << masks << " masks, " << count << " rows";
      }
    }
  }
}

// Claim:  of a column's two sides the smaller one counts four times; the column where that is most splits best.
// Oracle: each column counted by itself.
TEST(BestSplit, IsThatOfCountingEachColumn) {
  std::mt19937_64 random(6);
  for (std::size_t round = 0; round < 200; ++round) {
    const std::size_t count = 1 + random() % 255;  // all of them are looked at
    const Ternaries rows = random_rows(count, 1 + random() % 20, random);
    std::vector<std::uint32_t> members(count);
    for (std::uint32_t i = 0; i < count; ++i) members[i] = i;
    const std::vector<Word> decided = {random() & 0xff, 0};
    int best = -1;
    std::size_t best_score = 0;
    for (std::size_t column = 0; column < kWords * 64; ++column) {
      const Word bit = Word{1} << column % 64;
      if ((decided[column / 64] & bit) != 0) continue;
      std::array<std::size_t, 2> sides{};
      for (const std::uint32_t row : members) {
        if ((rows.mask[row][column / 64] & bit) == 0) continue;
        ++sides[(rows.value[row][column / 64] & bit) != 0 ? 1 : 0];
      }
      const std::size_t score = std::min(sides[0], sides[1]) * 4 + std::max(sides[0], sides[1]);
      if (score <= best_score) continue;
      best_score = score;
      best = static_cast<int>(column);
    }
    EXPECT_EQ(best_split(rows, members, decided), best) << count << " rows";
  }
}

/// What a plan comes to, whatever the numbers of its tables.
struct Sum {
  std::size_t entries = 0;
  std::size_t matchers = 0;
  std::vector<double> missing;
  explicit Sum(const chained::Plan& plan) : entries(entries_of(plan)) {
    for (const chained::PlanTable& table : plan) {
      matchers += table.matchers.size();
      if (table.exit != chained::kNowhere) missing.push_back(table.missing);
    }
    std::sort(missing.begin(), missing.end());
  }
  bool operator==(const Sum&) const = default;
};

// Claim:  the plan without filters that comes beside one with filters is the one that a search without
//         filters finds.
// Oracle: that search.
TEST(GrowPlan, LeavesFiltersOutWhereOnlyTheyAreGrownAgain) {
  const auto text = rules::made_filters({"acl", 1000, 5});
  ASSERT_TRUE(text) << text.error().message;
  const auto rules = rules::parse_rules(*text, "acl", rules::Format::kClassbench);
  ASSERT_TRUE(rules) << rules.error().message;
  const Traffic traffic = rules::uniform_traffic(*rules, 1);
  Effects effects;
  Problem all = make_problem(*rules, rules_by_table(*rules).begin()->second, effects);
  const Entering entered = entering(traffic, all.columns);
  std::vector<std::uint32_t> decider = weigh(all, entered);
  chained::Units units(all);
  for (std::uint32_t& row : decider) {
    if (row != kNoRow) row = units.unit_of_row[row];
  }
  const auto conflicts = chained::conflicts_of(units, units.rows, 100);
  const auto grow = [&](bool filters) {
    chained::GrowOptions options{2e-3, 1'000'000, 1'000'000, 60};
    options.filters = filters;
    options.without_too = filters;
    return chained::grow_plan(units, conflicts, entered.packets, entered.weight, decider, options);
  };
  const chained::Grown both = grow(true);
  ASSERT_TRUE(both.filtered) << "choose another seed: this set needs no filter";
  const chained::Grown alone = grow(false);
  EXPECT_FALSE(alone.filtered);
  EXPECT_TRUE(Sum(both.without) == Sum(alone.plan));
  EXPECT_FALSE(Sum(both.plan) == Sum(alone.plan));
}

// Claim:  where some packets wait for many matchers, more of what must come before a rule is listed as long as that
//         pays: the outcome costs no more than with 100 or 300 listed, and on some set less than with either.
// Oracle: the search with so many listed, its layouts priced by core's walk.
TEST(TablePlanner, ListsMoreConflictsWhileThatPays) {
  int gained = 0;
  for (const std::uint64_t seed : {2U, 7U}) {
    const auto text = rules::made_filters({"ipc", 1000, seed});
    ASSERT_TRUE(text) << text.error().message;
    const auto rules = rules::parse_rules(*text, "ipc", rules::Format::kClassbench);
    ASSERT_TRUE(rules) << rules.error().message;
    const Traffic traffic = rules::uniform_traffic(*rules, 1);
    Effects effects;
    Problem all = make_problem(*rules, rules_by_table(*rules).begin()->second, effects);
    const Entering entered = entering(traffic, all.columns);
    weigh(all, entered);
    const std::vector<bool> redundant = redundant_rows(all);
    std::vector<std::uint32_t> kept;
    for (std::uint32_t row = 0; row < redundant.size(); ++row) {
      if (!redundant[row]) kept.push_back(row);
    }
    Problem deciding = part_of(all, kept);
    const std::vector<std::uint32_t> decider = weigh(deciding, entered);
    TableRoom room;
    room.first_free = 1;
    room.most_rules = 2 * rules->rules.size();
    room.most_tables = room.most_rules;
    const TablePlanner planner(*rules, deciding, entered, traffic, decider, room);
    const double cost = planner.joined().front().cost;
    chained::TableSearch search(*rules, deciding, entered.packets, entered.weight, decider);
    double best = std::numeric_limits<double>::infinity();
    for (const std::size_t listed : {100, 300}) {
      chained::TableOptions options{0, 1, room.most_rules, room.most_tables};
      options.most_conflicts = listed;
      auto made = search.lay_out(options);
      best = std::min(best, planner.costed(std::move(made.tables)).cost);
      if (!made.without.empty()) {
        best = std::min(best, planner.costed(std::move(made.without)).cost);
      }
    }
    EXPECT_LE(cost, best * 1.000001) << "seed " << seed;
    if (cost < 0.99 * best) ++gained;
  }
  EXPECT_GT(gained, 0) << "choose other seeds: these sets need no more";
}

}  // namespace
}  // namespace greynic::optimizer
