#include "whole_search.h"

#include <algorithm>
#include <cmath>

#include "src/wall_check.h"

namespace greynic::causal {
namespace {

constexpr std::uint64_t kHalfSeed = 0x68616c66;  // any fixed number
constexpr int kSteps = 10;                       // of each chain, after each test
constexpr int kFirstSteps = 40;
constexpr int kRoundsAnew = 3;
constexpr std::size_t kLeastBeforeAnew = 10;   // tests, until all is learned anew
constexpr double kShareBeforeAnew = 0.2;       // of those that were made
constexpr std::size_t kMostKnownTogether = 4;  // tests of baseline or wall in a batch
constexpr double kMeanKnown = 0.3;  // its error, as a share of what lies between it and walls
constexpr double kFoundKnown = 0.4;
constexpr double kBaselinesApart = 0.4;   // by the likely answers, of the way from it to the bound
constexpr double kMostOfBaseline = 0.25;  // share of all tests, for that
constexpr std::size_t kMostOfOne = 60;    // tests of one configuration
constexpr std::size_t kMostUnchecked = 24;
constexpr double kSurely = 12.0;     // log odds of a configuration
constexpr double kFavourite = 0.97;  // chance, before its rivals are judged by themselves
constexpr std::size_t kMostRivals = 20;
constexpr std::size_t kLeastRivals = 4;
constexpr std::size_t kRivalTests = 2000;  // rivals times configurations, for the sake of time
constexpr double kLeastOfRival = 1e-5;     // chance
constexpr double kHealed = -1.0;           // log odds that healed walls are walls, all together
constexpr double kPartClear = -2.5;        // the same of a cause without one term
constexpr double kAgainst = 0.01;          // chance of what the tests say, by all likely answers

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0.0 : values[(values.size() - 1) / 2];
}

}  // namespace

WholeSearch::WholeSearch(Session& session, Settings& settings, bool sure)
    : session_(session),
      settings_(settings),
      lanes_(lanes_of(session, settings)),
      structures_(axes_of(lanes_)),
      depths_(median(session.scores_of(session.baseline())),
              median(session.scores_of(session.id_of(settings.wall()))), session.model().sigma(),
              [&model = session.model()](double mean) { return model.scale().bound(mean); }),
      random_(kHalfSeed),
      is_wall_(sure) {}

/// Nothing where a factor is at a level that neither the wall nor the baseline nor the campaign has.
std::optional<Positions> WholeSearch::positions_of(const Configuration& configuration) const {
  Positions positions;
  for (const Lane& lane : lanes_) {
    const FactorValue* level = configuration.find(lane.factor);
    const auto place = std::find_if(lane.levels.begin(), lane.levels.end(), [&](const auto& one) {
      return level != nullptr ? one && *one == *level : !one;
    });
    if (place == lane.levels.end()) return std::nullopt;
    positions.push_back(static_cast<std::uint16_t>(place - lane.levels.begin()));
  }
  for (const auto& [name, level] : settings_.wall().levels()) {
    const FactorValue* other = settings_.baseline().find(name);
    if (other == nullptr || *other != level) continue;  // a setting
    const FactorValue* mine = configuration.find(name);
    if (mine == nullptr || *mine != level) return std::nullopt;
  }
  return positions;
}

Configuration WholeSearch::configuration_of(const Positions& positions) const {
  Configuration whole = settings_.baseline();
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    const auto& level = lanes_[i].levels[positions[i]];
    if (level) whole.set(lanes_[i].factor, *level);
  }
  return whole;
}

