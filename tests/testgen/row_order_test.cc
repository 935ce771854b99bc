#include "plan/row_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <set>

#include "sized.h"

namespace greynic::testgen {
namespace {

using Rows = std::vector<LevelRow>;

/// Three parameters without an order, three with one.
const std::vector<Axis> kAxes = {{4, false}, {4, false}, {4, false},
                                 {4, true},  {4, true},  {4, true}};

/// The sets of one to three conditions on different parameters that rows meet.
using Met = std::array<std::set<std::vector<std::array<int, 3>>>, 3>;

Met met(const Rows& rows, std::size_t count) {
  Met out;
  for (std::size_t r = 0; r < count; ++r) {
    std::vector<std::array<int, 3>> conditions;
    for (int p = 0; p < 6; ++p) {
      const int level = rows[r][static_cast<std::size_t>(p)];
      if (level < 0) continue;
      for (int l = 0; l < 4; ++l) {
        if (p < 3 && l == level) conditions.push_back({p, 0, l});
        if (p >= 3 && l <= level && l > 0) conditions.push_back({p, 1, l});
        if (p >= 3 && l >= level && l < 3) conditions.push_back({p, 2, l});
      }
    }
    for (const auto& a : conditions) {
      out[0].insert({a});
      for (const auto& b : conditions) {
        if (a[0] < b[0]) out[1].insert({a, b});
        for (const auto& c : conditions) {
          if (a[0] < b[0] && b[0] < c[0]) out[2].insert({a, b, c});
        }
      }
    }
  }
  return out;
}

/// How likely the first rows meet a cause: of 6 parameters there are 6, 15 and 20 sets of one, two
/// and three.
double likelihood(const Rows& rows, std::size_t count) {
  const Met all = met(rows, count);
  return static_cast<double>(all[0].size()) / 6 + static_cast<double>(all[1].size()) / 15 +
         static_cast<double>(all[2].size()) / 20;
}

Rows random_rows(std::mt19937& rng, std::size_t count) {
  Rows rows(count, LevelRow(6));
  for (auto& row : rows) {
    for (int& level : row) level = static_cast<int>(rng() % 9) / 2 - (rng() % 12 == 0 ? 5 : 0);
    for (int& level : row) level = std::clamp(level, -1, 3);
  }
  return rows;
}

// Claim:  the order keeps every row and the fixed ones' places, and each next row meets as much
//         that is likely to be a cause as any that is left.
// Oracle: sets of conditions written out and counted.
// Method: 20 random arrays of three unordered and three ordered factors, some cells absent.
TEST(RowOrder, PutsTheRowThatMeetsMostCausesNext) {
  for (unsigned seed = 1; seed <= sized(20U, 1U); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 rng(seed);
    Rows rows = random_rows(rng, 25);
    const Rows before = rows;
    put_likely_causes_first(rows, kAxes, 2);
    ASSERT_TRUE(std::is_permutation(rows.begin(), rows.end(), before.begin(), before.end()));
    EXPECT_TRUE(std::equal(rows.begin(), rows.begin() + 2, before.begin()));
    for (std::size_t at = 2; at < rows.size(); ++at) {
      const double now = likelihood(rows, at + 1);
      for (std::size_t other = at + 1; other < rows.size(); ++other) {
        Rows swapped = rows;
        std::swap(swapped[at], swapped[other]);
        ASSERT_LE(likelihood(swapped, at + 1), now + 1e-9) << "row " << other << " before " << at;
      }
    }
  }
}

// Claim:  each row of a front is valid and meets at least as much as any of the pool, and no change
//         of one level that is valid would make it meet more.
// Oracle: sets of conditions written out and counted.
// Method: 10 random pools, with a forbidden pair of levels and a row that was there before.
TEST(RowOrder, BeginsWithRowsThatNoSingleChangeBetters) {
  const auto valid = [](const LevelRow& row) { return row[0] != 1 || row[4] != 3; };
  for (unsigned seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 rng(seed);
    Rows pool = random_rows(rng, 30);
    std::erase_if(pool, [&](const LevelRow& row) { return !valid(row); });
    Rows rows = {pool.back()};
    const Rows front = front_rows(pool, rows, kAxes, 4, valid);
    ASSERT_EQ(front.size(), 4U);
    for (const LevelRow& row : front) {
      ASSERT_TRUE(valid(row));
      rows.push_back(row);
      const double now = likelihood(rows, rows.size());
      for (const LevelRow& other : pool) {
        rows.back() = other;
        ASSERT_LE(likelihood(rows, rows.size()), now + 1e-9);
      }
      for (std::size_t p = 0; p < row.size(); ++p) {
        for (int level = 0; row[p] >= 0 && level < 4; ++level) {
          rows.back() = row;
          rows.back()[p] = level;
          if (!valid(rows.back())) continue;
          ASSERT_LE(likelihood(rows, rows.size()), now + 1e-9) << "level " << level << " of " << p;
        }
      }
      rows.back() = row;
    }
  }
}

}  // namespace
}  // namespace greynic::testgen
