#include "witness_search.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "group_search.h"
#include "likely_terms.h"
#include "src/stickiness.h"
#include "whole/structures.h"

namespace greynic::causal {
namespace {

constexpr int kLargestOrder = 8;
constexpr double kFurtherCause = 0.12;   // odds that a healed wall holds one more
constexpr double kErrorOfFurther = 0.1;  // of a wall: the search there shows it, if there is none
constexpr double kSeenAsWall = 4.9;      // log odds: a further cause is searched there at once
constexpr double kLeastError = 1e-6;     // of a healed wall, where there are very many
constexpr double kLeastFurther = 0.02;   // of that, however often it was healed
constexpr double kThirdCause = 0.25;     // that one which is healed of a cause holds two more
constexpr double kStillCause = 0.9;      // odds that a cause shows in another healing
constexpr int kMostPasses = 5;
constexpr double kNoMoreTerms = 0.3;  // odds that the terms found are all of a cause, before a test
constexpr std::size_t kMostTransversals = 400;
constexpr int kMostBacktracks = 24;
constexpr int kMostCauses = 24;
constexpr std::size_t kDoubtful = 3;  // causes of one wall

std::optional<std::size_t> first_of(const Set& set) {
  const std::size_t first = set._Find_first();
  return first < set.size() ? std::optional(first) : std::nullopt;
}

}  // namespace

std::vector<Set> minimal_transversals(const std::vector<Set>& sets, std::size_t most) {
  std::vector<Set> all = {Set()};
  for (const Set& set : sets) {
    std::vector<Set> next;
    for (const Set& one : all) {
      if ((one & set).any()) {
        next.push_back(one);
        continue;
      }
      for (std::size_t i = set._Find_first(); i < set.size(); i = set._Find_next(i)) {
        next.push_back(one);
        next.back().set(i);
      }
    }
    std::vector<Set> minimal;
    for (std::size_t i = 0; i < next.size(); ++i) {
      bool least = true;
      for (std::size_t j = 0; j < next.size() && least; ++j) {
        least = i == j || !holds(next[i], next[j]) || (next[i] == next[j] && i < j);
      }
      if (least) minimal.push_back(next[i]);
    }
    all = std::move(minimal);
    if (all.size() > most) all.resize(most);
  }
  return all;
}

WitnessSearch::WitnessSearch(Session& session, Settings& settings, bool patient)
    : session_(session), settings_(settings), patient_(patient) {}

double WitnessSearch::error_of(std::size_t answers) const {
  return (1.0 - session_.options().confidence) /
         (2.0 * std::max<double>(6.0, static_cast<double>(answers)));
}

/// If a cause has t terms, each set of t settings is as likely as any other. `found` terms are
/// known, so the next one is the last of the others in the row.
std::vector<double> WitnessSearch::odds_before(const Growth& growth, std::size_t found) const {
  const std::size_t steps = growth.sets.size();
  const double total = static_cast<double>(settings_.size());
  std::vector<double> odds(steps, 0.0);
  for (std::size_t order = std::max<std::size_t>(found, 1); order <= kLargestOrder; ++order) {
    const double each =
        std::log(kTermsBefore[order]) - log_choose(total, static_cast<double>(order));
    const double left = static_cast<double>(order - found);
    if (order == found) odds[0] += std::exp(each);
    for (std::size_t i = 1; i < steps && order > found; ++i) {
      odds[i] += std::exp(each + log_choose(static_cast<double>(i) - 1.0, left - 1.0));
    }
  }
  double sum = 0.0;
  for (const double one : odds) sum += one;
  for (double& one : odds) one = std::max(one / std::max(sum, 1e-300), 1e-9);
  if (found == 0) odds[0] = 0.0;  // the baseline is no wall
  return odds;
}

/// The wall without what a step adds; nothing where more than that must be healed with it.
std::optional<Id> WitnessSearch::healed_step(const Set& wall, const Growth& growth,
                                             std::size_t step) {
  const Set healed = settings_.without(~wall | Set().set(*first_of(growth.added(step))));
  if (!holds(healed, growth.sets[step - 1])) return std::nullopt;
  return settings_.id_of(healed);
}

Result<std::optional<FoundCause>> WitnessSearch::cause_within(const Set& wall) {
  auto needed = needed_settings(session_, settings_, wall);
  if (!needed) return pass_on(needed);
  const auto slow = stays_slow();
  if (!slow) return pass_on(slow);
  if (*slow) needed = Needed();  // what was tested so far says nothing
  if (needed->confidence >= 1.0 - kStepError) return all_of_cause(*needed, wall);
  auto cause = cause_within(wall, needed->settings);
  if (!cause || *cause || needed->settings.none()) return cause;
  return cause_within(wall, Set());  // a wrong answer led there
}

/// Batches told all of its terms.
FoundCause WitnessSearch::all_of_cause(const Needed& needed, const Set& wall) {
  const Set& terms = needed.settings;
  FoundCause cause{.terms = terms,
                   .closed = settings_.closure(terms, wall, settings_.grow({}, wall)),
                   .absent = {},
                   .classes = {},
                   .confidence = needed.confidence};
  for (std::size_t i = terms._Find_first(); i < terms.size(); i = terms._Find_next(i))
    cause.classes.push_back(Set().set(i));
  return cause;
}

/// In a batch tests hide whether the device stays slow after a wall. So where no test has shown that it recovers at
/// once, that is asked.
Result<bool> WitnessSearch::stays_slow() {
  const bool in_batches = session_.options().batch > 1;
  if (!in_batches || looked_at_device_ || session_.waits() || session_.recovers_at_once())
    return false;
  looked_at_device_ = true;
  const Id wall = session_.id_of(settings_.wall());
  const std::vector<Id> batch = {session_.baseline(), wall, session_.baseline()};
  if (auto done = session_.measure(batch, "is it slow since the wall?"); !done)
    return pass_on(done);
  if (auto done = Stickiness(session_, wall, notes_).look(); !done) return pass_on(done);
  return session_.waits();
}

Row WitnessSearch::row_of(const Growth& growth, const Set& terms) {
  Row row;
  row.before = odds_before(growth, terms.count());
  weigh_by_clear(session_, settings_, growth, terms, row.before);
  if (terms.none()) row.before[0] = 0.0;  // the baseline is no wall
  row.why = "growing the baseline towards the wall";
  row.ask_first = terms.any() && !healers_wait_;
  for (const Set& set : growth.sets) row.steps.push_back(settings_.known_id(set));
  return row;
}

std::optional<Id> WitnessSearch::first_question() {
  return session_.next_question(row_of(settings_.grow({}, settings_.all()), {}));
}

Result<std::optional<FoundCause>> WitnessSearch::cause_within(const Set& wall, const Set& needed) {
  std::vector<Step> path;
  const Growth way = needed.none() ? Growth() : settings_.grow({}, wall);
  Step now{.from = settings_.closure(needed, wall, way),
           .to = wall,
           .growth = {},
           .terms = needed,
           .classes = {}};
  for (std::size_t i = needed._Find_first(); i < needed.size(); i = needed._Find_next(i)) {
    now.classes.push_back(Set().set(i));
  }
  double further = wall == settings_.all() ? kFurtherCause : kThirdCause;
  for (int backtracks = 0; backtracks < kMostBacktracks && !is_noisy();) {
    now.growth = settings_.grow(now.from, now.to);
    Row row = row_of(now.growth, now.terms);
    row.never = path.empty() ? 1e-3 : 2e-2;
    row.whole = settings_.known_id(wall);
    row.further = further;
    if (session_.options().batch == 1) {
      row.heal = [&](std::size_t step) { return healed_step(wall, now.growth, step); };
    }
    const auto place = session_.first_wall(row, kStepError);
    if (!place) return pass_on(place);
    if (place->never) {
      // A wrong answer led here: the odds of the step before have changed by now.
      if (path.empty()) return std::optional<FoundCause>();
      now = path.back();
      path.pop_back();
      ++backtracks;
      continue;
    }
    further = std::clamp(place->further, kLeastFurther, 1.0 - kLeastFurther);
    if (place->step == 0) {
      return FoundCause{.terms = now.terms,
                        .closed = now.from,
                        .absent = {},
                        .classes = now.classes,
                        .confidence = place->confidence};
    }
    path.push_back(now);
    const Set together = now.growth.added(place->step);
    now.classes.push_back(together);
    now.terms.set(*first_of(together));
    now.to = now.growth.sets[place->step];
    now.from = settings_.closure(now.from | together, now.to, now.growth);
  }
  return std::optional<FoundCause>();
}

/// A cause that holds another is not minimal; one of the two rests on a wrong answer.
Result<void> WitnessSearch::add(CausesOfWall& found, FoundCause cause) {
  for (const FoundCause& known : found.causes) {
    if (holds(cause.terms, known.terms) && known.absent.none()) return {};
  }
  std::erase_if(found.causes,
                [&](const FoundCause& known) { return holds(known.terms, cause.terms); });
  found.causes.push_back(std::move(cause));
  return {};
}

/// The chance that a healed wall still is one.
double WitnessSearch::odds_of_wall(Id healed) const {
  return chance_of(session_.evidence(healed) + std::log(kFurtherCause / (1.0 - kFurtherCause)));
}

/// The first that is a wall still, as a place. All of them together may be wrong as often as one answer may:
/// most are far surer than that, so few are tested twice.
Result<std::optional<std::size_t>> WitnessSearch::first_wall_of(const std::vector<Id>& ids,
                                                                std::vector<Healing>& healings) {
  const double allowed = (1.0 - session_.options().confidence) / 2.0;
  const std::size_t together = static_cast<std::size_t>(session_.options().batch);
  double wrong = 1.0;
  for (double error = allowed; wrong > allowed && error > kLeastError; error /= 2.0) {
    wrong = 0.0;
    for (std::size_t begin = 0; begin < ids.size(); begin += together) {
      const std::size_t end = std::min(ids.size(), begin + together);
      const std::vector<Id> some(ids.begin() + static_cast<std::ptrdiff_t>(begin),
                                 ids.begin() + static_cast<std::ptrdiff_t>(end));
      auto verdicts = session_.decide(some, kFurtherCause, error, "healing all known causes",
                                      std::max(error, kErrorOfFurther));
      if (!verdicts) return pass_on(verdicts);
      for (std::size_t i = begin; i < end; ++i) {
        healings[i].verdict = (*verdicts)[i - begin];
        if (healings[i].verdict == Verdict::kWall) return std::optional(i);
      }
    }
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (healings[i].verdict == Verdict::kClear) wrong += odds_of_wall(ids[i]);
    }
  }
  return std::optional<std::size_t>();
}