/// Where rules forbid a set of settings, the largest allowed one within it takes its place.
std::optional<Id> WholeSearch::id_of(Positions& positions) {
  Set set;
  bool plain = true;
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    if (positions[i] == lanes_[i].axis.wall) set.set(i);
    plain = plain && (positions[i] == lanes_[i].axis.wall || positions[i] == lanes_[i].axis.base);
  }
  auto id = plain ? settings_.id_of(set) : settings_.id_of(configuration_of(positions));
  if (!id && plain) id = settings_.id_of(settings_.without(settings_.all() & ~set));
  if (!id || session_.refused(*id)) return std::nullopt;
  const auto actual = positions_of(session_.configuration(*id));
  if (!actual) return std::nullopt;
  positions = *actual;
  return id;
}

/// Configurations that were tested since the last time. A log beside a witness tells of these two only:
/// whoever made it may have set innocent factors whenever something else was wrong.
void WholeSearch::read_tests() {
  const bool only_ordered = session_.options().witness.has_value();
  const Id wall = session_.id_of(settings_.wall());
  for (Id id = 0; id < session_.asked(); ++id) {
    if (session_.tests_of(id) == 0 || places_.contains(id) || ids_.size() >= TestSet::kMost)
      continue;
    const bool told = id == wall || id == session_.baseline() || session_.was_ordered(id);
    if (only_ordered && !told) continue;
    const auto positions = positions_of(session_.configuration(id));
    if (!positions) continue;
    places_[id] = structures_.add_test(*positions);
    ids_.push_back(id);
    tested_.push_back(
        {.of_baseline = id == session_.baseline(), .wall = structures_.chance_of(*positions)});
  }
  for (std::size_t i = 0; i < ids_.size(); ++i) {
    tested_[i].scores = session_.scores_of(ids_[i]);
    tested_[i].failures = static_cast<int>(session_.failures_of(ids_[i]));
  }
}

/// What is learned of noise and of several depths follows the favourite, and so speaks for it. Each rival is
/// held against the tests with what would be learned if it were right. Of one cause, the views say enough.
void WholeSearch::judge_rivals() {
  const auto& likely = structures_.likely();
  if (likely.empty() || likely.front().chance < kFavourite) return;
  if (likely.front().causes.size() < 2) return;
  const std::size_t most = std::min(
      likely.size(), std::clamp(kRivalTests / (ids_.size() + 1), kLeastRivals, kMostRivals));
  std::size_t count = 1;
  while (count < most && likely[count].chance > kLeastOfRival) ++count;
  structures_.judge_by_own([&](const std::vector<TestSet>& causes) { return by_own(causes); },
                           count);
}

double WholeSearch::by_own(const std::vector<TestSet>& causes) const {
  std::vector<Tested> all = tested_;
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].causes = 0;
    for (std::size_t c = 0; c < causes.size(); ++c) {
      if (causes[c].has(i)) all[i].causes |= 1U << c;
    }
    all[i].wall = all[i].causes != 0 ? 1.0 : 0.0;
  }
  return depths_.by_own(all);
}

/// Before the search ends, the answer is held against those that explain the same walls otherwise.
bool WholeSearch::stands() {
  if (!is_sure()) return false;
  structures_.judge_alike([&](const std::vector<TestSet>& causes) { return by_own(causes); });
  believe();
  return is_sure();
}

/// All healed walls together, beside the baseline's own tests alone: the one to test next, or the
/// baseline, where it is not likely that they are clear.
std::vector<Id> WholeSearch::doubtful_healing() {
  const Id baseline = session_.baseline();
  std::vector<double> scores;
  Id least = baseline;
  for (Positions healed : structures_.healed()) {
    const auto id = id_of(healed);
    if (!id) continue;
    const std::vector<double> told = session_.scores_of(*id);
    scores.insert(scores.end(), told.begin(), told.end());
    if (least == baseline || session_.tests_of(*id) < session_.tests_of(least)) least = *id;
  }
  const std::vector<double> own = session_.scores_of(baseline);
  if (depths_.odds_beside(own, scores) < kHealed) return {};
  const Id next = own.size() < scores.size() ? baseline : least;
  if (session_.tests_of(next) >= kMostOfOne) return {};
  return {next};
}

