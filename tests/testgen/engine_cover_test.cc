#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <ostream>

#include "random_space.h"
#include "sized.h"

namespace greynic::testgen {
namespace {

struct Planned {
  int strength;
  std::uint32_t most_parameters;
  int spaces;
};
void PrintTo(const Planned& c, std::ostream* out) { *out << "strength " << c.strength; }

class CoverOfRandomSpaces : public testing::TestWithParam<Planned> {};

// Claim:  every row is valid, every feasible tuple is in a row, and the infeasible ones are exactly
//         those that no valid row holds.
// Oracle: all valid rows of a small space, found by counting through the whole space.
// Method: random parameters, absent levels, helpers and clauses; spaces without any row must be
//         refused.
TEST_P(CoverOfRandomSpaces, CoversAllThatIsFeasibleAndNothingElse) {
  const Planned& c = GetParam();
  int refused = 0;
  for (int seed = 0; seed < c.spaces; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed << " strength " << c.strength);
    std::mt19937 rng(static_cast<unsigned>(seed * 7 + c.strength));
    const Space space = random_space(rng, c.most_parameters);
    const auto rows = valid_rows(space);
    CoverOptions options;
    options.strength = c.strength;
    options.seed = static_cast<std::uint64_t>(seed);
    options.list_infeasible = true;
    const auto cover_or = cover(space, options);
    if (rows.empty()) {
      ASSERT_FALSE(cover_or.has_value());
      EXPECT_EQ(cover_or.error().code, ErrorCode::kInfeasible);
      ++refused;
      continue;
    }
    ASSERT_TRUE(cover_or.has_value()) << cover_or.error().message;
    for (const Row& row : cover_or->rows) {
      ASSERT_EQ(row.size(), space.parameters.size());
      ASSERT_TRUE(is_valid(space, row));
    }
    const auto covered = covered_parameters(space);
    const auto chosen = choices(
        covered, std::min<std::size_t>(covered.size(), static_cast<std::size_t>(c.strength)));
    const auto feasible = tuples_in(space, rows, chosen);
    auto infeasible = all_tuples(space, chosen);
    for (const Tuple& tuple : feasible) infeasible.erase(tuple);
    if (covered.empty()) continue;
    EXPECT_EQ(tuples_in(space, cover_or->rows, chosen), feasible);
    EXPECT_EQ(cover_or->tuples_covered, feasible.size());
    EXPECT_EQ(cover_or->tuples_infeasible, infeasible.size());
    EXPECT_EQ(std::set<Tuple>(cover_or->infeasible.begin(), cover_or->infeasible.end()),
              infeasible);
    EXPECT_EQ(cover_or->infeasible.size(), infeasible.size()) << "a tuple is listed twice";
    EXPECT_LE(cover_or->lower_bound, cover_or->rows.size());
    EXPECT_TRUE(cover_or->full);
  }
  EXPECT_GT(refused, 0) << "no space without a row was tried";
}

INSTANTIATE_TEST_SUITE_P(Strengths, CoverOfRandomSpaces,
                         testing::Values(Planned{1, 7, 150}, Planned{2, 8, 300}, Planned{3, 7, 200},
                                         Planned{4, 7, 120}, Planned{5, 7, 80}, Planned{6, 7, 60}));

// Claim:  a contradiction is refused with the clauses that make it, and not with the others.
// Oracle: three planted clauses over two parameters among harmless ones.
TEST(Cover, NamesTheClausesThatContradictEachOther) {
  Space space;
  space.parameters.resize(6);
  for (Parameter& p : space.parameters) p.level_count = 3;
  for (std::uint32_t p = 2; p < 5; ++p) space.clauses.push_back({{p, 0, false}, {p + 1, 1, true}});
  space.clauses.push_back({{0, 1, true}});
  space.clauses.push_back({{0, 1, false}, {1, 2, true}});
  space.clauses.push_back({{1, 2, false}});
  const auto refused = cover(space, {});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kInfeasible);
  for (const char* part : {"clause 4", "clause 5", "clause 6"}) {
    EXPECT_NE(refused.error().message.find(part), std::string::npos) << refused.error().message;
  }
  for (const char* part : {"clause 1", "clause 2", "clause 3"}) {
    EXPECT_EQ(refused.error().message.find(part), std::string::npos) << refused.error().message;
  }
}