/// A healed wall that is a wall still; nothing when all are clear. `at_once`: one that seemed a wall will do.
Result<std::optional<Set>> WitnessSearch::first_not_healed(CausesOfWall& found, bool at_once) {
  if (found.causes.empty()) return std::optional(settings_.all());  // the wall itself, as was shown
  std::vector<Set> terms;
  for (const FoundCause& cause : found.causes) terms.push_back(cause.terms);
  const std::vector<Set> healings = minimal_transversals(terms, kMostTransversals);
  if (healings.size() >= kMostTransversals) found.complete = false;
  std::vector<Set> open;
  std::vector<Id> ids;
  std::vector<Healing> certificate;
  for (const Set& healed : healings) {
    const Set kept = settings_.without(healed);
    const bool covered = std::any_of(certificate.begin(), certificate.end(),
                                     [&](const Healing& one) { return holds(one.kept, kept); });
    const auto id = settings_.id_of(kept);
    if (covered || !id) continue;
    certificate.push_back({healed, kept, Verdict::kUndecided});
    ids.push_back(*id);
  }
  for (std::size_t i = 0; i < ids.size() && at_once; ++i) {
    if (session_.tests_of(ids[i]) > 0 && session_.evidence(ids[i]) > kSeenAsWall)
      return std::optional(certificate[i].kept);
  }
  auto wall = first_wall_of(ids, certificate);
  if (!wall) return pass_on(wall);
  if (*wall) return std::optional(certificate[**wall].kept);
  found.certificate = std::move(certificate);
  return std::optional<Set>();
}

