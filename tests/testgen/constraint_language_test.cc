#include "greynic/language/constraint_language.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "greynic/language/cover_model.h"
#include "greynic/testgen/model_cover.h"
#include "model_rows.h"

namespace greynic::testgen {
namespace {

using language::CoverModel;
using language::ModelParameter;

CoverModel small_model() {
  CoverModel model;
  model.source = "test.json";
  const auto add = [&](std::string name, std::vector<std::string> levels,
                       std::vector<double> numbers) {
    ModelParameter parameter;
    parameter.name = std::move(name);
    parameter.levels = std::move(levels);
    parameter.numbers = std::move(numbers);
    model.parameters.push_back(std::move(parameter));
  };
  add("a", {"0", "1", "2", "5"}, {0, 1, 2, 5});
  add("b", {"1", "2", "3"}, {1, 2, 3});
  add("c", {"1", "4", "10"}, {1, 4, 10});
  add("transport", {"RC", "UC", "UD"}, {});
  add("other", {"UC", "RC", "XRC"}, {});
  add("srq", {"false", "true"}, {});
  return model;
}

/// Sees the row's values by name and says what the constraint should be.
struct Values {
  double a, b, c;
  std::string transport, other;
  bool srq;
};

Values values_of(const CoverModel& model, const std::vector<int>& row) {
  const auto number = [&](std::size_t p) {
    return model.parameters[p].numbers[static_cast<std::size_t>(row[p])];
  };
  const auto text = [&](std::size_t p) {
    return model.parameters[p].levels[static_cast<std::size_t>(row[p])];
  };
  return {number(0), number(1), number(2), text(3), text(4), row[5] == 1};
}

struct Case {
  std::string text;
  bool (*truth)(const Values&);
};

const std::vector<Case>& cases() {
  static const std::vector<Case> kCases = {
      {"a + b <= c", [](const Values& v) { return v.a + v.b <= v.c; }},
      {"a * b - c < 2 || srq", [](const Values& v) { return v.a * v.b - v.c < 2 || v.srq; }},
      {"c / b == 5", [](const Values& v) { return v.c / v.b == 5; }},
      {"transport == \"UD\" -> a in {0, 2..4}",
       [](const Values& v) { return v.transport != "UD" || v.a == 0 || (v.a >= 2 && v.a <= 4); }},
      {"transport = other", [](const Values& v) { return v.transport == v.other; }},
      {"transport == RC <-> !srq", [](const Values& v) { return (v.transport == "RC") == !v.srq; }},
      {"if srq then b > 1 else b == 1 and not (a >= 2)",
       [](const Values& v) { return v.srq ? v.b > 1 : v.b == 1 && v.a < 2; }},
      {"!(a <> 1) => -a + 2 * (b - 1) != 3",
       [](const Values& v) { return v.a != 1 || -v.a + 2 * (v.b - 1) != 3; }},
      {"srq == false && transport not in {\"RC\", \"UC\"}",
       [](const Values& v) { return !v.srq && v.transport == "UD"; }},
      {"a < b -> b < c -> srq", [](const Values& v) { return v.a >= v.b || v.b >= v.c || v.srq; }},
      {"srq <=> (a == 0 <-> b == 1)",
       [](const Values& v) { return v.srq == ((v.a == 0) == (v.b == 1)); }},
  };
  return kCases;
}

// Claim:  a constraint means what it says, to the direct evaluator.
// Oracle: the same condition written in C++.
// Method: all rows of a small model.
TEST(ConstraintLanguage, MeansWhatItSays) {
  const CoverModel model = small_model();
  for (const Case& example : cases()) {
    const auto expression = language::parse_constraint(example.text, model, "/constraints/0");
    ASSERT_TRUE(expression) << expression.error().message;
    for_each_row(model, [&](const std::vector<int>& row) {
      const auto truth = evaluate(
          *expression, [&](std::uint32_t p) { return row[p]; },
          [&](std::uint32_t p, int level) { return number_of(model, p, level); });
      ASSERT_EQ(truth == language::Truth::kTrue, example.truth(values_of(model, row)))
          << example.text;
    });
  }
}

/// Whether some setting of the helpers satisfies the clauses, by trying all of them.
bool space_allows(const Space& space, std::size_t own, const std::vector<int>& row) {
  const std::size_t helpers = space.parameters.size() - own;
  for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << helpers); ++bits) {
    const auto level = [&](std::uint32_t p) {
      return p < own ? row[p] : static_cast<int>((bits >> (p - own)) & 1);
    };
    bool all = true;
    for (const Clause& clause : space.clauses) {
      bool some = false;
      for (const Literal& l : clause) some = some || (level(l.parameter) == l.level) == l.positive;
      all = all && some;
    }
    if (all) return true;
  }
  return false;
}