// Claim:  rows that were run before need no second run, and seeds stay, first and unchanged.
// Oracle: tuples counted by hand from the rows.
TEST(Cover, KeepsSeedsAndCountsEarlierRowsAsCovered) {
  std::mt19937 rng(5);
  Space space;
  space.parameters.resize(5);
  for (Parameter& p : space.parameters) p.level_count = 3;
  space.seeds = {{0, 0, 0, 0, 0}, {1, 1, 1, 1, 1}};
  const auto first = cover(space, {});
  ASSERT_TRUE(first.has_value());
  ASSERT_GE(first->rows.size(), 2U);
  EXPECT_EQ(first->rows[0], space.seeds[0]);
  EXPECT_EQ(first->rows[1], space.seeds[1]);
  Space again = space;
  again.seeds.clear();
  again.already = first->rows;
  const auto second = cover(again, {});
  ASSERT_TRUE(second.has_value());
  EXPECT_TRUE(second->rows.empty());
  again.already.pop_back();
  const auto third = cover(again, {});
  ASSERT_TRUE(third.has_value());
  EXPECT_GE(third->rows.size(), 1U);
  EXPECT_LE(third->rows.size(), 10U);
  Space broken = space;
  broken.clauses = {{{0, 1, false}}};
  const auto refused = cover(broken, {});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kBadInput);
}

// Claim:  a group of parameters is covered at its own, higher strength.
// Oracle: the set of triples in the rows.
TEST(Cover, CoversAGroupAtItsOwnStrength) {
  for (int seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 rng(static_cast<unsigned>(seed));
    Space space = random_space(rng, 8);
    const auto rows = valid_rows(space);
    if (rows.empty() || space.parameters.size() < 4) continue;
    space.groups = {{{3, 1, 0, 2}, 3}};
    const auto made = cover(space, {});
    ASSERT_TRUE(made.has_value()) << made.error().message;
    std::vector<std::uint32_t> group;
    for (std::uint32_t p = 0; p < 4; ++p) {
      if (space.parameters[p].covered) group.push_back(p);
    }
    const auto chosen = choices(group, std::min<std::size_t>(group.size(), 3));
    EXPECT_EQ(tuples_in(space, made->rows, chosen), tuples_in(space, rows, chosen));
    const auto covered = covered_parameters(space);
    const auto pairs = choices(covered, std::min<std::size_t>(covered.size(), 2));
    EXPECT_EQ(tuples_in(space, made->rows, pairs), tuples_in(space, rows, pairs));
  }
}

// Claim:  equal input and seed give equal rows.
TEST(Cover, IsDeterministicBySeed) {
  std::mt19937 rng(11);
  const Space space = random_space(rng, 12);
  CoverOptions options;
  options.seed = 42;
  const auto one = cover(space, options);
  const auto two = cover(space, options);
  ASSERT_EQ(one.has_value(), two.has_value());
  if (one) {
    EXPECT_EQ(one->rows, two->rows);
  }
}

// Claim:  what does not fit into memory is refused with its size, before anything is allocated.
TEST(Cover, RefusesWhatDoesNotFitWithItsSize) {
  Space space;
  space.parameters.resize(500);
  for (Parameter& p : space.parameters) p.level_count = 4;
  CoverOptions options;
  options.strength = 6;
  const auto refused = cover(space, options);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kTooBig);
  EXPECT_NE(refused.error().message.find("GiB"), std::string::npos);
}

// Claim:  the answer does not depend on how many threads worked on it.
// Oracle: one thread.
TEST(Cover, GivesTheSameRowsOnTwoThreads) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 rng(seed);
    const Space space = random_space(rng, 14);
    CoverOptions options;
    options.seed = seed;
    const auto one = cover(space, options);
    options.threads = 2;
    const auto two = cover(space, options);
    ASSERT_EQ(one.has_value(), two.has_value());
    if (one) {
      EXPECT_EQ(one->rows, two->rows) << "seed " << seed;
    }
  }
}

