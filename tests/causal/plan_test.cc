/// A plan's rows are evidence for what is asked later.

#include <gtest/gtest.h>

#include <set>

#include "greynic/statistics/random.h"
#include "plan_of_six.h"
#include "steps/likely_terms.h"

namespace greynic::causal {
namespace {

/// Half of the factors at b.
Configuration random_row(const Campaign& campaign, statistics::Random& random) {
  std::vector<int> set;
  for (int i = 0; i < static_cast<int>(campaign.factors.size()); ++i) {
    if (random.below(2) == 0) set.push_back(i);
  }
  return with(campaign, set);
}

/// The answer from this plan, where `rate` is what a configuration brings.
Explanation explained(const Campaign& campaign, const std::vector<Configuration>& plan,
                      const std::function<double(const Configuration&)>& rate) {
  Laboratory laboratory = laboratory_of([&](const Configuration& configuration) {
    return observed(configuration, rate(configuration));
  });
  laboratory.plan = [&] { return Result<std::vector<Configuration>>(plan); };
  return explain(campaign, {}, {}, &laboratory).value();
}

// Claim:  clear rows of a plan say which settings are terms before any test is made for it: of six that differ,
//         those that each clear row lacks.
// Method: rows without c1, and without c4, were clear, so a row that adds c4 last turns there.
TEST(Plan, ClearRowsAreOddsOfASearch) {
  const Campaign campaign = campaign_of_six();
  const Laboratory laboratory = laboratory_of([&](const Configuration& configuration) {
    return observed(configuration,
                    is_set(configuration, "c1") && is_set(configuration, "c4") ? 60 : 100);
  });
  const ExplainOptions options;
  Session session(campaign, campaign.baseline, options, laboratory);
  ASSERT_TRUE(session.begin());
  Settings settings =
      Settings::create(session, campaign.baseline, with(campaign, {0, 1, 2, 3, 4, 5})).value();
  Growth growth{.sets = {Set()}};
  std::size_t last = 0;
  for (std::size_t place = 0; place < 6; ++place) {  // c4 last, wherever it stands
    if (settings.factor(place) == "c4") last = place;
  }
  for (std::size_t place = 0; place < 6; ++place) {
    if (place != last) growth.sets.push_back(Set(growth.sets.back()).set(place));
  }
  growth.sets.push_back(settings.all());
  std::vector<double> odds(7, 1.0 / 7.0);
  weigh_by_clear(session, settings, growth, Set(), odds);
  EXPECT_LT(odds.back(), 0.9);  // the baseline's tests alone
  for (const auto& row : {with(campaign, {0, 2, 3, 4, 5}), with(campaign, {0, 2, 3, 5})}) {
    const Id id = session.id_of(row);
    ASSERT_TRUE(session.measure({&id, 1}, "a row of a plan"));
  }
  const Id fifth = session.id_of(with(campaign, {0, 1, 2, 3, 5}));
  ASSERT_TRUE(session.measure({&fifth, 1}, "a row of a plan"));
  growth.sets.erase(growth.sets.end() - 2);  // what is a step itself speaks for itself
  odds.assign(6, 1.0 / 6.0);
  weigh_by_clear(session, settings, growth, Set(), odds);
  EXPECT_GT(odds.back(), 0.95);
}

// Claim:  a row of a plan of pairs is left out where clear configurations had each of its pairs, and only then.
// Method: of {0 1}, {1 2} and {0 2} every pair is in the fourth row; {0 1 2 3} has more. Each row has four levels that
//         no other has.
TEST(Plan, RowsThatWereToldAreLeftOut) {
  Campaign campaign = campaign_of_six();
  campaign.design = {.kind = DesignKind::kCovering, .strength = 2};
  const std::vector<Configuration> plan = {with(campaign, {0, 1}), with(campaign, {1, 2}),
                                           with(campaign, {0, 2}), with(campaign, {0, 1, 2}),
                                           with(campaign, {0, 1, 2, 3})};
  const auto rate = [](const Configuration&) { return 100.0; };
  EXPECT_EQ(count(explained(campaign, plan, rate), "looking for a wall"), 4);
  campaign.design.strength = 4;
  EXPECT_EQ(count(explained(campaign, plan, rate), "looking for a wall"), 5);
}

// Claim:  what only a row with a known cause has is asked without that cause, so what it hides is found; no pair
//         that holds the cause is asked.
// Method: c0 is a cause by itself, and no other row than the second one has both c1 and c2, which are one too.
TEST(Plan, AKnownCauseHidesNoOther) {
  Campaign campaign = campaign_of_six();
  campaign.design = {.kind = DesignKind::kCovering, .strength = 2};
  const std::vector<Configuration> plan = {with(campaign, {0}), with(campaign, {0, 1, 2}),
                                           with(campaign, {1}), with(campaign, {2, 3})};
  const auto explanation = explained(campaign, plan, [](const Configuration& configuration) {
    const bool both = is_set(configuration, "c1") && is_set(configuration, "c2");
    return is_set(configuration, "c0") || both ? 60.0 : 100.0;
  });
  ASSERT_EQ(explanation.causes.size(), 2U) << to_text(explanation);
  int with_first = 0;
  for (const TrailTest& test : explanation.trail) {
    with_first += test.why == "looking for a wall" && is_set(test.configuration, "c0") ? 1 : 0;
  }
  EXPECT_EQ(with_first, 1);
}

// Claim:  a pair is asked though its only row of the plan holds many causes.
// Method: each of eight settings is a cause, and so are two more together.
TEST(Plan, ManyKnownCausesHideNoOther) {
  Campaign campaign = campaign_of(10);
  campaign.design = {.kind = DesignKind::kCovering, .strength = 2};
  std::vector<Configuration> plan;
  for (int i = 0; i < 8; ++i) plan.push_back(with(campaign, {i}));
  plan.push_back(with(campaign, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  campaign.seeds.assign(plan.begin(), plan.end() - 1);  // rows that come first
  const auto explanation = explained(campaign, plan, [&](const Configuration& configuration) {
    bool wall = is_set(configuration, "c8") && is_set(configuration, "c9");
    for (int i = 0; i < 8; ++i) wall = wall || is_set(configuration, "c" + std::to_string(i));
    return wall ? 60.0 : 100.0;
  });
  EXPECT_EQ(explanation.causes.size(), 9U) << to_text(explanation);
}

// Claim:  what a plan is for is asked in few rows, however many the plan has, and each of its choices is asked.
// Oracle: triples of six settings of three levels alone need 33 rows. Each choice is looked for in the rows that were
//         asked.
// Method: these six and six of two levels, 300 random rows, no wall.
TEST(Plan, FewRowsAskForAllChoices) {
  Campaign campaign = campaign_of(12);
  campaign.design = {.kind = DesignKind::kCovering, .strength = 3};
  for (std::size_t i = 0; i < 6; ++i) campaign.factors[i].levels.emplace_back(std::string("c"));
  statistics::Random random(5);
  std::vector<Configuration> plan(300);
  for (Configuration& row : plan) {
    for (const Factor& factor : campaign.factors) {
      const auto levels = static_cast<std::uint32_t>(factor.levels.size());
      row.set(factor.name, factor.levels[random.below(levels)]);
    }
  }
  const auto choices_of = [&](const std::vector<Configuration>& rows) {
    std::set<std::string> choices;
    for (const Configuration& row : rows) {
      for (std::size_t i = 0; i < 12; ++i) {
        for (std::size_t j = i + 1; j < 12; ++j) {
          for (std::size_t k = j + 1; k < 12; ++k) {
            Configuration part;
            for (const std::size_t one : {i, j, k}) {
              const std::string& name = campaign.factors[one].name;
              part.set(name, *row.find(name));
            }
            choices.insert(part.name());
          }
        }
      }
    }
    return choices;
  };
  const auto explanation = explained(campaign, plan, [](const Configuration&) { return 100.0; });
  std::vector<Configuration> asked;
  for (const TrailTest& test : explanation.trail) asked.push_back(test.configuration);
  EXPECT_LE(count(explanation, "looking for a wall"), 38);
  EXPECT_EQ(choices_of(asked), choices_of(plan));
}

// Claim:  where repeats agree to the last digit there is no noise, however much clear configurations differ.
// Oracle: nothing is judged by all answers at once, as it is under noise.
TEST(Plan, RatesThatRepeatAreNoNoise) {
  const Campaign campaign = campaign_of_six();
  const std::vector<Configuration> plan = {with(campaign, {0, 1, 2, 3, 4, 5})};
  const auto explanation = explained(campaign, plan, [](const Configuration& configuration) {
    const bool first = is_set(configuration, "c1") && is_set(configuration, "c3");
    const bool second = is_set(configuration, "c0") && is_set(configuration, "c2");
    if (first || second) return 5.0;
    double rate = 10.0;
    for (const char* faster : {"c0", "c4", "c5"}) rate *= is_set(configuration, faster) ? 4.0 : 1.0;
    return rate;
  });
  EXPECT_EQ(explanation.causes.size(), 2U) << to_text(explanation);
  EXPECT_EQ(count(explanation, "halving what is likely"), 0);
}

// Claim:  what may heal a cause is not asked where the plan's rows tell it, and is found where it is real.
// Method: every configuration of six is a row. A wall of c1 and c3 alone; then one of c1 that c5 heals and c2
//         wakes again, so that c2 looks like a term beside c5.
TEST(Plan, RowsTellOfHealers) {
  const Campaign campaign = campaign_of_six();
  std::vector<Configuration> plan = {with(campaign, {0, 1, 2, 3, 4, 5})};
  for (int set = 0; set < 63; ++set) {
    std::vector<int> members;
    for (int i = 0; i < 6; ++i) {
      if ((set >> i & 1) != 0) members.push_back(i);
    }
    plan.push_back(with(campaign, members));
  }
  const auto plain = explained(campaign, plan, [](const Configuration& configuration) {
    return is_set(configuration, "c1") && is_set(configuration, "c3") ? 60.0 : 100.0;
  });
  ASSERT_EQ(plain.causes.size(), 1U) << to_text(plain);
  EXPECT_EQ(plain.causes.front().all_of.size(), 2U);
  EXPECT_EQ(count(plain, "the terms but one") + count(plain, "settings without a cause"), 0);
  plan.resize(1);
  const auto healed = explained(campaign, plan, [](const Configuration& configuration) {
    const bool heals = is_set(configuration, "c5") && !is_set(configuration, "c2");
    return is_set(configuration, "c1") && !heals ? 60.0 : 100.0;
  });
  ASSERT_EQ(healed.causes.size(), 1U) << to_text(healed);
  EXPECT_EQ(healed.causes.front().all_of.size(), 1U) << to_text(healed);
}

// Claim:  repeats that agree bound the noise: rates of clear configurations that lie far apart do not make it
//         large, so a wall of a plan is sure after its second test.
// Method: 60 rates between 6 and 44 above a bound of 4; baseline and wall repeat to the last digit.
TEST(Plan, RepeatsBoundTheNoise) {
  Campaign campaign = campaign_of_six();
  campaign.wall = {"bandwidth_gbps", {}, {}, 4.0, {}};
  const Laboratory laboratory = laboratory_of([&](const Configuration& configuration) {
    double rate = 5.9;
    const double faster[] = {2.2, 1.0, 1.05, 1.9, 1.5, 1.02};
    for (int i = 0; i < 6; ++i)
      rate *= is_set(configuration, "c" + std::to_string(i)) ? faster[i] : 1.0;
    const bool wall = is_set(configuration, "c1") && is_set(configuration, "c2");
    return observed(configuration, wall ? 3.1 : rate);
  });
  const ExplainOptions options;
  Session session(campaign, campaign.baseline, options, laboratory);
  ASSERT_TRUE(session.begin());
  const Id baseline = session.baseline();
  const Id wall = session.id_of(with(campaign, {0, 1, 2, 3, 4, 5}));
  for (const Id id : {baseline, wall, wall}) ASSERT_TRUE(session.measure({&id, 1}, "again"));
  for (int set = 1; set < 64; ++set) {
    std::vector<int> members;
    for (int i = 0; i < 6; ++i) {
      if ((set >> i & 1) != 0) members.push_back(i);
    }
    const Id id = session.id_of(with(campaign, members));
    if ((set & 6) != 6) ASSERT_TRUE(session.measure({&id, 1}, "a row of a plan"));
  }
  EXPECT_LT(session.model().sigma(), 0.05);
}

// Claim:  what was shown to be a wall is not asked again as the level next to a threshold; what was not, is.
// Method: a wall of 80 %, tested once; no other configuration is as slow.
TEST(Plan, AKnownWallIsNoDoubtfulLevel) {
  const Campaign campaign = campaign_of_six();
  const Laboratory laboratory = laboratory_of([&](const Configuration& configuration) {
    return observed(configuration, is_set(configuration, "c1") ? 20.0 : 100.0);
  });
  const ExplainOptions options;
  for (const bool known : {true, false}) {
    Session session(campaign, campaign.baseline, options, laboratory);
    ASSERT_TRUE(session.begin());
    const Id clear = session.id_of(with(campaign, {0}));
    const Id wall = session.id_of(with(campaign, {0, 1}));
    for (const Id id : {session.baseline(), clear, clear, wall})
      ASSERT_TRUE(session.measure({&id, 1}, "a row of a plan"));
    const JudgingByBound judging(session);
    const Row row{.steps = {clear, wall},
                  .before = {0.0, 1.0},
                  .never = 0.0,
                  .why = "levels",
                  .last_is_known = known};
    const std::size_t before = session.tests();
    ASSERT_TRUE(session.first_wall(row, 0.003));
    EXPECT_EQ(session.tests() == before, known);
  }
}

// Claim:  once walls are known, a row that is likely one is searched at once: its search shows it. A test that
//         stalled brings no cause.
// Method: two walls, of c0 and c1, and a deeper one, which no known depth explains, of c2 and c3; the first test
//         of c4 beside c5 stalls.
TEST(Plan, ALikelyWallIsSearchedAtOnce) {
  Campaign campaign = campaign_of(10);
  campaign.design = {.kind = DesignKind::kCovering, .strength = 2};
  std::vector<Configuration> plan = {with(campaign, {0, 1})};
  campaign.seeds = plan;  // the first row
  for (int i = 0; i < 9; ++i) {
    for (int j = i + 1; j < 10; ++j) plan.push_back(with(campaign, {i, j}));
  }
  int stalled = 0;
  const auto explanation = explained(campaign, plan, [&](const Configuration& configuration) {
    const auto both = [&](const char* a, const char* b) {
      return is_set(configuration, a) && is_set(configuration, b);
    };
    const bool stalls = both("c4", "c5") && stalled++ == 0;
    if (stalls) return 35.0;
    return both("c0", "c1") ? 60.0 : both("c2", "c3") ? 15.0 : 100.0;
  });
  EXPECT_EQ(explanation.causes.size(), 2U) << to_text(explanation);
  EXPECT_GT(stalled, 1);
  // The first wall is measured again, to learn how much it repeats; the second one is not.
  EXPECT_EQ(count(explanation, "is it a wall?"), 1);
}

// Claim:  a first wall that gives no value is looked at no more often than the answer needs: its causes are asked
//         by themselves anyway.
// Method: c0 and c1 together fail; every other configuration repeats to the last digit.
TEST(Plan, AFirstWallThatFailsIsSoonSearched) {
  Campaign campaign = campaign_of_six();
  campaign.design = {.kind = DesignKind::kCovering, .strength = 2};
  const std::vector<Configuration> plan = {with(campaign, {2}), with(campaign, {0, 1, 2, 3}),
                                           with(campaign, {3, 4, 5}), with(campaign, {0, 4, 5})};
  Laboratory laboratory = laboratory_of([&](const Configuration& configuration) {
    Observation observation = observed(configuration, 100.0);
    if (is_set(configuration, "c0") && is_set(configuration, "c1")) {
      observation.outcome = Outcome::kFailed;
      observation.measures.clear();
    }
    return observation;
  });
  laboratory.plan = [&] { return Result<std::vector<Configuration>>(plan); };
  const auto explanation = explain(campaign, {}, {}, &laboratory).value();
  ASSERT_EQ(explanation.causes.size(), 1U) << to_text(explanation);
  EXPECT_EQ(explanation.causes.front().all_of.size(), 2U) << to_text(explanation);
  EXPECT_LE(count(explanation, "is it a wall?"), 2) << to_text(explanation);
}

// Claim:  a level at which a known cause holds is a wall by that one, and is not asked for the next cause.
// Method: c0 has three levels; its last one is a wall alone, and its middle one is beside c1. The first row shows
//         the wall alone.
TEST(Plan, ALevelThatAKnownCauseExplainsIsNotAsked) {
  Campaign campaign = campaign_of_six();
  campaign.factors[0].levels.emplace_back(std::string("z"));
  campaign.design = {.kind = DesignKind::kCovering, .strength = 2};
  Configuration alone = campaign.baseline;
  alone.set("c0", std::string("z"));
  const std::vector<Configuration> plan = {alone, with(campaign, {0, 1}), with(campaign, {2, 3})};
  campaign.seeds = {alone};
  const auto explanation = explained(campaign, plan, [](const Configuration& configuration) {
    const bool both = is_set(configuration, "c0") && is_set(configuration, "c1");
    const bool loops = configuration.text("c0") == "z";
    return loops || both ? 60.0 : 100.0;
  });
  ASSERT_EQ(explanation.causes.size(), 2U) << to_text(explanation);
  for (const Cause& cause : explanation.causes) {
    if (cause.all_of.size() != 2) continue;
    EXPECT_EQ(cause.all_of.front().among.size(), 2U) << to_text(explanation);
  }
  for (const TrailTest& test : explanation.trail) {
    const bool at_z = test.configuration.text("c0") == "z" && is_set(test.configuration, "c1");
    EXPECT_FALSE(at_z && test.why == "levels of c0");
  }
}

// Claim:  where one test in twenty stalls, and noise is 5 %, a walked plan names its causes, and nothing else.
// Method: 12 devices of ten settings, seeds 1 to 12, each with two causes of two; pairs in random rows.
TEST(Plan, StalledRowsBringNoCause) {
  const Campaign campaign = campaign_of(10);
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    statistics::Random random(seed);
    std::vector<Configuration> plan;
    for (int row = 0; row < 24; ++row) plan.push_back(random_row(campaign, random));
    const auto explanation = explained(campaign, plan, [&](const Configuration& configuration) {
      const auto both = [&](const char* a, const char* b) {
        return is_set(configuration, a) && is_set(configuration, b);
      };
      const double rate = both("c0", "c1") || both("c2", "c3") ? 60.0 : 100.0;
      const double stalled = random.below(20) == 0 ? 0.5 : 1.0;
      return rate * stalled * (1.0 + 0.1 * (random.uniform() - 0.5));
    });
    ASSERT_EQ(explanation.causes.size(), 2U) << "seed " << seed << "\n" << to_text(explanation);
    for (const Cause& cause : explanation.causes) EXPECT_EQ(cause.all_of.size(), 2U);
  }
}

}  // namespace
}  // namespace greynic::causal