/// All clear tests that hold this part have one more setting in common, or there is none: that setting
/// may have healed it.
bool WholeSearch::may_be_healed(const Positions& part) const {
  std::vector<bool> in_all(lanes_.size(), true);
  bool any = false;
  for (std::size_t i = 0; i < ids_.size(); ++i) {
    if (tested_[i].evidence >= kPartClear) continue;
    const auto at = positions_of(session_.configuration(ids_[i]));
    bool holds = at.has_value();
    for (std::size_t s = 0; s < lanes_.size() && holds; ++s) {
      holds = part[s] == lanes_[s].axis.base || part[s] == (*at)[s];
    }
    if (!holds) continue;
    any = true;
    for (std::size_t s = 0; s < lanes_.size(); ++s) {
      const bool more = part[s] == lanes_[s].axis.base && (*at)[s] != lanes_[s].axis.base;
      in_all[s] = in_all[s] && more;
    }
  }
  return !any || std::find(in_all.begin(), in_all.end(), true) != in_all.end();
}

/// Causes that were never tested by themselves: few tests may all fit an answer by chance, and this one fits no
/// other.
std::vector<Id> WholeSearch::never_alone() {
  std::vector<Id> next;
  const auto most = static_cast<std::size_t>(session_.options().batch);
  for (const Conjunction& cause : structures_.likely().front().causes) {
    Positions alone = terms_alone(cause);
    const auto id = id_of(alone);
    if (id && session_.tests_of(*id) == 0 && next.size() < most) next.push_back(*id);
  }
  return next;
}

/// Each cause without one of its terms, all else as in the baseline, until tests say that it is clear
/// whatever else is set: no answer knows of settings that heal, so none of them doubts it.
std::vector<Id> WholeSearch::doubtful_parts() {
  std::vector<Id> next;
  const auto most = static_cast<std::size_t>(session_.options().batch);
  for (const Conjunction& cause : structures_.likely().front().causes) {
    for (Positions& part : terms_but_one(cause)) {
      const auto id = id_of(part);
      if (!id || session_.tests_of(*id) >= kMostOfOne || next.size() == most) continue;
      if (may_be_healed(part)) next.push_back(*id);
    }
  }
  return next;
}

/// Noise, baseline and depths are learned from what the likely answers say, and these are likely by
/// what was learned. Wrong ones can hold each other up so for ever: where walls pass for clear, the
/// baseline is slow by their tests, and then they are clear. Now and then all is learned anew, from the
/// tests of baseline and wall alone, of which it is known what they are; what explains all tests better
/// is gone on with.
void WholeSearch::begin_anew() {
  const std::size_t share =
      static_cast<std::size_t>(kShareBeforeAnew * static_cast<double>(session_.tests()));
  begin_anew_at_ = session_.tests() + std::max(kLeastBeforeAnew, share);
  const Id wall = session_.id_of(settings_.wall());
  Structures structures(axes_of(lanes_));
  for (const Id id : ids_) structures.add_test(*positions_of(session_.configuration(id)));
  Depths depths(median(session_.scores_of(session_.baseline())), median(session_.scores_of(wall)),
                depths_.sigma(), depths_.bound());
  std::vector<Tested> tested = tested_;
  const double now = structures_.log_odds();
  for (int round = 0; round < kRoundsAnew; ++round) {
    structures.weigh(depths.views(tested), round == 0 ? kFirstSteps : kSteps);
    believe(structures, tested);
    depths.fit(tested);
  }
  structures.weigh(depths.views(tested), kSteps);
  const bool better = structures.log_odds() > now;
  structures_.adopt(structures);
  if (!better) return;
  structures_.weigh(depths.views(tested), kFirstSteps);
  depths_ = std::move(depths);
  tested_ = std::move(tested);
  believe();
}

void WholeSearch::learn(int steps) {
  read_tests();
  for (int round = 0; round < 2; ++round) {
    depths_.fit(tested_);
    structures_.weigh(depths_.views(tested_), round == 0 ? 0 : steps);
    if (round > 0) judge_rivals();
    believe();
  }
}

