#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "around/find_path.h"
#include "around/finer.h"
#include "around/sense.h"
#include "causes.h"
#include "explainer.h"
#include "steps/group_search.h"
#include "steps/hidden_pairs.h"
#include "steps/level_search.h"
#include "whole/whole_search.h"

namespace greynic::causal {
namespace {

constexpr double kException = 0.5;   // odds that an exception is none
constexpr std::size_t kGiveUp = 20;  // times the usual tests; half of that, step by step after it

}  // namespace

/// What an explanation ordered before is handed out again when it is asked for; all else is known
/// from the start.
void Explainer::take(std::span<const Observation> observations) {
  explanation_.tests_read = observations.size();
  for (const Observation& one : observations) {
    if (options_.ordered.contains(one.asked.name()) || one.repeat >= campaign_.measure.repeats) {
      replay_.hold(one);
      continue;
    }
    session_.read(one);
    const Id id = session_.id_of(one.asked);
    if (std::find(of_run_.begin(), of_run_.end(), id) == of_run_.end()) of_run_.push_back(id);
  }
}

Wall Explainer::wall_of(Id id) const {
  Wall wall;
  wall.configuration = session_.configuration(id);
  wall.ratio = session_.ratio_of(id);
  wall.p_value = chance_of(-session_.evidence(id));
  wall.tests = static_cast<int>(session_.tests_of(id));
  if (2 * session_.failures_of(id) > session_.tests_of(id)) wall.outcome = session_.failure_of(id);
  return wall;
}

void Explainer::add_wall(Id id) {
  explanation_.walls.push_back(wall_of(id));
  given_up_.push_back(false);
}

void Explainer::assign_causes() {
  for (std::size_t i = 0; i < explanation_.causes.size(); ++i) {
    assign(explanation_.walls, explanation_.causes[i], i);
  }
}

void Explainer::sort_out(Id id, Verdict verdict) {
  ++explanation_.configurations;
  switch (verdict) {
    case Verdict::kWall:
      add_wall(id);
      break;
    case Verdict::kClear:
      clear_.push_back(session_.configuration(id));
      break;
    case Verdict::kUntestable:
      if (!session_.too_short(id)) {
        ++explanation_.refused;
        break;
      }
      ++too_short_;
      [[fallthrough]];
    case Verdict::kUndecided:
      ++explanation_.undecided;
      explanation_.undecided_configurations.push_back(session_.configuration(id));
  }
}

Result<void> Explainer::judge_witness() {
  const Id id = session_.id_of(*options_.witness);
  auto settings = Settings::create(session_, baseline_, *options_.witness);
  std::function<std::optional<Id>()> begin_search;
  if (settings && options_.batch == 1) {
    begin_search = [&] { return WitnessSearch(session_, *settings).first_question(); };
  }
  auto check = check_wall(session_, id, Check::kBeforeSearch, begin_search);
  if (!check) return pass_on(check);
  return explain_checked(id, *check);
}

/// The search may begin at a likely wall. What turns out to be none, or cannot be decided, has no causes.
Result<void> Explainer::explain_checked(Id id, const WallCheck& likely) {
  explanation_.notes.insert(explanation_.notes.end(), likely.notes.begin(), likely.notes.end());
  const Before before{explanation_.walls.size(),
                      explanation_.causes.size(),
                      waiting_.size(),
                      explanation_.notes.size(),
                      all_complete_,
                      complete_};
  sort_out(id, likely.verdict);
  sure_of_wall_ = likely.sure;
  if (auto done = explain_walls(); !done) return done;
  if (sure_of_wall_ || session_.lost_baseline()) return {};
  return confirm(id, before);
}

Result<void> Explainer::confirm(Id id, const Before& before) {
  // Each cause was a wall by itself, so this is one.
  if (error_of_row_ && explanation_.causes.size() > before.causes) return {};
  // Walls of other causes say nothing of one that no cause was found for.
  if (explanation_.causes.size() == before.causes && session_.tests_of(id) == 1) {
    if (auto done = session_.measure({&id, 1}, "is it a wall?"); !done) return done;
  }
  auto check = error_of_row_ ? settle_row(id) : check_wall(session_, id, Check::kAfterSearch);
  if (check && check->verdict == Verdict::kWall) {
    explanation_.walls[before.walls] = wall_of(id);
    assign_causes();
    return {};
  }
  explanation_.walls.resize(before.walls);
  given_up_.resize(before.walls);
  explanation_.causes.resize(before.causes);
  waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(before.waiting), waiting_.end());
  --explanation_.configurations;
  all_complete_ = before.all_complete && static_cast<bool>(check);
  complete_ = before.complete;
  sort_out(id, check ? check->verdict : Verdict::kUndecided);
  explanation_.notes.resize(before.notes);
  explanation_.notes.push_back("what seemed a wall was not confirmed by further tests");
  if (!check) return pass_on(check);
  return {};
}

