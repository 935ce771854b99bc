#include "row_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace greynic::testgen {
namespace {

using Rows = std::vector<std::vector<int>>;

/// The pairs of conditions that rows meet: a level of the first three factors, which have no order,
/// and "at least" or "at most" a level of the others.
std::set<std::vector<int>> met(const Rows& rows, std::size_t count) {
  std::set<std::vector<int>> out;
  for (std::size_t r = 0; r < count; ++r) {
    std::vector<std::vector<int>> conditions;
    for (int p = 0; p < 6; ++p) {
      const int level = rows[r][static_cast<std::size_t>(p)];
      if (level < 0) continue;
      for (int l = 0; l < 4; ++l) {
        if (p < 3 && l == level) conditions.push_back({p, 0, l});
        if (p >= 3 && l <= level) conditions.push_back({p, 1, l});
        if (p >= 3 && l >= level) conditions.push_back({p, 2, l});
      }
    }
    for (const auto& a : conditions) {
      for (const auto& b : conditions) {
        if (a < b) out.insert({a[0], a[1], a[2], b[0], b[1], b[2]});
      }
    }
  }
  return out;
}

// Claim:  the order keeps every row and the fixed ones' places, and each next row meets as many new
//         pairs of conditions as any that is left.
// Oracle: conditions written out and counted in a set.
// Method: 20 random arrays of three unordered and three ordered factors, some cells absent.
TEST(RowOrder, PutsTheRowWithMostNewPairsNext) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 rng(seed);
    Rows rows(25, std::vector<int>(6));
    for (auto& row : rows) {
      for (int& level : row) level = static_cast<int>(rng() % 9) / 2 - (rng() % 12 == 0 ? 5 : 0);
      for (int& level : row) level = std::clamp(level, -1, 3);
    }
    // Every level occurs, so "at most" means the same on both sides.
    for (int l = 0; l < 4; ++l) rows.push_back(std::vector<int>(6, l));
    const Rows before = rows;
    put_new_pairs_first(rows, {false, false, false, true, true, true}, 2);
    ASSERT_TRUE(std::is_permutation(rows.begin(), rows.end(), before.begin(), before.end()));
    EXPECT_TRUE(std::equal(rows.begin(), rows.begin() + 2, before.begin()));
    for (std::size_t at = 2; at < rows.size(); ++at) {
      const std::size_t now = met(rows, at + 1).size();
      for (std::size_t other = at + 1; other < rows.size(); ++other) {
        Rows swapped = rows;
        std::swap(swapped[at], swapped[other]);
        ASSERT_LE(met(swapped, at + 1).size(), now) << "row " << other << " instead of " << at;
      }
    }
  }
}

}  // namespace
}  // namespace greynic::testgen
