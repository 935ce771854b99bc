#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "greynic/language/model_reader.h"
#include "greynic/testgen/cover.h"
#include "greynic/testgen/model_cover.h"
#include "sized.h"

namespace greynic::testgen {
namespace {

/// A few to many parameters of 2 to 6 levels, with pairs forbidden here and there.
Space a_space(std::mt19937& rng, std::uint32_t parameters) {
  const auto pick = [&](std::uint32_t bound) { return static_cast<std::uint32_t>(rng() % bound); };
  Space space;
  const std::uint32_t spread = 1 + pick(5);
  for (std::uint32_t p = 0; p < parameters; ++p) {
    space.parameters.push_back({static_cast<std::uint16_t>(2 + pick(spread))});
  }
  for (std::uint32_t c = pick(parameters); c > 0; --c) {
    const std::uint32_t a = pick(parameters - 1);
    const std::uint32_t b = a + 1 + pick(parameters - a - 1);
    space.clauses.push_back({{a, 0, false}, {b, 1, false}});
  }
  return space;
}

// Claim: rows and time told before the first row are what comes out, to within a factor.
// Oracle: the rows and the steps that the finished call counted; no clock is read.
// Method: random models of strength 1 to 6, each large enough that the time could matter.
TEST(CoverForecast, TellsRowsAndWorkToWithinAFactor) {
  constexpr std::uint32_t kSeed = 20240611;
  SCOPED_TRACE(kSeed);
  std::mt19937 rng(kSeed);
  // Strength and parameters.
  const std::pair<int, std::uint32_t> shapes[] = {{1, 30}, {2, 60}, {2, 120}, {3, 25},
                                                  {3, 50}, {4, 16}, {5, 11},  {6, 9}};
  std::vector<double> off;
  for (const auto& [strength, parameters] : shapes) {
    for (int turn = 0; turn < sized(4, 1); ++turn) {
      const Space space = a_space(rng, parameters);
      CoverOptions options;
      options.strength = strength;
      CoverEstimate foretold;
      options.announce = [&](const CoverEstimate& estimate) { foretold = estimate; };
      const auto covered = cover(space, options);
      ASSERT_TRUE(covered);
      EXPECT_EQ(foretold.strength, strength);
      const double rows = static_cast<double>(covered->rows.size());
      EXPECT_LT(foretold.rows, 2.5 * rows) << "strength " << strength << ", turn " << turn;
      EXPECT_GT(foretold.rows, rows / 2.5) << "strength " << strength << ", turn " << turn;
      ASSERT_GT(covered->steps, 0.0);
      off.push_back(std::abs(std::log(foretold.steps / covered->steps)));
    }
  }
  std::sort(off.begin(), off.end());
  EXPECT_LT(off[off.size() / 2], std::log(2.0));
  EXPECT_LT(off[off.size() * 9 / 10], std::log(4.0));
}

// Claim:  what is told is told before the first row, and where the tables do not fit before the
//         refusal, so that nobody waits to learn how big a job is.
// Oracle: counts of tuples and rows by formula.
TEST(CoverForecast, ComesFirstAndAlsoBeforeARefusal) {
  Space space;
  space.parameters.assign(300, {4});
  CoverOptions options;
  options.strength = 6;
  options.memory_bytes = std::uint64_t{1} << 30;
  std::vector<CoverEstimate> told;
  options.announce = [&](const CoverEstimate& estimate) { told.push_back(estimate); };
  options.progress = [&](double, std::size_t) { ADD_FAILURE() << "work was begun"; };
  const auto refused = cover(space, options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kTooBig);
  ASSERT_EQ(told.size(), 1U);
  // C(300, 6) * 4^6
  EXPECT_NEAR(told[0].tuples / (962822846700.0 * 4096.0), 1.0, 1e-9);
  EXPECT_GT(told[0].seconds, 86400.0);
  EXPECT_NE(describe(told[0]).find(" days"), std::string::npos) << describe(told[0]);
}

// Claim: it is told once, also where every row needs a negative level and the first pass has none.
// Oracle: the number of calls.
TEST(CoverForecast, IsToldOnceWhateverThePasses) {
  for (const char* text :
       {"A: 1, 2\nB: 1, 2\n", "A: 1, ~2\nB: 1, 2\n", "A: 1, ~2\nB: 1, 2\n[A] = 2;\n"}) {
    const auto model = language::parse_pict(text, "m");
    ASSERT_TRUE(model);
    int told = 0;
    CoverOptions options;
    options.announce = [&](const CoverEstimate&) { ++told; };
    ASSERT_TRUE(cover_model(*model, options));
    EXPECT_EQ(told, 1) << text;
  }
}

}  // namespace
}  // namespace greynic::testgen
