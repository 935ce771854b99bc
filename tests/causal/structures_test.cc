/// The posterior over whole answers (causal/src/structures.h), held against counting all of them.

#include "structures.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>

namespace greynic::causal {
namespace {

constexpr std::size_t kSettings = 10;

struct TestedSets {
  std::vector<unsigned> sets;  // of settings at the wall's level
  std::vector<double> evidence;
};

/// Random sets, judged with noise: each test tells the truth with two noises between its answers.
TestedSets noisy_tests(unsigned cause, int count, std::mt19937& random) {
  TestedSets tests;
  std::normal_distribution<double> noise(0.0, 1.0);
  for (int i = 0; i < count; ++i) {
    const unsigned set = random() % (1U << kSettings) | random() % (1U << kSettings);
    const double value = ((set & cause) == cause ? 2.0 : 0.0) + noise(random);
    tests.sets.push_back(set);
    tests.evidence.push_back(2.0 * value - 2.0);
  }
  return tests;
}

Positions positions_of_set(unsigned set) {
  Positions positions;
  for (std::size_t i = 0; i < kSettings; ++i) positions.push_back(set >> i & 1);
  return positions;
}

/// Settings that a cause needs at the wall's level, and those at the baseline's.
struct Sets {
  unsigned present = 0;
  unsigned absent = 0;
  friend bool operator==(const Sets&, const Sets&) = default;
};

Sets sets_of(const Conjunction& cause) {
  Sets sets;
  for (const Term& term : cause) {
    (term.among == 1 ? sets.absent : sets.present) |= 1U << term.setting;
  }
  return sets;
}

bool holds(const std::vector<Sets>& causes, unsigned set) {
  return std::any_of(causes.begin(), causes.end(), [&](const Sets& cause) {
    return (set & cause.present) == cause.present && (set & cause.absent) == 0;
  });
}

double sum_over(const TestedSets& tests, const std::vector<Sets>& causes) {
  double sum = 0.0;
  for (std::size_t i = 0; i < tests.sets.size(); ++i) {
    if (holds(causes, tests.sets[i])) sum += tests.evidence[i];
  }
  return sum;
}

// Claim:  every answer that is kept has the score that its tests give it, and no conjunction of as
//         many terms as the likeliest one fits the tests better.
// Oracle: all conjunctions of ten settings, one by one.
TEST(Structures, TheLikeliestIsTheBestOfAll) {
  std::mt19937 random(41);
  for (int round = 0; round < 20; ++round) {
    const unsigned cause = 1U << random() % 5 | 1U << (5 + random() % 5);
    const TestedSets tests = noisy_tests(cause, 40, random);
    Structures structures(std::vector<Axis>(kSettings, Axis{false, 0, 1, 1}));
    for (const unsigned set : tests.sets) (void)structures.add_test(positions_of_set(set));
    structures.weigh(tests.evidence, 40);
    ASSERT_FALSE(structures.likely().empty());
    double all = 0.0;
    for (const Structure& one : structures.likely()) {
      std::vector<Sets> causes;
      for (const Conjunction& each : one.causes) causes.push_back(sets_of(each));
      EXPECT_NEAR(one.score - one.before, sum_over(tests, causes), 1e-4);
      all += one.chance;
    }
    EXPECT_LE(all, 1.0 + 1e-9);
    const Structure& best = structures.likely().front();
    if (best.causes.size() > 1) continue;
    const unsigned named = sets_of(best.causes.front()).present;
    for (unsigned other = 1; other < 1U << kSettings; ++other) {
      if (std::popcount(other) != std::popcount(named)) continue;
      EXPECT_LE(sum_over(tests, {{other}}), sum_over(tests, {{named}}) + 1e-9) << "round " << round;
    }
  }
}

// Claim:  an answer is judged by all views together, so what one view alone speaks for is seldom likely.
// Oracle: by hand. Of two settings, the first alone is worth 5 in each of three views; the second 6, in the
//         fourth one only.
TEST(Structures, AnAnswerIsJudgedByAllViews) {
  Structures structures(std::vector<Axis>(2, Axis{false, 0, 1, 1}));
  (void)structures.add_test({1, 0});
  (void)structures.add_test({0, 1});
  const Views views{.clear = {0.0, 0.0, 0.0, 0.0},
                    .baselines = {0.0, 0.0, 0.0, 1.0},
                    .evidence = {{5.0, -30.0}, {5.0, -30.0}, {5.0, -30.0}, {-30.0, 6.0}}};
  structures.weigh(views, 40);
  const Structure& best = structures.likely().front();
  ASSERT_EQ(best.causes.size(), 1U);
  EXPECT_EQ(sets_of(best.causes.front()).present, 1U);
  EXPECT_NEAR(best.score - best.before, std::log(3.0 * std::exp(5.0)), 1e-4);
  const auto second = std::ranges::find_if(structures.likely(), [](const Structure& one) {
    return one.causes.size() == 1 && sets_of(one.causes.front()).present == 2U;
  });
  ASSERT_NE(second, structures.likely().end());
  EXPECT_NEAR(second->score - second->before, 6.0, 1e-4);
}

// Claim:  an answer that is said to have 90 % and more is right about that often.
// Oracle: the planted cause.
TEST(Structures, ChancesAreEarned) {
  std::mt19937 random(43);
  int sure = 0;
  int right = 0;
  for (int round = 0; round < 150; ++round) {
    const unsigned cause = 1U << random() % 5 | 1U << (5 + random() % 5);
    const TestedSets tests = noisy_tests(cause, 50, random);
    Structures structures(std::vector<Axis>(kSettings, Axis{false, 0, 1, 1}));
    for (const unsigned set : tests.sets) (void)structures.add_test(positions_of_set(set));
    structures.weigh(tests.evidence, 10);
    const Structure& best = structures.likely().front();
    if (best.chance < 0.9) continue;
    ++sure;
    right += best.causes.size() == 1 && sets_of(best.causes.front()) == Sets{cause} ? 1 : 0;
  }
  EXPECT_GE(sure, 30);
  EXPECT_GE(right, 0.9 * sure);
}

// Claim:  a cause that healing another brings about is an answer like any other, and a healed wall
//         that keeps its sleep certifies the list.
// Method: a and b, or c without a, bring the wall; every set of ten settings is tested once, the
//         baseline included.
TEST(Structures, AnEmergentCauseIsAnAnswer) {
  const std::vector<Sets> planted = {{0b0011, 0}, {0b0100, 0b0001}};
  Structures structures(std::vector<Axis>(kSettings, Axis{false, 0, 1, 1}));
  std::vector<double> evidence;
  for (unsigned set = 0; set < 1U << kSettings; set += 1 + set % 3) {
    (void)structures.add_test(positions_of_set(set));
    evidence.push_back(holds(planted, set) ? 1.0 : -1.0);
  }
  for (int round = 0; round < 5; ++round) structures.weigh(evidence, 40);
  const Structure& best = structures.likely().front();
  ASSERT_EQ(best.causes.size(), 2U);
  for (const Sets& cause : planted) {
    EXPECT_TRUE(sets_of(best.causes[0]) == cause || sets_of(best.causes[1]) == cause);
  }
  ASSERT_EQ(structures.healed().size(), 2U);
  for (const Positions& healed : structures.healed()) {
    EXPECT_TRUE(healed[0] == 0 ? healed[2] == 0 : healed[1] == 0);
  }
}

// Claim:  a position between two tested ones is a wall as likely as the classes leave open.
TEST(Structures, UntestedLevelsAreOpen) {
  Structures structures({Axis{true, 0, 8, 8}, Axis{false, 0, 1, 1}});
  (void)structures.add_test({8, 1});
  (void)structures.add_test({8, 0});
  (void)structures.add_test({0, 1});
  structures.weigh({20.0, 20.0, -20.0}, 20);
  EXPECT_NEAR(structures.chance_of({4, 0}), 0.5, 0.02);
  (void)structures.add_test({4, 0});
  structures.weigh({20.0, 20.0, -20.0, -20.0}, 20);
  EXPECT_NEAR(structures.chance_of({6, 0}), 0.5, 0.02);
  EXPECT_LT(structures.chance_of({3, 0}), 0.02);
}

std::vector<unsigned> present_of(const std::vector<Conjunction>& causes) {
  std::vector<unsigned> sets;
  for (const Conjunction& cause : causes) sets.push_back(sets_of(cause).present);
  std::sort(sets.begin(), sets.end());
  return sets;
}

Conjunction cause_of(unsigned set) {
  Conjunction cause;
  for (std::uint16_t i = 0; i < kSettings; ++i) {
    if (set >> i & 1) cause.push_back({i, 1, 1, 2});
  }
  return cause;
}

// Claim:  where all walls by one cause passed for clear, the causes are among the answers that are held
//         against the one that was told, and no cause of such an answer holds another one.
// Oracle: the causes a, b, c, told as the pairs of them, as one and the other two together, or as two
//         together: sets of settings by bits.
TEST(Structures, CausesAreHeldAgainstPairsOfThem) {
  const std::vector<std::vector<unsigned>> plans = {{0b11, 0b1100, 0b110000}, {0b1, 0b110, 0b1000}};
  for (const std::vector<unsigned>& causes : plans) {
    const unsigned a = causes[0], b = causes[1], c = causes[2];
    const std::vector<std::vector<unsigned>> tellings = {{a | b, b | c, a | c}, {a, b | c}};
    for (const std::vector<unsigned>& told : tellings) {
      std::vector<Conjunction> answer;
      for (const unsigned set : told) answer.push_back(cause_of(set));
      bool found = false;
      for (const auto& other : Structures::alike(answer)) {
        const std::vector<unsigned> sets = present_of(other);
        std::vector<unsigned> wanted = causes;
        std::sort(wanted.begin(), wanted.end());
        found = found || sets == wanted;
        for (std::size_t i = 0; i < sets.size(); ++i) {
          for (std::size_t j = 0; j < sets.size(); ++j) {
            EXPECT_TRUE(i == j || (sets[i] & sets[j]) != sets[i]) << sets[i] << " in " << sets[j];
          }
        }
      }
      EXPECT_TRUE(found) << told.size();
    }
  }
}

// Claim:  a cause with a setting too many is held against the cause without it.
// Oracle: settings by bits; beside another cause, too.
TEST(Structures, CausesAreHeldAgainstThemselvesWithoutATerm) {
  for (const unsigned extra : {0b1U, 0b10U, 0b100U}) {
    const std::vector<std::vector<Conjunction>> all =
        Structures::alike({cause_of(0b111), cause_of(0b11000)});
    const std::vector<unsigned> wanted = {0b111U & ~extra, 0b11000U};
    EXPECT_TRUE(std::any_of(all.begin(), all.end(), [&](const auto& one) {
      return present_of(one) == wanted;
    })) << extra;
  }
}

}  // namespace
}  // namespace greynic::causal
