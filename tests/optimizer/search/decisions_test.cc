/// Plans of which one decision is made otherwise.

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <random>
#include <utility>

#include "search/searched.h"
#include "sized.h"

namespace greynic::optimizer {
namespace {

using chained::Grower;
using chained::kNowhere;

/// A plan as grown, with its decisions.
Grower grown(Searched& searched, double price) {
  chained::GrowOptions options{price, 1'000'000, 1'000'000, 60};
  options.kept_from = 0.02;
  const chained::Growing with = searched.growing();
  Grower grower(with.units, with.packets, with.packet_weight, with.decider, options);
  EXPECT_TRUE(grower.grow_whole(with.conflicts));
  return grower;
}

/// What a plan does with a packet: the unit that it meets, or kNowhere; and how many matchers it tries.
std::pair<std::uint32_t, std::size_t> walk(const chained::Plan& plan, const Word* packet,
                                           std::size_t words) {
  std::size_t tried = 0;
  std::uint32_t at = 0;
  while (at != kNowhere) {
    const chained::PlanTable& table = plan[at];
    const chained::PlanEntry* met = nullptr;
    for (const chained::PlanMatcher& matcher : table.matchers) {
      ++tried;
      for (std::size_t i = 0; i < matcher.entries.size() && met == nullptr; ++i) {
        if (matches(matcher.values[i], matcher.mask.data(), packet, words)) {
          met = &matcher.entries[i];
        }
      }
      if (met != nullptr) break;
    }
    if (met != nullptr && met->table == kNowhere) return {met->unit, tried};
    if (met == nullptr && table.exit != kNowhere) ++tried;
    at = met != nullptr ? met->table : table.exit;
  }
  return {kNowhere, tried};
}

/// Every packet does what its decider does, and the mean that they try is what the plan says.
void expect_right(const Searched& searched, const chained::Plan& plan) {
  const Entering& entered = searched.table.entered;
  const auto effect_of = [&](std::uint32_t unit) {
    return unit == kNowhere || unit == kNoRow ? kNowhere : searched.units.effect[unit];
  };
  double tried = 0.0;
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < entered.packets.size(); ++i) {
    const auto [unit, matchers] = walk(plan, entered.packets[i], entered.packets.words());
    if (effect_of(unit) != effect_of(searched.decider[i])) ++wrong;
    tried += entered.weight[i] * static_cast<double>(matchers);
  }
  EXPECT_EQ(wrong, 0U);
  EXPECT_NEAR(chained::tried_in(plan), tried, 1e-3 * tried);
}

// Claim:  a decision made again with the step that was taken gives the plan that was there.
// Oracle: that plan's entries, matchers and misses.
TEST(Decisions, MadeAgainTheSameChangeNothing) {
  for (const char* family : {"acl", "ipc", "fw"}) {
    Searched searched(made(family, sized(600, 300), 5));
    const Grower before = grown(searched, 1e-4);
    const Sum sum(before.grown().plan);
    ASSERT_GT(before.decisions().size(), 1U) << family;
    for (std::uint32_t i = 0; i < before.decisions().size(); ++i) {
      Grower again = before;
      const auto& step = before.decisions()[i].step;
      ASSERT_TRUE(again.regrow(i, step ? &*step : nullptr, 1e-4, 1e300)) << family << " " << i;
      EXPECT_TRUE(Sum(again.grown().plan) == sum) << family << " decision " << i;
      EXPECT_NEAR(again.cost_at(1e-4), before.cost_at(1e-4), 1e-9);
    }
  }
}

// Claim:  the first decision made again at another price gives the plan of that price.
// Oracle: the plan grown whole at it.
TEST(Decisions, AreMadeAtTheirPrice) {
  Searched searched(made("acl", sized(600, 300), 5));
  const Grower cheap = grown(searched, 1e-4);
  const Grower dear = grown(searched, 1e-3);
  ASSERT_FALSE(Sum(cheap.grown().plan) == Sum(dear.grown().plan));
  Grower again = cheap;
  ASSERT_TRUE(again.regrow(0, nullptr, 1e-3, 1e300));
  EXPECT_TRUE(Sum(again.grown().plan) == Sum(dear.grown().plan));
}

// Claim:  after any decisions made otherwise, one upon the other, every packet still does what it did, and the plan
//         tells what packets try.
// Oracle: a walk of each packet, matcher by matcher.
TEST(Decisions, MadeOtherwiseLeaveThePacketsAsTheyWere) {
  std::size_t changed = 0;
  for (const char* family : {"acl", "ipc", "fw"}) {
    Searched searched(made(family, sized(400, 200), 6));
    std::mt19937_64 random(7);
    auto plan = std::make_unique<Grower>(grown(searched, 1e-4));
    expect_right(searched, plan->grown().plan);
    for (int round = 0; round < 30; ++round) {
      const auto number = static_cast<std::uint32_t>(random() % plan->decisions().size());
      if (plan->decisions()[number].gone) continue;
      const auto steps = plan->steps_at(number, {5, 8, 2.0});
      if (steps.empty()) continue;
      auto other = std::make_unique<Grower>(*plan);
      const double price = round % 3 == 0 ? 3e-4 : 1e-4;
      if (!other->regrow(number, &steps[random() % steps.size()], price, 1e300)) continue;
      if (!(Sum(other->grown().plan) == Sum(plan->grown().plan))) ++changed;
      expect_right(searched, other->grown().plan);
      plan = std::move(other);
    }
  }
  EXPECT_GT(changed, 10U);
}

// Claim:  a plan that comes to cost more than it may is given up, and of those that come to cost a tenth less than they may
//         one in twenty at most.
// Oracle: what it costs when it may cost anything.
TEST(Decisions, AreGivenUpWhereTheyCostMoreThanTheyMay) {
  constexpr double kPrice = 1e-4;
  std::size_t compared = 0;
  std::size_t given_up = 0;
  for (const char* family : {"acl", "ipc", "fw"}) {
    Searched searched(made(family, 300, 6));
    const Grower plan = grown(searched, kPrice);
    for (std::uint32_t i = 0; i < plan.decisions().size(); ++i) {
      for (const chained::Step& step : plan.steps_at(i, {5, 8, 2.0})) {
        Grower freely = plan;
        if (!freely.regrow(i, &step, kPrice, 1e300)) continue;
        const double cost = freely.cost_at(kPrice);
        Grower bound = plan;
        EXPECT_FALSE(bound.regrow(i, &step, kPrice, 0.99 * cost)) << family << " decision " << i;
        Grower loose = plan;
        const bool made = loose.regrow(i, &step, kPrice, 1.1 * cost).has_value();
        if (made) EXPECT_NEAR(loose.cost_at(kPrice), cost, 1e-9);
        given_up += made ? 0 : 1;
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 100U);
  EXPECT_LT(20 * given_up, compared);
}

}  // namespace
}  // namespace greynic::optimizer