Result<void> WitnessSearch::heal(CausesOfWall& found) {
  int vain = 0;
  while (static_cast<int>(found.causes.size()) < kMostCauses && vain < 4 && !is_noisy()) {
    auto wall = first_not_healed(found, /*at_once=*/vain == 0);
    if (!wall) return pass_on(wall);
    if (!*wall) return {};
    const std::size_t before = found.causes.size();
    auto cause = cause_within(**wall);
    if (!cause) return pass_on(cause);
    if (*cause) {
      if (auto done = add(found, std::move(**cause)); !done) return done;
    }
    vain = *cause && found.causes.size() > before ? 0 : vain + 1;
  }
  found.notes.push_back("the wall stays after healing, and no further cause was found in it");
  found.complete = false;
  return {};
}

/// Each cause alone must bring the wall. False when one did not: it was dropped.
Result<bool> WitnessSearch::confirm(CausesOfWall& found) {
  std::vector<Id> ids;
  for (const FoundCause& cause : found.causes) {
    ids.push_back(settings_.known_id(cause.closed));
    // The wall itself: where no part of it is one, its tests may have stalled.
    const std::size_t enough = cause.terms.count() > kFewTerms ? 3 : 2;
    if (cause.closed != settings_.all() || session_.tests_of(ids.back()) >= enough) continue;
    if (auto done = session_.measure({&ids.back(), 1}, "the terms alone"); !done)
      return pass_on(done);
  }
  // One test of a wall may have stalled, whatever it shows: more than this it cannot be worth.
  const double error = (1.0 - session_.options().confidence) / 2.0;
  auto verdicts = session_.decide(ids, kNoMoreTerms, error, "the terms alone");
  if (!verdicts) return pass_on(verdicts);
  bool all = true;
  for (std::size_t i = ids.size(); i-- > 0;) {
    if ((*verdicts)[i] == Verdict::kWall) continue;
    found.causes.erase(found.causes.begin() + static_cast<std::ptrdiff_t>(i));
    all = false;
  }
  return all;
}

