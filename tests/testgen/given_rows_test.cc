#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "greynic/check/array_check.h"
#include "greynic/language/model_reader.h"
#include "greynic/testgen/model_cover.h"

namespace greynic::testgen {
namespace {

using language::CoverModel;
using language::LevelRows;

constexpr const char* kModel = R"({ "version": 1,
  "parameters": [
    { "name": "a", "levels": [1, 2, 3] },
    { "name": "b", "levels": ["x", "y", "z"], "negative": ["z"] },
    { "name": "c", "levels": [true, false], "only_if": "a > 1" },
    { "name": "d", "levels": [0, 1, 2] } ],
  "constraints": ["d != 2 || a != 3"] )";

CoverModel model_with(const std::string& members) {
  auto model = language::parse_json_model(kModel + members + "}", "m");
  EXPECT_TRUE(model) << model.error().message;
  return model ? std::move(*model) : CoverModel{};
}

using Pair = std::vector<std::pair<std::size_t, int>>;

/// Pairs in the rows, and apart from them those in rows without the negative level b = z.
std::set<std::pair<bool, Pair>> pairs_in(const LevelRows& rows) {
  std::set<std::pair<bool, Pair>> pairs;
  for (const std::vector<int>& row : rows) {
    for (std::size_t p = 0; p < row.size(); ++p) {
      for (std::size_t q = p + 1; q < row.size(); ++q) {
        if (row[p] < 0 || row[q] < 0) continue;
        pairs.insert({false, {{p, row[p]}, {q, row[q]}}});
        if (row[1] != 2) pairs.insert({true, {{p, row[p]}, {q, row[q]}}});
      }
    }
  }
  return pairs;
}

/// Every valid row, by trying all.
LevelRows valid_rows(const CoverModel& model) {
  LevelRows rows;
  for (int a = 0; a < 3; ++a) {
    for (int b = 0; b < 3; ++b) {
      for (int c = -1; c < 2; ++c) {
        for (int d = 0; d < 3; ++d) {
          if (is_valid(model, {a, b, c, d})) rows.push_back({a, b, c, d});
        }
      }
    }
  }
  return rows;
}

// Claim:  what was run before counts as covered, is not put out, and what it covers only beside a
//         negative level is covered again without one.
// Oracle: pairs counted over all valid rows.
// Method: some valid rows, chosen at random, were run before; one that is not valid covers nothing.
TEST(AlreadyRun, CountsAsCoveredAndIsNotPutOut) {
  constexpr std::uint32_t kSeed = 3;
  SCOPED_TRACE(kSeed);
  std::mt19937 rng(kSeed);
  const LevelRows valid = valid_rows(model_with(""));
  std::size_t fewer = 0;
  const std::size_t without = cover_model(model_with(""), {}).value().rows.size();
  for (int turn = 0; turn < 200; ++turn) {
    CoverModel model = model_with("");
    for (auto count = rng() % 8; count > 0; --count) {
      model.already.push_back(valid[rng() % valid.size()]);
    }
    LevelRows together = model.already;
    model.already.push_back({2, 0, 0, 2});  // breaks the constraint
    const auto covered = cover_model(model, {});
    ASSERT_TRUE(covered);
    for (const std::vector<int>& row : covered->rows) {
      EXPECT_EQ(std::ranges::count(model.already, row), 0);
      together.push_back(row);
    }
    ASSERT_EQ(pairs_in(together), pairs_in(valid)) << "turn " << turn;
    EXPECT_TRUE(check::check_array(model, covered->rows, 2).good());
    if (!covered->rows.empty()) {
      LevelRows cut = covered->rows;
      cut.pop_back();
      LevelRows left = together;
      left.pop_back();
      EXPECT_EQ(check::check_array(model, cut, 2).good(), pairs_in(left) == pairs_in(valid));
    }
    fewer += covered->rows.size() < without ? 1 : 0;
  }
  EXPECT_GT(fewer, 100U);
}

// Claim:  the file names earlier rows, whole ones; a part of one is refused with its place.
TEST(AlreadyRun, IsReadFromTheModel) {
  const CoverModel model =
      model_with(R"(, "already_run": [{ "a": 2, "b": "y", "c": true, "d": 0 }])");
  EXPECT_EQ(model.already, (LevelRows{{1, 1, 0, 0}}));
  const auto part = language::parse_json_model(
      std::string(kModel) + R"(, "already_run": [{ "a": 1, "b": "y" }] })", "m");
  ASSERT_FALSE(part);
  EXPECT_NE(part.error().message.find("at /already_run/0: 'd' is missing"), std::string::npos)
      << part.error().message;
}

// Claim:  what an array costs is told, and nothing where nothing costs.
// Oracle: the sum by hand; an absent level costs nothing.
TEST(ArrayFile, SaysWhatItsRowsCost) {
  const auto model = language::parse_json_model(
      R"({ "version": 1, "parameters": [{ "name": "a", "levels": [1, 2], "costs": [0, 5] },
           { "name": "b", "levels": [1, 2], "costs": [1, 2.5], "only_if": "a == 2" }] })",
      "m");
  ASSERT_TRUE(model);
  EXPECT_DOUBLE_EQ(language::cost_of(*model, {{0, -1}, {1, 0}, {1, 1}}).value_or(-1), 13.5);
  EXPECT_FALSE(language::cost_of(model_with(""), {{0, 0, -1, 0}}));
}