// Claim:  free parameters of two levels take the fewest rows there can be, and 13 of three levels
//         15.
// Oracle: Kleitman and Spencer's theorem, as a table of N against the columns it serves; Williams'
//         array.
TEST(Cover, StartsFreeParametersFromAlgebraicArrays) {
  const auto rows_for = [](std::size_t parameters, std::uint16_t levels) {
    Space space;
    space.parameters.resize(parameters);
    for (Parameter& p : space.parameters) p.level_count = levels;
    const auto made = cover(space, {});
    EXPECT_TRUE(made.has_value());
    EXPECT_LE(made->lower_bound, made->rows.size());
    return made->rows.size();
  };
  EXPECT_EQ(rows_for(100, 2), 10U);
  EXPECT_EQ(rows_for(126, 2), 10U);
  EXPECT_EQ(rows_for(192, 2), 11U);
  EXPECT_EQ(rows_for(210, 2), 11U);
  EXPECT_EQ(rows_for(211, 2), 12U);
  EXPECT_EQ(rows_for(4, 3), 9U);
  EXPECT_EQ(rows_for(13, 3), 15U);
  EXPECT_EQ(rows_for(6, 5), 25U);
  EXPECT_EQ(rows_for(10, 9), 81U);
}

// Claim:  a lower bound is one.
// Oracle: exhaustive search for a smaller array, over all sets of valid rows of tiny spaces.
TEST(Cover, BoundsFromBelowWhatExhaustiveSearchFinds) {
  int checked = 0;
  for (unsigned seed = 0; seed < 400 && checked < sized(60, 10); ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 rng(seed);
    const Space space = random_space(rng, 4);
    const auto valid = valid_rows(space);
    if (valid.empty() || valid.size() > sized<std::size_t>(18, 12)) continue;
    const auto covered = covered_parameters(space);
    if (covered.size() < 2) continue;
    CoverOptions options;
    options.report_lower_bound = true;
    const auto made = cover(space, options);
    ASSERT_TRUE(made.has_value());
    const auto chosen = choices(covered, 2);
    const auto feasible = tuples_in(space, valid, chosen);
    std::size_t fewest = valid.size();
    for (std::uint32_t set = 0; set < (1U << valid.size()); ++set) {
      const auto size = static_cast<std::size_t>(__builtin_popcount(set));
      if (size >= fewest) continue;
      std::vector<Row> rows;
      for (std::size_t i = 0; i < valid.size(); ++i) {
        if ((set >> i) & 1U) rows.push_back(valid[i]);
      }
      if (tuples_in(space, rows, chosen) == feasible) fewest = size;
    }
    EXPECT_LE(made->lower_bound, fewest);
    EXPECT_GE(made->rows.size(), fewest);
    EXPECT_LE(made->rows.size(), fewest + 1);
    ++checked;
  }
  EXPECT_GE(checked, sized(30, 10));
}

// Claim:  a deadline is kept wherever it falls: before the first row, among the rows or after all
//         of them, and what is returned then is valid.
// Oracle: a clock that goes on by a millisecond whenever it is read, so that the verdict does not
//         hang on the machine: past the deadline each thread reads it a few more times at most. The
//         constraints themselves.
TEST(Cover, KeepsItsDeadline) {
  Space space;
  space.parameters.resize(40);
  for (Parameter& p : space.parameters) p.level_count = 4;
  for (std::uint32_t p = 0; p + 1 < 40; p += 2) {
    space.clauses.push_back({{p, 0, false}, {p + 1, 1, false}});
  }
  for (const int threads : {1, 2}) {
    int before_any = 0, cut = 0, full = 0;
    for (double deadline = 0.01; deadline < 2; deadline *= 1.3) {
      SCOPED_TRACE(testing::Message() << "deadline " << deadline << " threads " << threads);
      std::atomic<int> readings = 0;
      CoverOptions options;
      options.strength = 3;
      options.deadline_seconds = deadline;
      options.clock = [&] { return 1e-3 * readings++; };
      options.threads = threads;
      const auto made = cover(space, options);
      EXPECT_LT(readings, 1e3 * deadline + 10 * threads);
      if (!made.has_value()) {
        EXPECT_EQ(made.error().code, ErrorCode::kTooBig);
        ++before_any;
        continue;
      }
      ++(made->full ? full : cut);
      EXPECT_TRUE(made->deadline_reached || made->full);
      EXPECT_FALSE(made->rows.empty());
      for (const Row& row : made->rows) ASSERT_TRUE(is_valid(space, row));
    }
    EXPECT_GT(before_any, 0);
    EXPECT_GT(cut, 0);
    EXPECT_GT(full, 0);
  }
}