/// Searches the settings that must stay at the baseline's level: they turn the cause, which is a
/// wall alone, clear in `kept`.
Result<void> WitnessSearch::find_absent(FoundCause& cause, Set kept) {
  for (int tries = 0; tries < kLargestOrder; ++tries) {
    const Growth growth = settings_.grow(cause.closed, kept);
    Row row{.steps = {}, .before = {}, .never = 0.01, .why = "what wakes an emergent cause"};
    // From the far end: the last set at which the cause still is a wall.
    for (std::size_t i = growth.sets.size(); i-- > 0;) {
      row.steps.push_back(settings_.known_id(growth.sets[i]));
      row.before.push_back(
          i + 1 == growth.sets.size() ? 0.0 : 1.0 / static_cast<double>(growth.sets.size()));
    }
    const auto place = session_.first_wall(row, kStepError);
    if (!place) return pass_on(place);
    if (place->never || place->step == 0) return {};
    const Set blocking = growth.added(growth.sets.size() - place->step);
    cause.absent |= blocking;
    kept &= ~blocking;
    const auto id = settings_.id_of(kept);
    if (!id) return {};
    auto verdict = session_.decide(*id, 0.8, error_of(8), "an emergent cause, awake");
    if (!verdict) return pass_on(verdict);
    if (*verdict != Verdict::kClear) return {};
  }
  return {};
}

/// Settings of the other causes that no sure wall of this cause alone has at the wall's level: it may
/// need one of them healed.
Set WitnessSearch::never_kept(const CausesOfWall& found, const FoundCause& cause) const {
  const double sure = std::log(2.0 / (1.0 - session_.options().confidence) - 1.0) -
                      std::log(kStillCause / (1 - kStillCause));
  Set open;
  for (const FoundCause& other : found.causes) open |= other.terms & ~cause.terms;
  for (const auto& known : settings_.known()) {
    if (session_.tests_of(known.second) == 0 || session_.evidence(known.second) < sure) continue;
    const bool alone = std::all_of(
        found.causes.begin(), found.causes.end(),
        [&](const FoundCause& one) { return holds(known.first, one.terms) == (&one == &cause); });
    if (alone) open &= ~known.first;
  }
  return open;
}

/// A cause among others shows wherever the others are healed. Ways of healing that together keep each
/// setting once tell whether it needs one of them healed; walls seen on the way here tell too.
Result<void> WitnessSearch::check_emergence(CausesOfWall& found) {
  if (found.causes.size() < 2) return {};
  for (FoundCause& cause : found.causes) {
    std::vector<Set> others;
    for (const FoundCause& other : found.causes) {
      if (&other != &cause) others.push_back(other.terms & ~cause.terms);
    }
    std::vector<Set> ways;
    for (const Set& healed : minimal_transversals(others, kMostTransversals)) {
      const Set kept = settings_.without(healed);
      if (holds(kept, cause.terms)) ways.push_back(kept);
    }
    for (Set open = never_kept(found, cause); open.any() && !ways.empty();) {
      const auto most = std::max_element(ways.begin(), ways.end(), [&](const Set& a, const Set& b) {
        return (a & open).count() < (b & open).count();
      });
      const Set kept = *most;
      ways.erase(most);
      if ((kept & open).none()) break;
      const auto id = settings_.id_of(kept);
      if (!id) continue;
      const double error = (1.0 - session_.options().confidence) / 2.0;
      auto verdict =
          session_.decide(*id, kStillCause, error_of(8), "one cause, the others healed", error);
      if (!verdict) return pass_on(verdict);
      if (*verdict == Verdict::kClear) {
        if (auto done = find_absent(cause, kept); !done) return done;
        break;
      }
      open &= ~kept;
    }
  }
  return {};
}