/// Every configuration of the run is brought to a decision; the allowed error is shared among them.
Result<void> Explainer::judge_run() {
  const double error =
      (1.0 - options_.confidence) / std::max<double>(1.0, static_cast<double>(of_run_.size()));
  auto verdicts = session_.decide(of_run_, kWallInPlan, error, "settling what the run left open");
  if (!verdicts) {
    if (verdicts.error().code != ErrorCode::kAllowanceSpent) return pass_on(verdicts);
    explanation_.notes.push_back(verdicts.error().message);
    verdicts = std::vector<Verdict>(of_run_.size(), Verdict::kUndecided);
  }
  for (std::size_t i = 0; i < of_run_.size(); ++i) sort_out(of_run_[i], (*verdicts)[i]);
  return explain_walls();
}

Evidence Explainer::evidence_of(Id id, const std::string& role) const {
  Evidence evidence;
  const double odds = session_.evidence(id);
  evidence.configuration = session_.configuration(id);
  evidence.wall = odds > 0.0;
  evidence.decided = std::abs(odds) > std::log(options_.confidence / (1.0 - options_.confidence));
  evidence.tests = static_cast<int>(session_.tests_of(id));
  evidence.p_value = chance_of(-std::abs(odds));
  evidence.ratio = session_.ratio_of(id);
  evidence.role = role;
  return evidence;
}

void Explainer::keep_evidence(Cause& cause, const FoundCause& found, const CausesOfWall& all,
                              Settings& settings) {
  const Id alone = settings.known_id(found.closed);
  cause.severity = session_.ratio_of(alone);
  cause.evidence.push_back(evidence_of(alone, "all terms"));
  for (const Healing& healing : all.certificate) {
    if ((healing.healed & found.terms).none()) continue;
    std::string role = "without";
    for (std::size_t i = 0; i < settings.size(); ++i) {
      if (healing.healed.test(i)) role += (role == "without" ? " " : ", ") + settings.factor(i);
    }
    cause.evidence.push_back(evidence_of(settings.known_id(healing.kept), role));
  }
  for (const Condition& term : cause.all_of) {
    for (const TrailTest& test : session_.trail()) {
      if (test.why != "levels of " + term.factor) continue;
      const Id id = session_.id_of(test.configuration);
      const std::string role =
          fmt::format("{} = {}", term.factor, to_string(*test.configuration.find(term.factor)));
      const bool known = std::any_of(cause.evidence.begin(), cause.evidence.end(),
                                     [&](const Evidence& one) { return one.role == role; });
      if (!known) cause.evidence.push_back(evidence_of(id, role));
    }
  }
}

/// Small noise: step by step. Large: by all tests at once.
Result<CausesOfWall> Explainer::causes_of(Settings& settings) {
  const Id wall = session_.id_of(settings.wall());
  if (!session_.is_noisy(wall) && (error_of_row_ || !may_be_noisy(session_, wall))) {
    session_.leave_when_noisy(wall);
    WitnessSearch search(session_, settings);
    if (walks_plan_) search.leave_healers_to_plan();
    auto found = search.causes();
    session_.leave_when_noisy({});
    const bool none = error_of_row_ && session_.evidence(wall) < 0.0;  // further tests show no wall
    if (!found || found->complete || none || !session_.is_noisy(wall)) return found;
  }
  return causes_by_all_tests(settings);
}

/// And step by step, if they contradict.
Result<CausesOfWall> Explainer::causes_by_all_tests(Settings& settings) {
  const Id wall = session_.id_of(settings.wall());
  const std::size_t usual = session_.usual_tests(wall, settings.size());
  session_.allow(kGiveUp * usual);
  auto found = WholeSearch(session_, settings, sure_of_wall_).causes();
  if (found && found->contradicted) {
    session_.allow(kGiveUp / 2 * usual);
    found = WitnessSearch(session_, settings, /*patient=*/true).causes();
  }
  session_.allow({});
  return found;
}

/// `causes`: those whose levels were found, also where it fails.
Result<void> Explainer::add_levels(const CausesOfWall& found, Settings& settings,
                                   std::vector<Cause>& causes) {
  LevelSearch levels(session_, settings, explanation_.causes);
  for (const FoundCause& one : found.causes) {
    if (one.levels.empty()) session_.leave_when_noisy(session_.id_of(settings.wall()));
    auto cause = levels.levels_of(one);
    session_.leave_when_noisy({});
    if (!cause) return pass_on(cause);
    causes.push_back(std::move(*cause));
  }
  return {};
}