/// What the likely answers say of each configuration that was tested.
void WholeSearch::believe(const Structures& structures, std::vector<Tested>& tested) {
  for (Tested& one : tested) one.wall = 0.0;
  for (const Structure& one : structures.likely()) {
    for (std::size_t i = 0; i < tested.size() && one.chance > 1e-6; ++i) {
      if (one.walls.has(i)) tested[i].wall += one.chance;
    }
  }
}

void WholeSearch::believe() {
  believe(structures_, tested_);
  for (std::size_t i = 0; i < ids_.size(); ++i) session_.believe(ids_[i], tested_[i].wall);
}

bool WholeSearch::is_resolved(const Structure& structure) const {
  for (const Conjunction& cause : structure.causes) {
    for (const Term& term : cause) {
      if (structures_.is_absent(term)) continue;
      const Axis& axis = lanes_[term.setting].axis;
      if (axis.ordered) {
        const bool open_end = term.to < axis.last && structures_.open_after(term) > 1;
        if (structures_.open_before(term) > 1 || open_end) return false;
        continue;
      }
      for (int p = 0; p <= axis.last; ++p) {
        if (p != axis.base && !structures_.was_tested(term.setting, p)) return false;
      }
    }
  }
  return true;
}

bool WholeSearch::is_sure() const {
  if (structures_.likely().empty()) return false;
  const Structure& best = structures_.likely().front();
  return best.chance >= 1.0 - (1.0 - session_.options().confidence) / 2.0 && is_resolved(best);
}

/// A configuration is surely a wall and all likely answers say clear, or the other way round.
bool WholeSearch::is_contradicted() const {
  return std::any_of(tested_.begin(), tested_.end(), [](const Tested& one) {
    return one.evidence > 0.0 ? one.evidence > kSurely && one.wall < kAgainst
                              : one.evidence < -kSurely && one.wall > 1.0 - kAgainst;
  });
}

/// What is clear by the likeliest answer says how slow the baseline is only if that answer is right, so
/// its own tests must tell it from the bound too: as many as the root of all tests, which is where one
/// standard that all others are held against is known best. Answers may also differ in the baseline alone: one
/// calls shallow walls what is clear by the other, and slower. Only the baseline tells them apart.
bool WholeSearch::needs_baseline() const {
  const double own = static_cast<double>(session_.tests_of(session_.baseline()));
  const double room = session_.model().scale().bound(depths_.baseline()) - depths_.baseline();
  if (structures_.baseline_error() > kBaselinesApart * room &&
      own < kMostOfBaseline * static_cast<double>(session_.tests()))
    return true;
  if (own * own >= static_cast<double>(session_.tests())) return false;
  return depths_.sigma() > kMeanKnown * room * std::sqrt(own);
}