// Claim:  the check tells how many tuples there are before it counts, and how far it is.
// Oracle: the six pairs of parameters have 9, 6, 9, 6, 9 and 6 pairs of levels.
TEST(ArrayCheck, TellsHowFarItIs) {
  std::vector<double> shares;
  (void)check::check_array(model_with(""), {}, 2, [&](double share, double tuples) {
    EXPECT_EQ(tuples, 3 * 9 + 3 * 6);
    shares.push_back(share);
  });
  ASSERT_GT(shares.size(), 2U);
  EXPECT_EQ(shares[0], 0.0);
  EXPECT_EQ(std::ranges::count(shares, 0.0), 2);  // once more for rows without negative levels
  for (const double share : shares) EXPECT_LT(share, 1.0);
}

// Claim:  an array without one of the model's seeds is not good.
// Oracle: the array of the model, which has them, less the row that holds one.
TEST(ArrayCheck, MissesSeedsThatAreInNoRow) {
  const CoverModel model = model_with(R"(, "seeds": [{ "a": 3, "b": "x" }, { "d": 2, "b": "z" }])");
  const auto covered = cover_model(model, {});
  ASSERT_TRUE(covered);
  EXPECT_TRUE(check::check_array(model, covered->rows, 2).good());
  LevelRows cut = covered->rows;
  std::erase_if(cut, [](const std::vector<int>& row) { return row[3] == 2 && row[1] == 2; });
  ASSERT_LT(cut.size(), covered->rows.size());
  const check::CheckReport report = check::check_array(model, cut, 2);
  EXPECT_EQ(report.seeds_missing, 1U);
  EXPECT_FALSE(report.good());
}

// Claim:  no row is made twice where a row that nothing needs is cheap.
// Oracle: the rows themselves; the check that the array is still good.
// Method: a model with a dear helper, a conditional factor and 17 levels of which three are valid.
TEST(CoverModel, MakesNoRowTwice) {
  const auto model = language::parse_json_model(R"({ "version": 1, "parameters": [
    { "name": "f0", "levels": [true, false] },
    { "name": "f2", "levels": [true, false], "costs": [0, 10], "covered": false },
    { "name": "f3", "levels": ["t0", "t1", "t2", "t3", "t4"], "weights": [2, 1, 5, 2, 2] },
    { "name": "f4", "levels": [0.5, 256], "only_if": "!f2" },
    { "name": "f5", "levels": [-3, -1, 0.5, 1, 2, 3, 5, 6, 10, 11, 16, 32, 64, 100, 128, 512, 1024],
      "costs": [10, 10, 3, 3, 10, 3, 10, 0, 3, 0, 10, 1, 10, 0, 0, 3, 0] },
    { "name": "f6", "levels": [100] }, { "name": "f7", "levels": [1024], "weights": [1] } ],
  "constraints": ["f4 != f5 - 1 <-> f6 > f5", "f5 in {100, 0.5, -1}"] })",
                                                "m");
  ASSERT_TRUE(model) << model.error().message;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    CoverOptions options;
    options.strength = 3;
    options.seed = seed;
    const auto covered = cover_model(*model, options);
    ASSERT_TRUE(covered) << covered.error().message;
    const std::set<std::vector<int>> once(covered->rows.begin(), covered->rows.end());
    EXPECT_EQ(once.size(), covered->rows.size()) << "seed " << seed;
    ASSERT_TRUE(check::check_array(*model, covered->rows, 3).good()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace greynic::testgen