Result<void> Explainer::explain_wall(const Configuration& wall) {
  auto settings = Settings::create(session_, baseline_, wall);
  if (!settings) return pass_on(settings);
  if (settings->size() == 0) {
    explanation_.notes.push_back("the baseline itself is a wall; choose another baseline");
    all_complete_ = false;
    return {};
  }
  auto found = causes_of(*settings);
  if (!found) return pass_on(found);
  const std::size_t first = explanation_.causes.size();
  if (auto told = tell(wall, *settings, *found); !told) return told;
  if (found->waits) waiting_.push_back({wall, *settings, *found, first});
  return {};
}

/// Their levels are searched, and they join the others.
Result<void> Explainer::tell(const Configuration& wall, Settings& settings, CausesOfWall& found) {
  std::vector<Cause> causes;
  auto levelled = add_levels(found, settings, causes);
  if (!levelled && session_.left_for_noise()) {  // levels showed it, not the settings before them
    auto by_all = causes_by_all_tests(settings);
    if (!by_all) return pass_on(by_all);
    found = std::move(*by_all);
    causes.clear();
    levelled = add_levels(found, settings, causes);
  }
  for (const std::string& note : found.notes) {
    explanation_.notes.push_back(fmt::format("{}: {}", wall.name(), note));
  }
  all_complete_ = all_complete_ && found.complete && !found.causes.empty();
  complete_ *= found.confidence;
  if (!found.waits) note_hidden(settings, found);
  sure_of_wall_ = sure_of_wall_ || chance_of(found.odds_of_any) >= options_.confidence;
  for (std::size_t i = 0; i < causes.size(); ++i) {
    const FoundCause& one = found.causes[i];
    Cause& cause = causes[i];
    if (options_.finer > 0.0) {
      const Configuration alone = session_.configuration(settings.known_id(one.closed));
      auto done = find_finer(session_, settings, alone, options_.finer, cause);
      if (!done) return done;
    }
    keep_evidence(cause, one, found, settings);
    // Where levels are known already, all tests were held against whole answers: this one too.
    for (const Evidence& evidence : cause.evidence) {
      const bool apart = one.levels.empty() && evidence.role == "all terms";
      if (apart) cause.confidence *= 1.0 - evidence.p_value;
    }
    cause.confidence *= found.confidence;
    explanation_.causes.push_back(std::move(cause));
  }
  return levelled;
}

/// How much of what the wall itself may heal was not asked.
void Explainer::note_hidden(Settings& settings, const CausesOfWall& found) {
  if (found.causes.empty()) return;
  const double left = pairs_seen(settings, found.causes).left();
  explanation_.hidden_left = std::max(explanation_.hidden_left.value_or(0.0), left);
}

Result<void> Explainer::explain_walls() {
  while (const auto index = next_wall(explanation_.walls, baseline_, given_up_)) {
    given_up_[*index] = true;
    const Configuration wall = explanation_.walls[*index].configuration;
    auto done = explain_wall(wall);
    if (!done) {
      all_complete_ = false;
      if (done.error().code != ErrorCode::kAllowanceSpent) return done;
      explanation_.notes.push_back(fmt::format("{}: {}", wall.name(), done.error().message));
    }
    assign_causes();
    if (!explanation_.walls[*index].cause && done && !explanation_.causes.empty()) {
      explanation_.notes.push_back(wall.name() + ": no cause holds here by itself");
    }
  }
  return {};
}

/// Tests an exception from the baseline: all terms at the wall's levels, and the exception's level.
Result<bool> Explainer::clears(Cause& cause, const Configuration& wall,
                               const Condition& exception) {
  Configuration levels;
  for (const Condition& term : cause.all_of) {
    if (const FactorValue* level = wall.find(term.factor)) levels.set(term.factor, *level);
    for (const std::string& other : term.with) levels.set(other, *wall.find(other));
  }
  levels.set(exception.factor, exception.level);
  Configuration whole = baseline_;
  for (const auto& [name, level] : levels.levels()) whole.set(name, level);
  if (laboratory_.complete) {
    const auto completed = laboratory_.complete(levels);
    if (!completed) return false;
    whole = *completed;
  }
  const Id id = session_.id_of(whole);
  auto verdict = session_.decide(id, kException, 1.0 - options_.confidence, "testing an exception");
  if (!verdict) return pass_on(verdict);
  cause.evidence.push_back(evidence_of(id, "with " + exception.text()));
  return *verdict == Verdict::kClear;
}

