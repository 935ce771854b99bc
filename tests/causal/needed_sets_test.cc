/// Which settings a wall cannot do without (causal/steps/needed_sets.h), and which test tells most of them.

#include "steps/needed_sets.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "steps/part_choice.h"
#include "whole/structures.h"

namespace greynic::causal {
namespace {

constexpr std::size_t kTwelve = 12;

/// What the tests say of one set, looked at by itself: a test of the wall is clear if it heals one of it.
double told_of(const Set& set, const std::vector<HealedTest>& tests) {
  double told = 0.0;
  for (const HealedTest& one : tests) {
    if ((one.healed & set).none()) told += one.evidence;
  }
  return told;
}

/// The chance of each set of up to five settings, by all sets one after the other.
std::map<unsigned long, double> by_all_sets(const std::vector<HealedTest>& tests) {
  std::map<unsigned long, double> chances;
  double all = 0.0;
  for (unsigned long mask = 1; mask < 1UL << kTwelve; ++mask) {
    const Set set(mask);
    if (set.count() > kMostNeeded) continue;
    const double ways = std::exp(log_choose(kTwelve, static_cast<double>(set.count())));
    all += chances[mask] = kTermsBefore[set.count()] / ways * std::exp(told_of(set, tests));
  }
  for (auto& [mask, chance] : chances) chance /= all;
  return chances;
}

std::vector<HealedTest> tests_of(const Set& needed, int count, double evidence,
                                 statistics::Random& random) {
  std::vector<HealedTest> tests;
  for (int i = 0; i < count; ++i) {
    HealedTest test;
    for (std::size_t k = 0; k < kTwelve; ++k) test.healed.set(k, random.uniform() < 0.25);
    const double sign = (test.healed & needed).any() ? -1.0 : 1.0;
    test.evidence = sign * evidence * random.uniform();
    if (random.below(12) == 0) test.evidence = -test.evidence;  // some tests are wrong
    tests.push_back(test);
  }
  return tests;
}

Set all_settings() { return Set((1UL << kTwelve) - 1); }

// Claim:  the chances of sets that are counted by kinds of settings are those of all sets one by one, whether tests
//         agree or some of them are wrong.
// Oracle: every set of up to five of twelve settings, each held against every test.
TEST(NeededSets, ChancesAreThoseOfAllSetsOneByOne) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    statistics::Random random(seed);
    Set needed;
    for (std::uint32_t k = 0; k < 1 + seed % 4; ++k) needed.set(random.below(kTwelve));
    const auto tests = tests_of(needed, 3 + static_cast<int>(seed % 12), 4.0, random);
    NeededSets sets(all_settings());
    sets.learn(tests, random);
    ASSERT_FALSE(sets.likely().empty()) << "seed " << seed;
    double none = 0.0;
    std::map<unsigned long, double> found;
    for (const NeededSet& one : sets.likely()) {
      if (one.count == 0) none += one.chance;
      if (one.count > 0) found[one.settings().to_ulong()] += one.chance;
    }
    for (const auto& [mask, chance] : by_all_sets(tests)) {
      EXPECT_NEAR(found[mask], chance * (1.0 - none), 2e-4) << "seed " << seed << " set " << mask;
    }
  }
}

// Claim:  of more sets than are listed, as many are drawn by their chances, and each agrees with all sure tests.
// Oracle: the tests themselves, and shares of the two groups that one of four settings may be in.
TEST(NeededSets, OfVeryManySetsSomeAreDrawn) {
  Set wall;
  for (std::size_t i = 0; i < 192; ++i) wall.set(i);
  std::vector<HealedTest> tests;
  for (std::size_t group = 0; group < 6; ++group) {
    HealedTest test{.healed = {}, .evidence = group < 3 ? -20.0 : 20.0};
    for (std::size_t i = 32 * group; i < 32 * group + 32; ++i) test.healed.set(i);
    tests.push_back(test);
  }
  statistics::Random random(7);
  NeededSets sets(wall);
  sets.learn(tests, random);
  EXPECT_EQ(sets.likely().size(), 4096U);
  double lower_half = 0.0;
  for (const NeededSet& one : sets.likely()) {
    const Set set = one.settings();
    for (std::size_t group = 0; group < 6; ++group)
      ASSERT_EQ((set & tests[group].healed).any(), group < 3) << set;
    lower_half += one.chance * static_cast<double>((set & Set(0xffffUL)).any() ? 1 : 0);
  }
  // Of the first group a set has one setting mostly, else two or three.
  EXPECT_GT(lower_half, 0.5);
  EXPECT_LT(lower_half, 0.75);
}

// Claim:  where surely wrong tests contradict every set, that is said.
// Oracle: a setting that is a wall healed and clear healed, beside one that no test asks for.
TEST(NeededSets, TestsAgainstTheLikeliestAreCounted) {
  statistics::Random random(3);
  NeededSets sets(Set(0b11));
  sets.learn(std::vector<HealedTest>{{Set(0b01), -6.0}, {Set(0b10), 6.0}}, random);
  EXPECT_NEAR(sets.against(), 0.0, 1e-9);
  EXPECT_EQ(sets.likely().front().settings(), Set(0b01));
  sets.learn(std::vector<HealedTest>{{Set(0b01), -6.0}, {Set(0b01), 5.5}, {Set(0b11), 6.0}},
             random);
  EXPECT_GT(sets.against(), 5.0);
}

// Claim:  the part that is chosen tells nearly as much as any part does.
// Oracle: every part of twelve settings.
TEST(PartChoice, IsHardlyWorseThanTheBestOfAllParts) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    statistics::Random random(seed);
    Set needed;
    for (int k = 0; k < 3; ++k) needed.set(random.below(kTwelve));
    NeededSets sets(all_settings());
    sets.learn(tests_of(needed, 4, 4.0, random), random);
    PartChoice choice(sets.likely(), random);
    for (int test = 0; test < 3; ++test) {
      double most = 0.0;
      for (unsigned long mask = 1; mask < 1UL << kTwelve; ++mask)
        most = std::max(most, choice.bits_of(Set(mask)));
      const Set best = choice.best();
      EXPECT_GT(choice.bits_of(best), 0.97 * most) << "seed " << seed;
      choice.add(best);
      EXPECT_NEAR(choice.bits_of(best), 0.0, 1e-9) << "its answer is known then";
    }
  }
}

}  // namespace
}  // namespace greynic::causal