/// The small model, and for each set of its parameters one where these have their first level only.
std::vector<CoverModel> small_models() {
  const CoverModel whole = small_model();
  std::vector<CoverModel> models;
  for (unsigned fixed = 0; fixed < 1U << whole.parameters.size(); ++fixed) {
    CoverModel model = whole;
    for (std::size_t p = 0; p < model.parameters.size(); ++p) {
      if ((fixed >> p & 1U) == 0) continue;
      ModelParameter& parameter = model.parameters[p];
      parameter.levels = {parameter.levels[0]};
      if (!parameter.numbers.empty()) parameter.numbers = {parameter.numbers[0]};
    }
    models.push_back(std::move(model));
  }
  return models;
}

// Claim:  the compiled clauses allow exactly the rows that the constraint allows, also where
//         parameters have no choice, so that the constraint reads nothing that could vary.
// Oracle: the same condition written in C++; helpers are tried in all their settings.
TEST(ConstraintCompiler, KeepsEveryValidRowAndNoOther) {
  for (const Case& example : cases()) {
    for (CoverModel model : small_models()) {
      model.constraints.push_back(
          {language::parse_constraint(example.text, model, "/constraints/0").value(), example.text,
           "here"});
      const auto space = compile(model);
      ASSERT_TRUE(space) << space.error().message;
      ASSERT_LT(space->parameters.size(), model.parameters.size() + 16);
      for_each_row(model, [&](const std::vector<int>& row) {
        ASSERT_EQ(space_allows(*space, model.parameters.size(), row),
                  example.truth(values_of(model, row)))
            << example.text;
      });
    }
  }
}

// Claim:  a factor exists exactly where its condition is true, and a constraint that reads a factor
//         that is not there is not broken by it.
// Oracle: the truth written out by hand for every row.
TEST(ConstraintCompiler, LeavesAbsentFactorsOutOfConstraints) {
  CoverModel model = small_model();
  model.parameters[1].only_if =
      language::parse_constraint("srq && a != 5", model, "only_if").value();
  model.constraints.push_back(
      {language::parse_constraint("a + b <= 3 && transport != UD", model, "x").value(), "", ""});
  const auto space = compile(model);
  ASSERT_TRUE(space) << space.error().message;
  int present = 0;
  for (int b = -1; b < 3; ++b) {
    for_each_row(model, [&](std::vector<int> row) {
      row[1] = b;
      const double a = model.parameters[0].numbers[static_cast<std::size_t>(row[0])];
      const bool exists = row[5] == 1 && a != 5;
      const bool sum_fits =
          b < 0 || a + model.parameters[1].numbers[static_cast<std::size_t>(b)] <= 3;
      const bool valid = exists == (b >= 0) && sum_fits && row[3] != 2;
      present += valid && exists ? 1 : 0;
      std::vector<int> in_space = row;
      if (b < 0) in_space[1] = 3;
      ASSERT_EQ(space_allows(*space, model.parameters.size(), in_space), valid);
      ASSERT_EQ(is_valid(model, row), valid);
    });
  }
  EXPECT_GT(present, 0);
}

// Claim:  a condition that reads a factor which is not there is not true, also where every level of
//         that factor would make it true.
// Oracle: the truth written out by hand for every row.
TEST(ConstraintCompiler, TakesNoConditionForTrueOfAFactorThatIsNotThere) {
  for (const char* condition : {"a + 3 >= b", "0 * b <= a", "b < 7 || a == 1 && b > 9"}) {
    CoverModel model = small_model();
    model.parameters[1].only_if = language::parse_constraint("srq", model, "only_if").value();
    model.parameters[2].only_if = language::parse_constraint(condition, model, "only_if").value();
    const auto space = compile(model);
    ASSERT_TRUE(space) << space.error().message;
    for (int b = -1; b < 3; ++b) {
      for (int c = -1; c < 3; ++c) {
        for_each_row(model, [&](std::vector<int> row) {
          row[1] = b;
          row[2] = c;
          const bool valid = (row[5] == 1) == (b >= 0) && (b >= 0) == (c >= 0);
          std::vector<int> in_space = row;
          if (b < 0) in_space[1] = 3;
          if (c < 0) in_space[2] = 3;
          ASSERT_EQ(space_allows(*space, model.parameters.size(), in_space), valid) << condition;
          ASSERT_EQ(is_valid(model, row), valid) << condition;
        });
      }
    }
  }
}