void Explainer::finish() {
  const ValueModel& model = session_.model();
  explanation_.expected = is_relative(campaign_.wall) ? model.scale().value(model.baseline())
                                                      : model.scale().value(model.bound());
  if (too_short_ > 0) explanation_.notes.push_back(too_short_note(too_short_));
  if (!explanation_.walls.empty()) {
    explanation_.finding = Finding::kWall;
  } else if (explanation_.undecided == 0 && all_complete_ && !session_.baseline_was_slow()) {
    explanation_.finding = Finding::kFalseAlarm;
  }
  const bool explained = std::all_of(explanation_.walls.begin(), explanation_.walls.end(),
                                     [](const Wall& wall) { return wall.cause.has_value(); });
  explanation_.complete =
      all_complete_ && explained && explanation_.undecided == 0 && !session_.baseline_was_slow();
  explanation_.complete_confidence = explanation_.complete ? complete_ : 0.0;
  explanation_.tests = session_.tests();
  explanation_.rounds = session_.rounds();
  explanation_.tests_ordered = replay_.ordered();
  explanation_.trail = session_.trail();
  for (std::string& note : notes_of_device(session_)) explanation_.notes.push_back(std::move(note));
}

/// The critical path of the worst wall, and what it is sensitive to.
Result<void> Explainer::look_around() {
  const bool asked = options_.critical_path || options_.sensitivity_rows > 0;
  if (!asked || explanation_.walls.empty()) return {};
  if (session_.waits()) {
    explanation_.notes.push_back(
        "neither critical path nor sensitivity was measured: the device stays slow after a wall");
    if (options_.critical_path && session_.is_stuck()) explanation_.path = path_of_stuck_device();
    return {};
  }
  if (!(explanation_.expected > 0.0)) {
    explanation_.notes.push_back(
        "neither critical path nor sensitivity was measured: they are told as ratios, and what was "
        "expected is not positive");
    return {};
  }
  const Configuration wall = explanation_.walls.front().configuration;
  Surroundings around(campaign_, baseline_, wall, explanation_.expected, options_, laboratory_);
  Result<void> done;
  if (options_.critical_path) {
    std::vector<Cause> causes;
    for (const Cause& cause : explanation_.causes) {
      if (cause.holds(wall)) causes.push_back(cause);
    }
    done = find_path(around, causes, explanation_.path.emplace());
  }
  if (done && options_.sensitivity_rows > 0) {
    done = sense(around, options_.sensitivity_rows, explanation_.sensitivity.emplace());
  }
  explanation_.tests += around.tests();
  explanation_.tests_ordered = replay_.ordered();
  if (done || done.error().code != ErrorCode::kAllowanceSpent) return done;
  explanation_.notes.push_back(done.error().message);
  return {};
}

Result<Explanation> Explainer::run(std::span<const Observation> observations) {
  take(observations);
  const auto witness =
      options_.witness ? std::optional(session_.id_of(*options_.witness)) : std::nullopt;
  std::vector<Id> groups;
  if (options_.witness) {
    auto settings = Settings::create(session_, baseline_, *options_.witness);
    if (settings) groups = first_groups(session_, *settings);
  }
  if (auto done = session_.begin(witness, groups); !done) return pass_on(done);
  const auto judged = [&]() -> Result<void> {
    if (options_.witness) return judge_witness();
    if (!of_run_.empty()) return judge_run();
    if (laboratory_.plan) return walk_plan();
    return {};
  };
  if (auto done = judged(); !done) {
    if (done.error().code != ErrorCode::kAllowanceSpent) return pass_on(done);
    explanation_.notes.push_back(done.error().message);
    all_complete_ = false;
  }
  drop_narrower_causes(explanation_.causes);
  auto excepted =
      find_exceptions(explanation_, clear_,
                      [&](Cause& cause, const Configuration& wall, const Condition& exception) {
                        return clears(cause, wall, exception);
                      });
  if (!excepted) return pass_on(excepted);
  put_in_order(explanation_, campaign_.wall);
  finish();
  if (auto done = look_around(); !done) return pass_on(done);
  return std::move(explanation_);
}

Result<Explanation> explain_tested(const Campaign& campaign, const Configuration& baseline,
                                   std::span<const Observation> observations,
                                   const ExplainOptions& options, const Laboratory& laboratory) {
  return Explainer(campaign, baseline, options, laboratory).run(observations);
}

}  // namespace greynic::causal