// Claim:  a deadline that would pass before the first row is refused with the size, and kept
//         itself.
// Oracle: a clock that goes on by 0.1 ms whenever it is read, and C(3000, 2) * 3 * 3 pairs.
TEST(Cover, RefusesADeadlineBeforeTheFirstRowWithTheSize) {
  Space space;
  space.parameters.resize(3000);
  for (Parameter& p : space.parameters) p.level_count = 3;
  for (std::uint32_t p = 0; p + 1 < 3000; ++p)
    space.clauses.push_back({{p, 0, false}, {p + 1, 1, false}});
  CoverOptions options;
  options.deadline_seconds = 0.001;
  double announced = 0;
  options.announce = [&](const CoverEstimate& estimate) { announced = estimate.tuples; };
  int readings = 0;
  options.clock = [&] { return 1e-4 * readings++; };
  const auto made = cover(space, options);
  ASSERT_FALSE(made.has_value());
  EXPECT_EQ(made.error().code, ErrorCode::kTooBig);
  EXPECT_DOUBLE_EQ(announced, 3000.0 * 2999.0 / 2.0 * 9.0);
  EXPECT_NE(made.error().message.find("4.05e+07"), std::string::npos) << made.error().message;
  EXPECT_LT(readings, 20);
}

// Claim:  tables that cannot be laid out before the deadline are given up when that shows, with the
//         size and the time that they would take; with time enough rows come.
// Oracle: a clock that goes on by a millisecond whenever it is read. 2^60 has C(60, 4) 2^4 =
//         7,802,160 tuples; sorting out its 120 values reads the clock some 240 times, laying out
//         the 273,760 prefixes, in lots of 16,384, some 32 times more.
TEST(Cover, GivesUpOnTablesThatTakeTooLong) {
  Space space;
  space.parameters.resize(60);
  for (Parameter& p : space.parameters) p.level_count = 2;
  int given_up = 0;
  int made_rows = 0;
  for (double deadline = 0.23; deadline < 0.33; deadline += 0.01) {
    SCOPED_TRACE(deadline);
    int readings = 0;
    CoverOptions options;
    options.strength = 4;
    options.deadline_seconds = deadline;
    options.clock = [&] { return 1e-3 * readings++; };
    const auto made = cover(space, options);
    EXPECT_LT(readings, 1e3 * deadline + 10);
    if (made.has_value()) {
      EXPECT_FALSE(made->rows.empty());
      ++made_rows;
    } else if (made.error().message.find("laid out in about") != std::string::npos) {
      EXPECT_EQ(made.error().code, ErrorCode::kTooBig);
      EXPECT_NE(made.error().message.find("7.8e+06"), std::string::npos) << made.error().message;
      ++given_up;
    }
  }
  EXPECT_GT(given_up, 0);
  EXPECT_GT(made_rows, 0);
}

// Claim:  costs choose between levels that cover as much: the plan costs less, and covers the same.
// Oracle: the same space without costs.
TEST(Cover, SpendsLessWhereLevelsHaveACost) {
  Space space;
  space.parameters.resize(12);
  for (Parameter& p : space.parameters) p.level_count = 3;
  space.parameters[0].level_count = 6;
  space.parameters[1].level_count = 6;
  const auto free = cover(space, {});
  for (std::uint32_t p = 2; p < 12; ++p) space.parameters[p].level_costs = {9.0, 1.0, 5.0};
  const auto frugal = cover(space, {});
  ASSERT_TRUE(free.has_value() && frugal.has_value());
  const auto cost = [&](const std::vector<Row>& rows) {
    double sum = 0;
    for (const Row& row : rows) {
      for (std::uint32_t p = 2; p < 12; ++p) sum += space.parameters[p].level_costs[row[p]];
    }
    return sum;
  };
  EXPECT_LT(cost(frugal->rows), 0.9 * cost(free->rows));
  EXPECT_EQ(frugal->tuples_covered, free->tuples_covered);
  const auto pairs = choices(covered_parameters(space), 2);
  EXPECT_EQ(tuples_in(space, frugal->rows, pairs).size(), frugal->tuples_covered);
}

}  // namespace
}  // namespace greynic::testgen
