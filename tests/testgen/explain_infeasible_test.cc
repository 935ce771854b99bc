#include "greynic/language/explain_infeasible.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "greynic/check/array_check.h"
#include "greynic/language/expression_range.h"
#include "greynic/language/model_reader.h"
#include "greynic/testgen/model_cover.h"

namespace greynic::testgen {
namespace {

using language::CoverModel;
using language::Expr;
using language::ExprKind;
using language::Truth;

/// `count` numeric factors of levels 1 to `levels`, whose sum is at most `most`.
CoverModel model_of_a_sum(std::uint32_t count, int levels, int most) {
  CoverModel model;
  model.source = "sum";
  std::vector<Expr> terms;
  for (std::uint32_t p = 0; p < count; ++p) {
    language::ModelParameter parameter;
    parameter.name = "f" + std::to_string(p);
    for (int level = 1; level <= levels; ++level) {
      parameter.levels.push_back(std::to_string(level));
      parameter.numbers.push_back(level);
    }
    model.parameters.push_back(parameter);
    terms.push_back(Expr::numeric(p));
  }
  Expr sum;
  sum.kind = ExprKind::kAdd;
  sum.args = terms;
  model.constraints.push_back(
      {Expr::compare(language::CompareOp::kLessEqual, sum, Expr::value(most)), "the sum",
       "line 1"});
  return model;
}

/// A clock that is read so many times before the time is over.
std::function<double()> clock_that_stops_after(int reads) {
  return [reads, read = 0]() mutable { return ++read > reads ? 1e9 : 0.0; };
}

// Claim: a sum over more combinations than can be listed is settled, tuple by tuple.
// Oracle: what the rest adds at least, by arithmetic.
// Method: sums of 6 to 14 factors of 6 to 9 levels, no row at all, pairs.
TEST(ArrayCheck, SettlesSumsOverMoreCombinationsThanCanBeListed) {
  for (const auto& [count, levels, most] :
       {std::array{6, 9, 12}, std::array{10, 6, 15}, std::array{14, 8, 24}}) {
    const CoverModel model = model_of_a_sum(static_cast<std::uint32_t>(count), levels, most);
    const check::CheckReport report = check::check_array(model, {}, 2);
    std::uint64_t feasible = 0;
    for (int a = 1; a <= levels; ++a) {
      for (int b = 1; b <= levels; ++b) feasible += a + b + count - 2 <= most ? 1 : 0;
    }
    const auto pairs = static_cast<std::uint64_t>(count * (count - 1) / 2);
    EXPECT_EQ(report.tuples_missing, pairs * feasible);
    EXPECT_EQ(report.tuples_infeasible,
              pairs * (static_cast<std::uint64_t>(levels * levels) - feasible));
    EXPECT_EQ(report.tuples_undecided, 0U);
  }
}

// Claim: a sub-model asks for no tuple of a parameter that needs no covering.
// Oracle: the only pair that is left, counted by eye.
TEST(ArrayCheck, AsksForNothingOfWhatNeedsNoCoveringInASubModel) {
  CoverModel model = model_of_a_sum(4, 2, 8);
  model.parameters[1].covered = false;
  model.groups.push_back({{0, 1, 2}, 3});
  const check::CheckReport report = check::check_array(model, {}, 1);
  EXPECT_EQ(report.tuples_missing, 6U + 4U);  // the levels of three, the pairs of two
  const auto covered = cover_model(model, {.strength = 1});
  ASSERT_TRUE(covered);
  EXPECT_TRUE(check::check_array(model, covered->rows, 1).good());
}

// Claim: what an expression can be over sets of levels lacks no truth that some levels bring about.
// Oracle: plain evaluation of every combination.
// Method: random expressions over three parameters, one of which may be absent.
TEST(ExpressionRange, HoldsEveryTruthThatSomeLevelsBringAbout) {
  constexpr std::uint32_t kSeed = 7;
  SCOPED_TRACE(kSeed);
  std::mt19937 rng(kSeed);
  const auto pick = [&](int bound) {
    return static_cast<int>(rng() % static_cast<unsigned>(bound));
  };
  const std::function<double(std::uint32_t, int)> number = [](std::uint32_t p, int level) {
    return level - static_cast<double>(p);  // negative ones and zero, too
  };
  const std::function<Expr(int)> arithmetic = [&](int depth) {
    if (depth == 0 || pick(3) == 0) {
      return pick(3) == 0 ? Expr::value(pick(5) - 2)
                          : Expr::numeric(static_cast<unsigned>(pick(3)));
    }
    Expr out;
    out.kind = std::array{ExprKind::kAdd, ExprKind::kMultiply, ExprKind::kDivide}[pick(3)];
    out.args = {arithmetic(depth - 1), arithmetic(depth - 1)};
    return out;
  };
  const std::function<Expr(int)> boolean = [&](int depth) -> Expr {
    if (depth == 0) {
      if (pick(4) == 0) return Expr::level_in(static_cast<unsigned>(pick(3)), {0, 2});
      if (pick(6) == 0) return Expr::exists(2);
      return Expr::compare(static_cast<language::CompareOp>(pick(6)), arithmetic(2), arithmetic(2));
    }
    switch (pick(5)) {
      case 0:
        return Expr::negation(boolean(depth - 1));
      case 1:
        return Expr::all_of({boolean(depth - 1), boolean(depth - 1)});
      case 2:
        return Expr::any_of({boolean(depth - 1), boolean(depth - 1)});
      case 3:
        return Expr::implies(boolean(depth - 1), boolean(depth - 1));
      default:
        return Expr::iff(boolean(depth - 1), boolean(depth - 1));
    }
  };
  int definite = 0;
  for (int turn = 0; turn < 20'000; ++turn) {
    const Expr expression = boolean(pick(3));
    std::vector<std::vector<int>> sets(3);
    for (std::size_t p = 0; p < 3; ++p) {
      for (int level = p == 2 ? -1 : 0; level < 4; ++level) {
        if (pick(2) == 0) sets[p].push_back(level);
      }
      if (sets[p].empty()) sets[p].push_back(pick(4));
    }
    const language::Truths told = language::possible_truths(
        expression, [&](std::uint32_t p) -> const std::vector<int>& { return sets[p]; }, number);
    definite += told.only_false() || told.only_true() ? 1 : 0;
    for (const int a : sets[0]) {
      for (const int b : sets[1]) {
        for (const int c : sets[2]) {
          const std::array row = {a, b, c};
          const Truth truth = evaluate(
              expression, [&](std::uint32_t p) { return row[p]; }, number);
          ASSERT_TRUE(truth == Truth::kTrue    ? told.true_too
                      : truth == Truth::kFalse ? told.false_too
                                               : told.unknown_too)
              << "turn " << turn;
        }
      }
    }
  }
  EXPECT_GT(definite, 2'000);  // it says something
}

// Claim: of many tuples those that the time leaves out are counted, and the first is always told.
// Oracle: a clock that is over after so many questions.
TEST(ExplainInfeasible, CountsWhatTheTimeLeftOut) {
  const CoverModel model = model_of_a_sum(6, 9, 12);
  std::vector<Tuple> tuples;
  for (std::uint16_t level = 3; level < 9; ++level) tuples.push_back({{0, 8}, {1, level}});
  EXPECT_EQ(explain_infeasible(model, tuples).left, 0U);
  std::set<std::size_t> explained;
  for (int reads = 2; reads < 200; ++reads) {
    language::ExplainOptions options;
    options.clock = clock_that_stops_after(reads);
    std::size_t told = 0;
    options.progress = [&](double share, std::size_t count) {
      EXPECT_EQ(count, ++told);
      EXPECT_DOUBLE_EQ(share, static_cast<double>(count) / 6.0);
    };
    const language::Explanations out = explain_infeasible(model, tuples, options);
    EXPECT_GE(out.lines.size(), 1U);
    EXPECT_EQ(out.lines.size() + out.left, tuples.size());
    EXPECT_EQ(out.lines.size(), told);
    explained.insert(out.lines.size());
    for (const std::string& line : out.lines) {
      EXPECT_TRUE(line.ends_with("'the sum' (line 1)") ||
                  line.find("was not found in the time") != std::string::npos)
          << line;
    }
  }
  EXPECT_GT(explained.size(), 2U);
}

// Claim:  an infeasible tuple is explained by a minimal set of constraints: all needed, none spare.
TEST(ExplainInfeasible, ExplainsAnInfeasibleTupleByTheConstraintsThatForbidIt) {
  const auto model = language::parse_pict(
      "A: 1, 2\nB: 1, 2\nC: 1, 2\nD: 1, 2\nIF [A] = 1 THEN [B] = 1;\nIF [B] = 1 THEN [C] = 1;\n"
      "IF [D] = 1 THEN [B] = 2;\n",
      "m");
  ASSERT_TRUE(model);
  const auto lines = explain_infeasible(*model, {{{0, 0}, {2, 1}}}).lines;
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0],
            "A=1, C=2: 'IF [A] = 1 THEN [B] = 1;' (line 5); "
            "'IF [B] = 1 THEN [C] = 1;' (line 6)");
}

// Claim: where part of a tuple is forbidden already, its line says which, with the same cause.
// Oracle: the model, read by eye.
TEST(ExplainInfeasible, SaysWhichPartIsForbiddenAlready) {
  const auto model = language::parse_pict("A: 1, 2\nB: 1, 2\nC: 1, 2\n[B] = 1;\n", "m");
  ASSERT_TRUE(model);
  const auto out = explain_infeasible(*model, {{{0, 0}, {1, 1}}, {{1, 1}, {2, 1}}});
  ASSERT_EQ(out.lines.size(), 2U);
  EXPECT_EQ(out.lines[0], "A=1, B=2: already B=2: '[B] = 1;' (line 4)");
  EXPECT_EQ(out.lines[1], "B=2, C=2: already B=2: '[B] = 1;' (line 4)");
}

}  // namespace
}  // namespace greynic::testgen
