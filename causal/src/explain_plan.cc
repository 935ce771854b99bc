/// Explainer, where no run and no witness is there: a plan is walked until something is slow.

#include <algorithm>

#include "explainer.h"
#include "steps/plan_rows.h"

namespace greynic::causal {
namespace {

constexpr double kErrorOfLikely = 0.3;  // of a wall: the search there shows it, if there is none

bool have_same_terms(const CausesOfWall& a, const CausesOfWall& b) {
  const auto same = [](const FoundCause& one, const FoundCause& other) {
    return one.terms == other.terms && one.absent == other.absent;
  };
  return std::ranges::equal(a.causes, b.causes, same);
}

}  // namespace

bool Explainer::is_explained(const Configuration& configuration) const {
  return std::any_of(explanation_.causes.begin(), explanation_.causes.end(),
                     [&](const Cause& cause) { return cause.holds(configuration); });
}

/// One test for each row that no known cause explains and that clear tests have not told yet; a suspicion is
/// settled and explained at once.
Result<void> Explainer::walk_plan() {
  auto plan = laboratory_.plan();
  if (!plan) return pass_on(plan);
  const double error =
      (1.0 - options_.confidence) / std::max<double>(1.0, static_cast<double>(plan->size()));
  std::erase(*plan, baseline_);
  if (plan->empty()) return {};
  PlanRows rows(campaign_, std::move(*plan));
  rows.had(baseline_);
  const auto explained = [&](const Configuration& row) { return is_explained(row); };
  const auto allowed = [&](const Configuration& row) {
    return !laboratory_.allows || laboratory_.allows(row);
  };
  walks_plan_ = true;
  while (const auto row = rows.next(session_, explained, allowed)) {
    if (auto done = judge_row(*row, error); !done) return done;
    if (!is_explained(*row)) rows.had(*row);
  }
  return ask_what_waited();
}

Result<void> Explainer::judge_row(const Configuration& row, double error) {
  const Id id = session_.id_of(row);
  if (auto done = session_.measure({&id, 1}, "looking for a wall"); !done) return done;
  if (session_.evidence(id) < 0.0 && !session_.refused(id)) {
    sort_out(id, Verdict::kClear);
    return {};
  }
  // Whether the device stays slow after a wall, and how large its noise is, is asked at the first one. One that
  // gives no value tells nothing of noise, so its second failure is enough for that check.
  const bool no_value = session_.failures_of(id) > 0 && session_.scores_of(id).empty();
  const double of_first = no_value ? std::max(error, 1.0 - options_.confidence) : error;
  const double of_wall = knows_walls_ ? std::max(error, kErrorOfLikely) : of_first;
  auto verdict = session_.decide(id, kWallInPlan, error, "is it a wall?", of_wall);
  if (!verdict) return pass_on(verdict);
  if (*verdict != Verdict::kWall) {
    sort_out(id, *verdict);
    return {};
  }
  if (!knows_walls_) {
    knows_walls_ = true;
    auto check = check_wall(session_, id);
    if (!check) return pass_on(check);
    return explain_checked(id, *check);
  }
  error_of_row_ = error;
  return explain_checked(id,
                         {.verdict = Verdict::kWall, .chance = 1.0, .sure = false, .notes = {}});
}

/// By all that was learned of noise and depths.
Result<WallCheck> Explainer::settle_row(Id id) {
  auto verdict = session_.decide(id, kWallInPlan, *error_of_row_, "is it a wall?");
  if (!verdict) return pass_on(verdict);
  return WallCheck{.verdict = *verdict, .chance = 1.0, .sure = true, .notes = {}};
}

/// Rows of the plan answer most of what a search wants to know of settings that heal, so that waits until they
/// were tested.
Result<void> Explainer::ask_what_waited() {
  walks_plan_ = false;
  for (; !waiting_.empty(); waiting_.pop_back()) {  // the last ones first: their causes stand last
    Waiting& waiting = waiting_.back();
    auto found = WitnessSearch(session_, waiting.settings, /*patient=*/true).causes(waiting.found);
    if (!found) return pass_on(found);
    note_hidden(waiting.settings, *found);
    if (have_same_terms(*found, waiting.found)) {
      all_complete_ = all_complete_ && found->complete;
      continue;
    }
    const auto first = explanation_.causes.begin() + static_cast<std::ptrdiff_t>(waiting.first);
    explanation_.causes.erase(first, first + std::ssize(waiting.found.causes));
    if (auto told = tell(waiting.wall, waiting.settings, *found); !told) return told;
  }
  return {};
}

}  // namespace greynic::causal
