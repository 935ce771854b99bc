/// Searches for plans: what they find, and what they keep to.

#include <gtest/gtest.h>

#include <limits>
#include <utility>

#include "search/searched.h"
#include "sized.h"
#include "src/spend/spend.h"
#include "src/table_planner.h"

namespace greynic::optimizer {
namespace {

// Claim:  other first steps and lower prices are taken where they are better, and so are other steps behind them:
//         nothing that is found tries more matchers than the first plan that fits, and on some set it tries less. What
//         a plan is said to try is what packets try, after copies were made, too.
// Oracle: plans grown at rising prices until one fits; core's walk of every packet.
TEST(PlanSearch, IsNeverWorseThanTheFirstPlanThatFits) {
  int gained = 0;
  int refined = 0;
  for (const auto& [family, seed] :
       {std::pair("acl", 4U), std::pair("acl", 5U), std::pair("ipc", 4U), std::pair("ipc", 5U),
        std::pair("fw", 4U)}) {
    const RuleSet rules = made(family, sized(500, 300), seed);
    Searched searched(rules);
    const std::size_t most = 2 * rules.rules.size();
    chained::PlanSearch plans(searched.growing(), {most, most});
    plans.begin();
    plans.improve();
    const double improved = chained::tried_in(plans.found().best);
    plans.refine();
    const chained::FoundPlans found = plans.found();
    double first = std::numeric_limits<double>::infinity();
    for (double price = 1.0 / static_cast<double>(most); first > 1e300; price *= 2.5) {
      for (const bool filters : {true, false}) {
        chained::GrowOptions options{price, most, most, 60};
        options.filters = filters;
        chained::Plan plan = searched.grow(options).plan.plan;
        if (plan.empty() || chained::entries_of(plan) > most) continue;
        spend::spend(plan, most - chained::entries_of(plan), searched.units.effect,
                     spend::Uniting::kAny);
        first = std::min(first, chained::tried_in(plan));
      }
    }
    ASSERT_FALSE(found.best.empty());
    EXPECT_LE(chained::tried_in(found.best), first * 1.000001) << family;
    EXPECT_LE(chained::tried_in(found.best), improved) << family;
    if (improved < 0.99 * first) ++gained;
    if (chained::tried_in(found.best) < 0.99 * improved) ++refined;

    const Table& table = searched.table;
    const TableRoom room = room_for(rules);
    const TablePlanner planner(rules, table.problem, table.entered, table.traffic, table.decider,
                               room);
    chained::TableSearch search(rules, table.problem, table.entered.packets, table.entered.weight,
                                table.decider);
    auto laid_out = search.lay_out({0, 1, most, most});
    EXPECT_NEAR(chained::tried_in(found.best), planner.costed(std::move(laid_out.tables)).cost,
                0.03 * first)
        << family;
  }
  EXPECT_GT(gained, 0) << "choose other seeds: on these sets the first plan is the best";
  EXPECT_GT(refined, 0) << "choose other seeds: on these sets no later step is better";
}

// Claim:  a plan that keeps to the limits of a device is not lost because what is spent on it does not.
// Oracle: counted entries: nine tenths of the room are allowed, and spending takes all of it.
TEST(PlanSearch, KeepsAPlanAsGrownWhereWhatIsSpentExceedsALimit) {
  const RuleSet rules = made("acl", 300, 4);
  Searched searched(rules);
  const std::size_t most = 2 * rules.rules.size();
  chained::PlanLimits limits{most, most};
  limits.prices = 16;
  limits.keeps_to = [&](const chained::Plan& plan) {
    return chained::entries_of(plan) * 10 <= most * 9;
  };
  chained::PlanSearch plans(searched.growing(), limits);
  plans.begin();
  plans.improve();
  plans.refine();
  const chained::FoundPlans found = plans.found();
  EXPECT_GT(found.best.size(), 1U);
  EXPECT_TRUE(limits.keeps_to(found.best));
}

// Claim:  chains of the plans that a search ends with are made with all care, and so is the one chain that is left
//         where nothing fits.
// Oracle: what packets try in the same chain as it is while plans are compared.
TEST(PlanSearch, EndsWithChainsMadeWithCare) {
  const RuleSet rules = made("acl", 1000, 5);
  Searched searched(rules);
  for (const std::size_t most : {2 * rules.rules.size(), rules.rules.size() / 2}) {
    chained::PlanSearch plans(searched.growing(), {most, 0});
    plans.begin();
    const double quickly = chained::tried_in(plans.found().best);
    plans.improve();
    plans.refine();
    EXPECT_EQ(plans.found().best.size(), 1U);
    EXPECT_LT(chained::tried_in(plans.found().best), quickly) << most << " entries";
  }
}

// Claim:  a search that may put no filters in has none in its plans, neither at first nor once improved.
// Oracle: the same search, which has some where it may.
TEST(PlanSearch, PutsNoFiltersInWhereItMayNot) {
  const RuleSet rules = made("acl", 1000, 5);
  Searched searched(rules);
  for (const bool filters : {true, false}) {
    chained::PlanLimits limits{2 * rules.rules.size(), 2 * rules.rules.size()};
    limits.filters = filters;
    chained::PlanSearch plans(searched.growing(), limits);
    const auto some_has = [&] {
      const auto has = [](const chained::PlanTable& table) {
        return std::ranges::any_of(table.matchers, [](const chained::PlanMatcher& matcher) {
          return sends_all_to_one(matcher.entries, [](const auto& entry) { return entry.table; });
        });
      };
      const chained::FoundPlans found = plans.found();
      bool some = false;
      for (const chained::Plan* plan : {&found.best, &found.other}) {
        for (std::size_t table = 0; table < plan->size(); ++table) some |= has((*plan)[table]);
      }
      return some;
    };
    plans.begin();
    EXPECT_EQ(some_has(), filters);
    plans.improve();
    EXPECT_EQ(some_has(), filters);
    plans.refine();
    EXPECT_EQ(some_has(), filters);
  }
}

}  // namespace
}  // namespace greynic::optimizer