/// One test after the other, each where the answers disagree most that the tests before it leave.
std::vector<Id> WholeSearch::choose() {
  const double apart = depths_.shallowest() - depths_.baseline();
  const double of_baseline = depths_.baseline_error() / apart / kMeanKnown;
  const double of_depth = depths_.depth_error() / apart / kFoundKnown;
  const bool low = needs_baseline() || of_baseline >= of_depth;
  const Id known = low ? session_.baseline() : session_.id_of(settings_.wall());
  if ((needs_baseline() || std::max(of_baseline, of_depth) > 1.0) &&
      session_.tests_of(known) < kMostOfOne) {
    why_ = low ? "the baseline" : "how deep is it?";
    const auto together = static_cast<std::size_t>(session_.options().batch);
    return std::vector<Id>(std::min(together, kMostKnownTogether), known);
  }
  draw_sample();
  std::vector<Candidate> all = candidates();
  std::vector<Id> chosen;
  std::vector<std::size_t> group(sample_.size(), 0);
  std::size_t groups = 1;
  const auto worth_of = [&](const Candidate& one) {
    std::vector<double> weight(groups, 0.0), wall(groups, 0.0);
    for (std::size_t i = 0; i < sample_.size(); ++i) {
      weight[group[i]] += sample_[i].second;
      wall[group[i]] += sample_[i].second * static_cast<double>(one.walls[i]);
    }
    double worth = one.further * (1.0 - one.further);
    double known_worth = 0.0;
    for (std::size_t g = 0; g < groups; ++g) {
      if (weight[g] > 0.0) known_worth += wall[g] * (1.0 - wall[g] / weight[g]);
    }
    return std::max(worth, known_worth);
  };
  while (chosen.size() < static_cast<std::size_t>(session_.options().batch) && groups < 512) {
    double most = 0.0;
    std::size_t best = all.size();
    for (std::size_t k = 0; k < all.size(); ++k) {
      const double worth = worth_of(all[k]);
      if (worth <= most) continue;
      most = worth;
      best = k;
    }
    if (best == all.size()) break;
    Candidate one = std::move(all[best]);
    all.erase(all.begin() + static_cast<std::ptrdiff_t>(best));
    const Positions wanted = one.positions;
    const auto id = id_of(one.positions);
    if (!id || session_.tests_of(*id) >= kMostOfOne) continue;
    if (one.positions != wanted) {  // rules moved it
      ask(one);
      one.further = 0.0;
      if (worth_of(one) < 0.5 * most) continue;
    }
    if (chosen.empty()) why_ = one.why;
    if (session_.tests_of(*id) == 0) session_.believe(*id, chance_in_sample(one.positions));
    chosen.push_back(*id);
    for (std::size_t i = 0; i < sample_.size(); ++i) {
      group[i] = 2 * group[i] + (one.walls[i] > 0.5F ? 1 : 0);
    }
    groups *= 2;
  }
  return chosen;
}

/// Of no wall there is no likely answer, and the search would never end.
Result<void> WholeSearch::check() {
  session_.refit();
  const auto checked = check_wall(session_, session_.id_of(settings_.wall()), Check::kAfterSearch);
  if (!checked) return pass_on(checked);
  is_wall_ = checked->verdict == Verdict::kWall;
  learn(kSteps);
  return {};
}

Result<void> WholeSearch::search() {
  learn(kFirstSteps);
  begin_anew();
  const std::size_t first = session_.tests();
  while (!is_contradicted() && ids_.size() + 16 < TestSet::kMost) {
    if (!is_wall_ && session_.tests() >= first + kMostUnchecked) {
      if (auto done = check(); !done) return done;
      if (!is_wall_) return {};
      continue;
    }
    const bool stands_now = stands();
    std::vector<Id> next = stands_now ? doubtful_healing() : choose();
    if (stands_now) why_ = "healing all known causes";
    if (next.empty() && stands_now) {
      why_ = "the terms alone";
      next = never_alone();
    }
    if (next.empty() && stands_now) {
      why_ = "the terms but one";
      next = doubtful_parts();
      if (next.empty()) break;
    }
    if (next.empty()) return {};
    if (auto done = session_.measure(next, why_); !done) return done;
    learn(kSteps);
    if (session_.tests() >= begin_anew_at_) begin_anew();
    session_.note_beliefs();
  }
  sure_ = is_sure() && !is_contradicted();
  return {};
}

Result<CausesOfWall> WholeSearch::causes() {
  CausesOfWall found;
  session_.judge_by_belief(true);
  auto done = search();
  session_.judge_by_belief(false);
  if (!done) {
    if (done.error().code != ErrorCode::kAllowanceSpent) return pass_on(done);
    found.notes.push_back(done.error().message);
  }
  conclude(found);
  session_.refit();
  for (std::size_t i = 0; i < ids_.size(); ++i) session_.judge(ids_[i], tested_[i].evidence);
  return found;
}

}  // namespace greynic::causal
