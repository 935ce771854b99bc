#include "src/chained/plan_search.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "src/ranged/matchers.h"
#include "src/spend/spend.h"

namespace greynic::optimizer::chained {
namespace {

constexpr double kDearer = 2.5;
constexpr double kSpendingSaves = 1.2;  // a plan that tries as many times more may get better
constexpr double kSpendingSavesChains = 3.0;
constexpr std::size_t kMostJumps = 60;  // devices and core's look_up follow 64
constexpr double kNoBound = std::numeric_limits<double>::infinity();

}  // namespace

PlanSearch::PlanSearch(const Growing& growing, PlanLimits limits)
    : growing_(growing),
      limits_(std::move(limits)),
      least_price_(std::max(limits_.least_price, 1.0 / static_cast<double>(limits_.most_rules))) {}

bool PlanSearch::with_filters() const {
  return without_.plan.empty() || (!filtered_.plan.empty() && filtered_.tried <= without_.tried);
}

FoundPlans PlanSearch::found() {
  if (filtered_.plan.empty() && without_.plan.empty()) {
    if (chain_.plan.empty()) {
      chain_ = grow({price_, 0, static_cast<std::size_t>(-1), 0, kNoBound, false}).plan;
    }
    return {chain_.plan, without_.plan, first_price_};
  }
  const bool with = with_filters();
  return {(with ? filtered_ : without_).plan, (with ? without_ : filtered_).plan, first_price_};
}

Grown PlanSearch::grow(const GrowOptions& options) {
  Grown grown = grow_plan(growing_.units, growing_.conflicts, growing_.packets,
                          growing_.packet_weight, growing_.decider, options);
  work_ += grown.work;
  return grown;
}

GrowOptions PlanSearch::options_at(double price) const {
  GrowOptions options{price, limits_.most_tables, limits_.most_rules, kMostJumps};
  options.chains_as_made = limits_.chains_as_made;
  options.filters = limits_.filters;
  return options;
}
void PlanSearch::begin() {
  price_ = least_price_;
  for (int round = 0; round < limits_.prices && (filtered_.plan.empty() || without_.plan.empty());
       ++round, price_ *= kDearer) {
    GrowOptions options = options_at(price_);
    if (filtered_.plan.empty()) {
      options.without_too = without_.plan.empty();
      Grown grown = grow(options);
      const bool complete = !grown.plan.plan.empty();
      fits(std::move(grown.plan), price_, filtered_);
      if (!grown.filtered && !filtered_.plan.empty()) return;  // without filters it is the same
      if (without_.plan.empty()) fits(std::move(grown.without), price_, without_);
      if (complete || !grown.filtered) continue;
    }
    if (!without_.plan.empty()) continue;
    options.filters = false;
    fits(grow(options).plan, price_, without_);
  }
}

/// Keeps the plan when it fits and is better; whether it fits.
bool PlanSearch::fits(GrownPlan grown, double price, Kept& kept) {
  const std::size_t entries = entries_of(grown.plan);
  if (grown.plan.empty() || entries > limits_.most_rules ||
      grown.plan.size() > limits_.most_tables + 1) {
    return false;
  }
  const bool again = !grown.quick.empty() || limits_.keeps_to || may_range();
  Plan plan = again ? grown.plan : std::move(grown.plan);
  spend::spend(plan, limits_.most_rules - entries, growing_.units.effect, limits_.uniting);
  if (limits_.keeps_to && !limits_.keeps_to(plan)) {
    if (!limits_.keeps_to(grown.plan)) return false;
    plan = grown.plan;
  }
  if (longest_way(plan) > kMostJumps) return false;
  if (first_price_ == 0.0) first_price_ = price;
  const double tried = tried_in(plan);
  if (kept.plan.empty() || tried < kept.tried) {
    kept = {std::move(plan), std::move(grown), price, tried};
  }
  return true;
}

void PlanSearch::improve() {
  const bool filters = with_filters();
  Kept& best = filters ? filtered_ : without_;
  if (best.plan.empty()) {
    static_cast<void>(found());
    make_chains_again(chain_);
    return;
  }
  constexpr std::size_t kCheapest = 3;
  constexpr std::size_t kCuts = 8;
  constexpr std::size_t kMostWork = 3'000'000;  // several times what 10,000 rules take
  GrowOptions options = options_at(best.price);
  options.filters = filters && limits_.filters;
  const auto attempt = [&](double price, double saved = kSpendingSaves) {
    options.entry_price = price;
    options.most_tried = best.tried * saved;
    return fits(grow(options).plan, price, best);
  };
  const std::vector<FirstStep> steps =
      first_steps(growing_.units, growing_.conflicts, growing_.packets, growing_.packet_weight,
                  growing_.decider, best.price, kCheapest, kCuts);
  const std::optional<FirstStep> begun = best.unspent.begun;
  const FirstStep* taken = nullptr;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (begun == steps[i]) continue;
    if (work_ > (i <= kCheapest ? kMostWork : kMostWork / 3)) break;
    const double before = best.tried;
    const double price = best.price;
    options.first = &steps[i];
    if (!attempt(price)) attempt(price * kDearer);
    if (best.tried < before) taken = &steps[i];
  }
  options.first = taken;
  const double price = best.price;
  for (const double dearer : {std::sqrt(kDearer), kDearer}) {
    if (work_ <= kMostWork) attempt(price * dearer);
  }
  const bool lowest = limits_.least_price == 0.0 && price <= least_price_;
  attempt(price / (lowest ? kDearer : std::sqrt(kDearer)));
  options.most_tables = 0;  // one chain, for which all is spent
  attempt(price, kSpendingSavesChains);
  make_chains_with_care(filtered_);
  make_chains_with_care(without_);
}

void PlanSearch::make_chains_with_care(Kept& kept) {
  GrownPlan again = std::exchange(kept.unspent, {});
  Plan bare = may_range() ? again.plan : Plan();
  if (make_chains_again(again)) fits(std::move(again), kept.price, kept);
  if (!kept.unspent.plan.empty()) bare = std::move(kept.unspent.plan);
  kept.bare = std::move(bare);
  kept.unspent = {};
}

bool PlanSearch::may_range() const {
  return std::ranges::any_of(growing_.units.may_range, [](bool may) { return may; });
}

Plan PlanSearch::best_with_ranges() const {
  const Kept& best = with_filters() ? filtered_ : without_;
  if (best.bare.empty()) return {};
  Plan plan = best.bare;
  ranged::allow_ranges(growing_.units, plan);
  spend::spend(plan, limits_.most_rules - entries_of(plan), growing_.units.effect, limits_.uniting);
  if (longest_way(plan) > kMostJumps || (limits_.keeps_to && !limits_.keeps_to(plan))) return {};
  return plan;
}

}  // namespace greynic::optimizer::chained
