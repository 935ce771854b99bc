/// Explainer, where no run and no witness is there: a plan is walked until something is slow.

#include <algorithm>

#include "explainer.h"
#include "steps/told_by_clear.h"

namespace greynic::causal {
namespace {

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

/// One test for each configuration of the plan that no known cause explains; a suspicion is settled
/// and explained at once.
Result<void> Explainer::walk_plan() {
  auto plan = laboratory_.plan();
  if (!plan) return pass_on(plan);
  const double error =
      (1.0 - options_.confidence) / std::max<double>(1.0, static_cast<double>(plan->size()));
  const ToldByClear told(campaign_);
  walks_plan_ = true;
  for (const Configuration& configuration : *plan) {
    if (configuration == baseline_ || is_explained(configuration)) continue;
    if (told.tells(session_, configuration)) continue;
    const Id id = session_.id_of(configuration);
    if (auto done = session_.measure({&id, 1}, "looking for a wall"); !done) return done;
    if (session_.evidence(id) < 0.0 && !session_.refused(id)) {
      sort_out(id, Verdict::kClear);
      continue;
    }
    auto verdict = session_.decide(id, kWallInPlan, error, "is it a wall?");
    if (!verdict) return pass_on(verdict);
    if (*verdict != Verdict::kWall) {
      sort_out(id, *verdict);
      continue;
    }
    auto check = check_wall(session_, id);
    if (!check) return pass_on(check);
    if (auto done = explain_checked(id, *check); !done) return done;
  }
  return ask_what_waited();
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
