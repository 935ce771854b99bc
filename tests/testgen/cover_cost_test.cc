#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "random_space.h"
#include "sized.h"

namespace greynic::testgen {
namespace {

double cost_of(const Space& space, const Row& row) {
  double sum = 0;
  for (std::size_t p = 0; p < row.size(); ++p) {
    if (!space.parameters[p].level_costs.empty()) sum += space.parameters[p].level_costs[row[p]];
  }
  return sum;
}

/// The least cost at which some valid rows hold all pairs that any of them holds: branch and bound
/// over the rows that hold the open pair with fewest of them. A pair's share of a row's cost is at
/// least the row's cost over the pairs in it, which bounds what is left.
class CheapestArray {
 public:
  CheapestArray(const Space& space, const std::vector<Row>& rows) {
    std::map<Tuple, std::size_t> number;
    for (const Row& row : rows) {
      costs_.push_back(cost_of(space, row));
      holds_.emplace_back();
      for (std::uint32_t p = 0; p < row.size(); ++p) {
        for (std::uint32_t q = p + 1; q < row.size(); ++q) {
          const auto at = number.emplace(Tuple{{p, row[p]}, {q, row[q]}}, number.size()).first;
          holds_.back().push_back(at->second);
        }
      }
    }
    rows_with_.resize(number.size());
    share_.assign(number.size(), std::numeric_limits<double>::infinity());
    for (std::size_t r = 0; r < rows.size(); ++r) {
      for (const std::size_t pair : holds_[r]) {
        rows_with_[pair].push_back(r);
        share_[pair] = std::min(share_[pair], costs_[r] / static_cast<double>(holds_[r].size()));
      }
    }
    for (auto& with : rows_with_) {
      std::sort(with.begin(), with.end(), [&](auto a, auto b) { return costs_[a] < costs_[b]; });
    }
  }

  /// Starting from a known cost; empty when the search was given up.
  std::optional<double> least(double known) {
    best_ = known;
    std::vector<int> covered(rows_with_.size(), 0);
    return descend(covered, 0.0) ? std::optional(best_) : std::nullopt;
  }

 private:
  bool descend(std::vector<int>& covered, double spent) {
    if (++nodes_ > 2'000'000) return false;
    double rest = 0;
    std::size_t pick = covered.size();
    for (std::size_t pair = 0; pair < covered.size(); ++pair) {
      if (covered[pair] > 0) continue;
      rest += share_[pair];
      if (pick == covered.size() || rows_with_[pair].size() < rows_with_[pick].size()) pick = pair;
    }
    if (pick == covered.size()) {
      best_ = std::min(best_, spent);
      return true;
    }
    if (spent + rest >= best_ - 1e-9) return true;
    for (const std::size_t row : rows_with_[pick]) {
      for (const std::size_t pair : holds_[row]) ++covered[pair];
      const bool done = descend(covered, spent + costs_[row]);
      for (const std::size_t pair : holds_[row]) --covered[pair];
      if (!done) return false;
    }
    return true;
  }

  std::vector<double> costs_;
  std::vector<std::vector<std::size_t>> holds_;      ///< pairs of each row
  std::vector<std::vector<std::size_t>> rows_with_;  ///< of each pair, cheapest first
  std::vector<double> share_;
  double best_ = 0;
  std::size_t nodes_ = 0;
};

// Claim:  the plan's total cost is what is minimised when levels have costs: near the optimum on
//         small models, though the cheapest array may have more rows than the smallest.
// Oracle: branch and bound over all valid rows.
// Method: random constrained models of four factors; some levels cost far more than others.
TEST(CoverCost, ComesCloseToTheCheapestArray) {
  double ours = 0;
  double optimum = 0;
  int solved = 0;
  constexpr int kModels = sized(60, 6);
  for (int seed = 1; seed <= kModels; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 rng(static_cast<unsigned>(seed));
    Space space;
    for (int p = 0; p < 4; ++p) {
      Parameter& parameter = space.parameters.emplace_back();
      parameter.level_count = static_cast<std::uint16_t>(2 + rng() % 2);
      for (int l = 0; l < parameter.level_count; ++l) {
        parameter.level_costs.push_back(rng() % 4 == 0 ? 20.0 : 1.0 + rng() % 3);
      }
    }
    if (seed % 2 == 0) {
      space.clauses.push_back({{0, 0, false}, {1, 1, false}});
      space.clauses.push_back({{2, 1, false}, {3, 0, false}, {0, 1, false}});
    }
    const auto made = cover(space, {});
    ASSERT_TRUE(made.has_value()) << made.error().message;
    const std::vector<Row> rows = valid_rows(space);
    const auto pairs = choices(covered_parameters(space), 2);
    ASSERT_EQ(tuples_in(space, made->rows, pairs), tuples_in(space, rows, pairs));
    double cost = 0;
    for (const Row& row : made->rows) {
      ASSERT_TRUE(is_valid(space, row));
      cost += cost_of(space, row);
    }
    const auto least = CheapestArray(space, rows).least(cost);
    if (!least) continue;
    ++solved;
    ours += cost;
    optimum += *least;
    EXPECT_LE(cost, 1.2 * *least);
  }
  RecordProperty("solved", solved);
  RecordProperty("over_optimum", std::to_string(ours / optimum - 1.0));
  EXPECT_GE(solved, kModels * 2 / 3);
  EXPECT_LE(ours, 1.03 * optimum) << solved << " models solved";
}

// Claim:  a level that costs much is in as few rows as its own tuples need, though that takes more
//         rows in all.
// Oracle: arithmetic: the dear level meets each of 30 two-level factors twice, so two rows do.
TEST(CoverCost, PutsADearLevelInAsFewRowsAsItNeeds) {
  Space space;
  space.parameters.resize(31);
  for (Parameter& parameter : space.parameters) parameter.level_count = 2;
  space.parameters[30].level_costs = {0.0, 100.0};
  const auto made = cover(space, {});
  ASSERT_TRUE(made.has_value()) << made.error().message;
  EXPECT_TRUE(made->full);
  EXPECT_EQ(std::count_if(made->rows.begin(), made->rows.end(),
                          [](const Row& row) { return row[30] == 1; }),
            2);
}

}  // namespace
}  // namespace greynic::testgen
