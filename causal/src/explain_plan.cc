/// Explainer, where no run and no witness is there: a plan is walked until something is slow.

#include <algorithm>

#include "explainer.h"
#include "steps/plan_rows.h"
#include "stickiness.h"

namespace greynic::causal {
namespace {

constexpr double kSeemsWall = 2.2;      // log odds of what may have slowed the device
constexpr std::size_t kMostDoubts = 3;  // tests of what is hardly that
constexpr std::ptrdiff_t kRowsThatDoubt =
    1;                                 // faster than the baseline's first test, less the others
constexpr std::size_t kRowsAlike = 3;  // all faster than it,
constexpr double kFarOff = 3.0;        // by so many times what they differ by
constexpr int kAgree = 4;              // tests of the baseline: a device may be slow for three
constexpr int kMostTries = 12;
constexpr double kUnlike = 0.5;         // two scores of a device that is as slow as it was, at most
constexpr double kErrorOfLikely = 0.3;  // of a wall: the search there shows it, if there is none

bool have_same_terms(const CausesOfWall& a, const CausesOfWall& b) {
  const auto same = [](const FoundCause& one, const FoundCause& other) {
    return one.terms == other.terms && one.absent == other.absent;
  };
  return std::ranges::equal(a.causes, b.causes, same);
}

/// The baseline's first test is slower than most rows by the bound, or than all of them by far more than they
/// differ: then by how much another test of it must be faster to show that it was no usual one.
std::optional<double> margin_if_slower(double first, const std::vector<double>& rows,
                                       double bound) {
  std::ptrdiff_t more = 0;
  for (const double one : rows) more += one < first - bound ? 1 : -1;
  if (more >= kRowsThatDoubt) return bound;
  if (rows.size() < kRowsAlike) return std::nullopt;
  const auto [fastest, slowest] = std::minmax_element(rows.begin(), rows.end());
  const double gap = first - *slowest;
  if (gap <= kFarOff * (*slowest - *fastest)) return std::nullopt;
  return std::min(bound, gap / 2.0);
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
  std::vector<Configuration> judged;
  while (const auto row = rows.next(session_, explained, allowed)) {
    if (auto done = judge_row(*row, error); !done) return done;
    judged.push_back(*row);
    auto was_slow = baseline_was_slow(judged);
    if (!was_slow) return pass_on(was_slow);
    if (*was_slow) {
      for (const Configuration& one : judged) {
        if (auto done = judge_row(one, error); !done) return done;
      }
    }
    if (!is_explained(*row)) rows.had(*row);
  }
  return ask_what_waited();
}

/// The first test of the baseline may have stalled: then rows are faster, and no wall shows. All that was tested
/// says nothing then, for a wall that did not show may have left the device slow.
Result<bool> Explainer::baseline_was_slow(std::span<const Configuration> judged) {
  const Id baseline = session_.baseline();
  if (session_.tests_of(baseline) != 1 || !is_relative(campaign_.wall)) return false;
  const auto score = [&](std::size_t place) { return session_.reading(place).score; };
  const std::size_t of_first = session_.places_of(baseline).front();
  const double first = score(of_first);
  std::vector<double> rows;
  for (const Configuration& row : judged) {
    for (const double one : session_.scores_of(session_.id_of(row))) rows.push_back(one);
  }
  const auto margin = margin_if_slower(first, rows, session_.model().scale().bound(0.0));
  if (!margin) return false;
  double fastest = first;
  bool was_slow = false;
  for (int agree = 0, tries = 0; agree < kAgree && tries < kMostTries; ++tries) {
    if (auto done = session_.measure({&baseline, 1}, "the baseline"); !done) return pass_on(done);
    const double last = score(session_.last());
    if (!was_slow && last >= first - *margin) return false;
    const double unlike = was_slow ? std::max(*margin, kUnlike) : *margin;
    agree = last < fastest - unlike ? 1 : last > fastest + unlike ? 0 : agree + 1;
    fastest = std::min(fastest, last);
    was_slow = true;
  }
  for (std::size_t place = session_.first_ordered(); place <= session_.last(); ++place) {
    const bool usual = score(place) <= fastest + std::max(*margin, kUnlike) && place > of_first;
    if (!usual || !session_.reading(place).of_baseline) session_.ignore({&place, 1});
  }
  session_.refit();
  clear_.clear();
  explanation_.configurations = 0;
  return true;
}

/// Stalls show in a second test. What is slow again may be a wall, and may have slowed the device: that is seen
/// before the baseline is tested for anything else.
Result<void> Explainer::look_at_first_wall(Id id) {
  do {
    if (auto done = session_.measure({&id, 1}, "is it a wall?"); !done) return done;
    if (session_.evidence(id) < 0.0 || !session_.last_is_slow()) return {};
  } while (session_.evidence(id) < kSeemsWall && session_.tests_of(id) < kMostDoubts);
  return Stickiness(session_, id, explanation_.notes).look_after_wall();
}

Result<void> Explainer::judge_row(const Configuration& row, double error) {
  const Id id = session_.id_of(row);
  if (auto done = session_.measure({&id, 1}, "looking for a wall"); !done) return done;
  if (session_.evidence(id) < 0.0 && !session_.refused(id)) {
    sort_out(id, Verdict::kClear);
    return {};
  }
  if (!knows_walls_) {
    if (auto done = look_at_first_wall(id); !done) return done;
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
