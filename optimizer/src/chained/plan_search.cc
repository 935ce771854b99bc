#include "src/chained/plan_search.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "src/ranged/matchers.h"
#include "src/spend/spend.h"

namespace greynic::optimizer::chained {
namespace {

constexpr double kDearer = 2.5;
constexpr std::size_t kMostWork = 3'000'000;  // several times what 10,000 rules take
constexpr double kShare = 0.01;         // of the packets: decisions on fewer are not worth the time
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
  Kept& best = with_filters() ? filtered_ : without_;
  if (best.plan.empty()) return;
  if (work_ <= kMostWork) {
    GrowOptions options = options_at(best.price);
    options.filters = options.filters && &best == &filtered_;
    const auto& weights = growing_.packet_weight;
    options.kept_from = kShare * std::accumulate(weights.begin(), weights.end(), 0.0);
    grower_ = std::make_unique<Grower>(growing_.units, growing_.packets, growing_.packet_weight,
                                       growing_.decider, options);
    const bool whole = grower_->grow_whole(growing_.conflicts);
    work_ += grower_->work();
    if (!whole) grower_.reset();
  }
  if (grower_ && !grower_->decisions().empty()) begin_otherwise(best);
  constexpr double kChainsSave = 3.0;
  GrowOptions options = options_at(best.price);
  options.most_tables = 0;  // one chain, for which all is spent
  options.most_cost =
      kChainsSave * best.tried + best.price * static_cast<double>(limits_.most_rules);
  if (fits(grow(options).plan, best.price, best) && best.plan.size() == 1) grower_.reset();
}

/// The first step, at the price at hand and at others. Where the price changes, all are tried at the new one.
void PlanSearch::begin_otherwise(Kept& best) {
  constexpr StepsAt kFirst{5, 8, 1.25};
  constexpr double kSlack = 1.2;
  constexpr int kRounds = 2;
  std::uint32_t number = 0;
  double tried_at = 0.0;
  const std::vector<Step> steps = grower_->steps_at(number, kFirst);
  for (int round = 0; round < kRounds && tried_at != best.price; ++round) {
    tried_at = best.price;
    for (const Step& step : steps) {
      if (work_ > kMostWork) break;
      if (grower_->decisions()[number].step == step) continue;
      const double price = best.price;
      decide(number, &step, price, kSlack, best);
    }
    const double price = best.price;
    const std::optional<Step> taken = grower_->decisions()[number].step;
    const Step* const step = taken ? &*taken : nullptr;
    for (const double dearer : {std::sqrt(kDearer), kDearer}) {
      if (work_ <= kMostWork) decide(number, step, price * dearer, kSlack, best);
    }
    const bool lowest = limits_.least_price == 0.0 && price <= least_price_;
    decide(number, step, price / (lowest ? kDearer : std::sqrt(kDearer)), kSlack, best);
  }
}

void PlanSearch::refine() {
  Kept& best = with_filters() ? filtered_ : without_;
  if (best.plan.empty()) {
    static_cast<void>(found());
    make_chains_again(chain_);
    return;
  }
  if (grower_) decide_otherwise(best);
  grower_.reset();
  make_chains_with_care(filtered_);
  make_chains_with_care(without_);
}

/// All decisions but the first, those first behind which most is tried.
void PlanSearch::decide_otherwise(Kept& best) {
  constexpr StepsAt kLater{2, 5, 1.2};
  constexpr double kLeast = 0.015;  // of what is tried
  constexpr double kSlack = 1.05;
  const std::size_t most_work = work_ + kMostWork / 2;
  std::vector<bool> done;
  while (work_ <= most_work) {
    const std::vector<double> tried = grower_->tried_behind();
    done.resize(tried.size(), false);
    std::uint32_t number = kNowhere;
    for (std::uint32_t i = 0; i < tried.size(); ++i) {
      if (done[i] || grower_->decisions()[i].above == kNowhere) continue;
      if (number == kNowhere || tried[i] > tried[number]) number = i;
    }
    if (number == kNowhere || tried[number] < kLeast * best.tried) return;
    for (const Step& step : grower_->steps_at(number, kLater)) {
      if (grower_->decisions()[number].step == step) continue;
      decide(number, &step, best.price, kSlack, best);
      if (work_ > most_work) return;
    }
    done.resize(grower_->decisions().size(), false);
    done[number] = true;
  }
}

/// Whether a plan comes of it that fits. When it is better, it is kept, and `number` is that of the decision made
/// anew. Gives up on a plan that costs `slack` times as much as grown: what is spent on it hardly makes that good.
bool PlanSearch::decide(std::uint32_t& number, const Step* step, double price, double slack,
                        Kept& best) {
  auto other = std::make_unique<Grower>(*grower_);
  const auto again = other->regrow(number, step, price, slack * grower_->cost_at(price));
  work_ += other->work() - grower_->work();
  const double before = best.tried;
  if (!again || !fits(other->grown(), price, best)) return false;
  if (best.tried < before) {
    number = *again;
    grower_ = std::move(other);
  }
  return true;
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
