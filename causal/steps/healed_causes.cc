/// WitnessSearch, what settings of the wall heal: causes that hold more than they need for it, and causes
/// that do not show in the wall.

#include <algorithm>
#include <cmath>

#include "hidden_pairs.h"

namespace greynic::causal {
namespace {

constexpr double kSharedNeedless = 0.1;   // odds that a term which two causes share is none of one
constexpr double kHealsBefore = 0.02;     // odds that a setting of the wall heals what others cause
constexpr std::size_t kFewSettings = 10;  // each may be asked by itself: several may heal one
constexpr double kMostLeft = 0.05;        // of all pairs

/// What the search left out brought no wall beside other settings of the wall, and one of these may have
/// healed it: so a cause is asked without its terms one by one, all else as in the baseline. Without the
/// first that was found there were most other settings; without the last, it mostly was a step of a row
/// already. Of many terms, only these two are left out unless something is known to heal.
Set to_leave_out(const FoundCause& cause, bool each) {
  if (cause.terms.count() < 2) return Set();
  if (each || cause.terms.count() <= kFewTerms) return cause.terms;
  return (cause.classes.front() | cause.classes.back()) & cause.terms;
}

}  // namespace

/// The least allowed set with all other terms; nothing where that needs this one too.
std::optional<Set> WitnessSearch::without_term(const FoundCause& cause, std::size_t term) {
  Set fewer = cause.terms;
  fewer.reset(term);
  const Set closed = settings_.closure(fewer, cause.closed, settings_.grow({}, cause.closed));
  if (closed.test(term) || !settings_.id_of(closed)) return std::nullopt;
  return closed;
}

/// Some setting may heal what the cause brings without a term: no clear configuration has the other terms
/// and that setting as in the baseline.
bool WitnessSearch::may_be_healed_without(const FoundCause& cause, std::size_t term) {
  const Set rest = Set(cause.terms).reset(term);
  Set may = settings_.all() & ~cause.terms;
  for (const Settings::Sides& clear : settings_.clear(kSurelyClear)) {
    if (holds(clear.as_wall, rest)) may &= ~clear.as_baseline;
  }
  return may.any();
}

/// True when a term was dropped.
Result<bool> WitnessSearch::shrink(FoundCause& cause, const Set& shared, const Set& left_out) {
  bool dropped = false;
  for (std::size_t i = 0; i < settings_.size(); ++i) {
    if (!shared.test(i) && !left_out.test(i)) continue;
    if (!may_be_healed_without(cause, i)) continue;
    const auto closed = cause.terms.count() < 2 ? std::nullopt : without_term(cause, i);
    if (!closed) continue;
    const Id id = settings_.known_id(*closed);
    auto verdict =
        shared.test(i)
            ? session_.decide(id, kSharedNeedless, error_of(8), "a shared term, left out")
            : session_.decide(id, kHealsBefore, kStepError, "the terms but one");
    if (!verdict) return pass_on(verdict);
    if (*verdict != Verdict::kWall) continue;
    cause.terms.reset(i);
    cause.closed = *closed;
    std::erase_if(cause.classes, [&](const Set& together) { return together.test(i); });
    dropped = true;
  }
  return dropped;
}

/// Some other setting of the wall may have healed a cause where the row that found it left a term out, so
/// that the term is none. A term that two causes share may belong to one of them only: where healing one
/// wakes the other, that row had more of the wall than it needs. True when a term was dropped.
Result<bool> WitnessSearch::drop_needless(CausesOfWall& found) {
  std::vector<FoundCause> causes = found.causes;
  const bool each = settings_.size() <= kFewSettings || a_cause_was_healed(found);
  std::vector<Id> parts;
  for (const FoundCause& cause : causes) {
    const Set left_out = to_leave_out(cause, each);
    for (std::size_t i = 0; i < settings_.size(); ++i) {
      const bool is_asked = left_out.test(i) && may_be_healed_without(cause, i);
      const auto closed = is_asked ? without_term(cause, i) : std::nullopt;
      if (closed) parts.push_back(settings_.known_id(*closed));
    }
  }
  auto asked = session_.decide(parts, kHealsBefore, kStepError, "the terms but one");
  if (!asked) return pass_on(asked);
  bool any = false;
  for (FoundCause& cause : causes) {
    Set shared;
    for (const FoundCause& other : causes) {
      if (&other != &cause) shared |= cause.terms & other.terms;
    }
    auto dropped = shrink(cause, shared, to_leave_out(cause, each));
    if (!dropped) return dropped;
    any = any || *dropped;
  }
  if (!any) return false;
  found.causes.clear();
  for (FoundCause& cause : causes) {
    if (auto done = add(found, std::move(cause)); !done) return pass_on(done);
  }
  return true;
}

/// A cause holds in a configuration that is clear, so some setting there heals it.
bool WitnessSearch::a_cause_was_healed(const CausesOfWall& found) const {
  const double sure = std::log(1.0 / error_of(8) - 1.0);
  for (const auto& [set, id] : settings_.known()) {
    if (session_.tests_of(id) == 0 || session_.evidence(id) > -sure) continue;
    for (const FoundCause& cause : found.causes) {
      if (holds(set, cause.terms) && (set & cause.absent).none()) return true;
    }
  }
  return false;
}

/// Sets of the wall's settings, to be asked with all else as in the baseline. Of many settings, that is worth
/// its tests where it is asked for, or where something is known to heal.
std::vector<Set> WitnessSearch::may_hide_causes(const CausesOfWall& found) {
  const HiddenPairs pairs = pairs_seen(settings_, found.causes);
  if (settings_.size() > kFewSettings) {
    const bool is_asked = session_.options().hidden || a_cause_was_healed(found);
    return is_asked ? pairs.questions(kMostLeft) : std::vector<Set>();
  }
  Set terms;
  for (const FoundCause& cause : found.causes) terms |= cause.terms;
  std::vector<Set> alone;
  for (std::size_t i = 0; i < settings_.size(); ++i) {
    if (!terms.test(i) && pairs.may_be_healed(i)) alone.push_back(Set().set(i));
  }
  return alone;
}

/// Causes that others of the wall's settings heal, so that healing the known causes does not show them.
/// True when one was found.
Result<bool> WitnessSearch::find_hidden(CausesOfWall& found) {
  std::vector<Set> sets;
  std::vector<Id> ids;
  for (const Set& wanted : may_hide_causes(found)) {
    const Set set = settings_.without(settings_.all() & ~wanted);
    const auto id = set.any() ? settings_.id_of(set) : std::nullopt;
    if (!id) continue;
    sets.push_back(set);
    ids.push_back(*id);
  }
  std::vector<Verdict> verdicts;
  {
    const JudgingByBound judging(session_);
    auto told = session_.decide(ids, kHealsBefore, kStepError, "settings without a cause");
    if (!told) return pass_on(told);
    verdicts = std::move(*told);
  }
  const std::size_t before = found.causes.size();
  for (std::size_t i = 0; i < sets.size(); ++i) {
    if (verdicts[i] != Verdict::kWall) continue;
    auto cause = cause_within(sets[i]);
    if (!cause) return pass_on(cause);
    if (!*cause) continue;
    if (auto done = add(found, std::move(**cause)); !done) return pass_on(done);
  }
  return found.causes.size() > before;
}

}  // namespace greynic::causal