/// Where many settings seem to be causes, or the baseline was tested in the run alone, it is asked
/// again: a device that changed, or that cannot set it, shows as a wall there too.
Result<void> WitnessSearch::doubt(CausesOfWall& found) {
  const Id baseline = session_.baseline();
  const bool tested =
      std::any_of(session_.trail().begin(), session_.trail().end(), [&](const TrailTest& test) {
        return test.configuration == session_.configuration(baseline);
      });
  // A healed wall that is clear shows as much.
  const bool clear =
      std::any_of(found.certificate.begin(), found.certificate.end(), [&](const Healing& one) {
        return one.verdict == Verdict::kClear && session_.was_ordered(settings_.known_id(one.kept));
      });
  const bool doubtful = found.causes.size() >= kDoubtful && !(found.complete && clear);
  if (tested && !doubtful && !session_.lost_baseline()) return {};
  for (int looks = 0; looks < 2 && !session_.lost_baseline(); ++looks) {
    if (auto done = session_.measure({&baseline, 1}, "is the baseline still clear?"); !done) {
      return done;
    }
    if (!session_.last_is_slow()) return {};
  }
  session_.lose_baseline();
  found.notes.push_back(
      "further tests do not confirm any cause: the baseline is as slow as the wall by now; reset "
      "the device, or choose a baseline that it can set");
  found.causes.clear();
  found.complete = false;
  return {};
}

/// Against no wall at all, where each of these tests would be clear; any other cause could have been found as well.
double WitnessSearch::odds_of_causes(const CausesOfWall& found) const {
  double odds = 0.0;
  for (const FoundCause& cause : found.causes) {
    odds -=
        log_choose(static_cast<double>(settings_.size()), static_cast<double>(cause.terms.count()));
  }
  for (const auto& known : settings_.known()) {
    const Set& set = known.first;
    const bool wall = std::any_of(found.causes.begin(), found.causes.end(), [&](const auto& one) {
      return holds(set, one.terms) && (set & one.absent).none();
    });
    if (wall) odds += session_.evidence(known.second);
  }
  return odds;
}

Result<CausesOfWall> WitnessSearch::causes(CausesOfWall found) {
  found.complete = true;
  found.waits = healers_wait_;
  found.notes.clear();
  const auto search = [&]() -> Result<void> {
    bool settled = false;
    for (int round = 0; round < kMostPasses && !settled; ++round) {
      if (auto done = heal(found); !done) return done;
      if (is_noisy() && !found.complete) return {};
      auto stands = confirm(found);
      if (!stands) return pass_on(stands);
      if (!*stands) continue;
      auto dropped = healers_wait_ ? Result<bool>(false) : drop_needless(found);
      if (!dropped) return pass_on(dropped);
      if (*dropped) continue;
      // The noise is known better by now: are the healed walls as clear as they seemed?
      auto wall = first_not_healed(found);
      if (!wall) return pass_on(wall);
      if (*wall) continue;
      if (auto done = check_emergence(found); !done) return done;
      auto more = healers_wait_ ? Result<bool>(false) : find_hidden(found);
      if (!more) return pass_on(more);
      settled = !*more;
    }
    found.complete = found.complete && settled;
    return doubt(found);
  };
  const auto done = search();
  found.notes.insert(found.notes.end(), notes_.begin(), notes_.end());
  if (!done) {
    if (done.error().code != ErrorCode::kAllowanceSpent) return pass_on(done);
    found.complete = false;
    found.notes.push_back(done.error().message);
  }
  if (session_.options().batch > 1 && found.complete) found.odds_of_any = odds_of_causes(found);
  double error = 0.0;
  for (const Healing& one : found.certificate) {
    const auto id = settings_.id_of(one.kept);
    found.complete = found.complete && one.verdict == Verdict::kClear;
    if (id) error += odds_of_wall(*id);
  }
  found.confidence = std::max(0.0, 1.0 - error);
  return found;
}

}  // namespace greynic::causal
