#include "greynic/check/array_check.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <set>

#include "greynic/language/constraint_language.h"

namespace greynic::check {
namespace {

/// Four numeric parameters a, b, c, d with levels 0 to 2, and one rule.
language::CoverModel model_with(const std::string& rule) {
  language::CoverModel model;
  model.source = "small";
  for (const char* name : {"a", "b", "c", "d"}) {
    language::ModelParameter parameter;
    parameter.name = name;
    parameter.levels = {"0", "1", "2"};
    parameter.numbers = {0, 1, 2};
    model.parameters.push_back(std::move(parameter));
  }
  auto expression = language::parse_constraint(rule, model, "/constraints/0");
  EXPECT_TRUE(expression) << expression.error().message;
  model.constraints.push_back({std::move(*expression), rule, "/constraints/0"});
  return model;
}

using Rule = std::function<bool(int a, int b, int c, int d)>;
using Pair = std::pair<std::pair<int, int>, std::pair<int, int>>;

std::set<Pair> pairs_of(const std::vector<int>& row) {
  std::set<Pair> pairs;
  for (int p = 0; p < 4; ++p) {
    for (int q = p + 1; q < 4; ++q) {
      pairs.insert({{p, row[static_cast<std::size_t>(p)]}, {q, row[static_cast<std::size_t>(q)]}});
    }
  }
  return pairs;
}

// Claim:  invalid rows, and pairs that are covered, missing and infeasible, are all counted, and an
//         array is good exactly when it has no invalid row and misses nothing.
// Oracle: all 81 rows, judged by the rules written once more in C++.
// Method: three rules, 30 random arrays of 1 to 24 rows each.
TEST(ArrayCheck, CountsWhatBruteForceCounts) {
  const std::vector<std::pair<std::string, Rule>> rules = {
      {"a + b <= 2 && (c == 2 -> d != 0)",
       [](int a, int b, int c, int d) { return a + b <= 2 && (c != 2 || d != 0); }},
      {"a * b + c >= d", [](int a, int b, int c, int d) { return a * b + c >= d; }},
      {"a == b <-> c == d", [](int a, int b, int c, int d) { return (a == b) == (c == d); }},
  };
  constexpr std::uint32_t kSeed = 5;
  SCOPED_TRACE(kSeed);
  std::mt19937 rng(kSeed);
  for (const auto& [text, rule] : rules) {
    const language::CoverModel model = model_with(text);
    std::set<Pair> feasible;
    std::vector<std::vector<int>> all;
    for (int i = 0; i < 81; ++i) {
      all.push_back({i / 27, i / 9 % 3, i / 3 % 3, i % 3});
      const auto& row = all.back();
      if (rule(row[0], row[1], row[2], row[3])) feasible.merge(pairs_of(row));
    }
    for (int turn = 0; turn < 30; ++turn) {
      language::LevelRows rows;
      std::set<Pair> covered;
      std::size_t invalid = 0;
      for (auto left = 1 + rng() % 24; left > 0; --left) {
        rows.push_back(all[rng() % all.size()]);
        const auto& row = rows.back();
        if (rule(row[0], row[1], row[2], row[3])) {
          covered.merge(pairs_of(row));
        } else {
          ++invalid;
        }
      }
      const CheckReport report = check_array(model, rows, 2);
      EXPECT_EQ(report.invalid_rows, invalid) << text;
      EXPECT_EQ(report.tuples_covered, covered.size()) << text;
      EXPECT_EQ(report.tuples_missing, feasible.size() - covered.size()) << text;
      EXPECT_EQ(report.tuples_infeasible, 54 - feasible.size()) << text;
      EXPECT_EQ(report.tuples_undecided, 0U) << text;
      EXPECT_EQ(report.good(), invalid == 0 && covered == feasible) << text;
    }
  }
}

}  // namespace
}  // namespace greynic::check