// Claim:  sums over many factors compile to clauses whose number grows with the sum, not with the
//         number of combinations (here 4^20).
TEST(ConstraintCompiler, KeepsLongSumsSmall) {
  CoverModel model;
  std::string text = "0";
  for (int i = 0; i < 20; ++i) {
    ModelParameter parameter;
    parameter.name = fmt::format("x{}", i);
    parameter.levels = {"0", "1", "2", "3"};
    parameter.numbers = {0, 1, 2, 3};
    model.parameters.push_back(parameter);
    text += " + x" + std::to_string(i);
  }
  model.constraints.push_back(
      {language::parse_constraint(text + " == 30", model, "x").value(), text, "x"});
  const auto space = compile(model);
  ASSERT_TRUE(space) << space.error().message;
  EXPECT_LT(space->clauses.size(), 3000U);
}

// Claim:  what is not a constraint is refused with the place and a reason, never taken for one.
TEST(ConstraintLanguage, NamesThePlaceOfAMistake) {
  const CoverModel model = small_model();
  const std::vector<std::pair<std::string, std::string>> mistakes = {
      {"", "column 1"},
      {"a <", "column 4"},
      {"a < 3 b", "column 7"},
      {"(a < 3", "column 7"},
      {"a", "column 1"},
      {"nothing == 3", "unknown factor 'nothing'"},
      {"transport == UX", "unknown factor 'UX'"},
      {"transport < \"RC\"", "column 11"},
      {"transport == 3", "column 11"},
      {"a == \"RC\"", "column 3"},
      {"a < b < c", "column 7"},
      {"a in 3", "column 6"},
      {"a in {1, }", "column 10"},
      {"c / a == 1", "column 3"},
      {"c / (a + b) == 1", "column 3"},
      {"a == 3GB", "column 7"},
      {"transport == \"RC", "column 14"},
      {"a == 1 # b", "column 8"},
      {"srq + 1 == 2", "column 1"},
      {"if a == 1 then b == 1 else", "column 27"},
      {"exists(zz)", "column 8"},
      {std::string(5000, '('), "nested too deeply"},
      {std::string(5000, '!') + "srq", "nested too deeply"},
      {std::string(200000, 'a'), "split it"},
  };
  for (const auto& [text, message] : mistakes) {
    const auto expression = language::parse_constraint(text, model, "/constraints/7");
    ASSERT_FALSE(expression) << text;
    EXPECT_EQ(expression.error().code, ErrorCode::kBadInput);
    EXPECT_NE(expression.error().message.find(message), std::string::npos)
        << text.substr(0, 80) << ": " << expression.error().message;
    EXPECT_NE(expression.error().message.find("test.json: at /constraints/7"), std::string::npos);
  }
}

// Claim:  no text makes the reader crash or hang.
// Method: valid constraints with characters and pieces changed at random.
TEST(ConstraintLanguage, SurvivesAnyText) {
  const CoverModel model = small_model();
  std::mt19937_64 random(20240607);
  const std::string pieces = "()!&|<>=-+*/{},.\"' ab01transportsrqinifthen[]`\\\n\t\xff";
  for (int round = 0; round < 20000; ++round) {
    std::string text = cases()[random() % cases().size()].text;
    for (std::uint64_t change = random() % 6 + 1; change > 0; --change) {
      const std::size_t at = random() % (text.size() + 1);
      switch (random() % 3) {
        case 0:
          text.insert(at, 1, pieces[random() % pieces.size()]);
          break;
        case 1:
          if (at < text.size()) text.erase(at, random() % 4 + 1);
          break;
        default:
          text.insert(at, text.substr(random() % (text.size() + 1), 8));
      }
    }
    const auto expression = language::parse_constraint(text, model, "fuzz");
    if (expression) {
      CoverModel copy = model;
      copy.constraints.push_back({*expression, text, "fuzz"});
      ASSERT_TRUE(compile(copy)) << text;
    }
  }
}

}  // namespace
}  // namespace greynic::testgen
