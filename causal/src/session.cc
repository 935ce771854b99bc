#include "session.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "greynic/statistics/distributions.h"
#include "greynic/statistics/mean.h"
#include "greynic/statistics/shrunk_variance.h"

namespace greynic::causal {
namespace {

constexpr std::size_t kHopelessFrom = 16;  // tests of one configuration,
constexpr double kHopelessRate = 0.05;     // and what each must have told at least
constexpr double kBitsOfLevels = 20.0;
constexpr double kLeastTold = 0.02;
constexpr double kNearBound = 0.08;  // of the way from the baseline to it
constexpr double kNearForLevel = 0.12;
constexpr int kMostTooShort = 2;
constexpr double kSurelyWall = 5.0;       // log odds
constexpr std::size_t kOwnTests = 2;      // of a configuration, before the baseline is asked again
constexpr double kOpen = 2.2;             // log odds of what a test left open, less than
constexpr std::size_t kMostOpen = 8;      // of these since the baseline was tested
constexpr std::size_t kFollowDrift = 24;  // tests, where nothing else is learned from each
constexpr std::size_t kMostAtOnce = 4;    // tests of one configuration in a batch
constexpr int kMostFirstTests = 6;        // of the baseline, until one gives a value

}  // namespace

double chance_of(double log_odds) { return 1.0 / (1.0 + std::exp(-log_odds)); }

Session::Session(const Campaign& campaign, const Configuration& baseline,
                 const ExplainOptions& options, const Laboratory& laboratory)
    : campaign_(campaign), options_(options), laboratory_(laboratory) {
  baseline_ = id_of(baseline);
  asked_[baseline_].belief = 0.001;
}

Id Session::id_of(const Configuration& configuration) {
  const auto [place, fresh] = ids_.emplace(configuration.name(), asked_.size());
  if (fresh) {
    asked_.emplace_back();
    asked_.back().what = configuration;
  }
  return place->second;
}

void Session::read(const Observation& observation) { add(id_of(observation.asked), observation); }

Result<void> Session::begin(std::optional<Id> wall, const std::vector<Id>& beside) {
  first_ordered_ = readings_.size();
  const auto valued = [&] {
    return std::any_of(asked_[baseline_].readings.begin(), asked_[baseline_].readings.end(),
                       [&](std::size_t place) { return !readings_[place].failed; });
  };
  for (int tries = 0; !valued() && tries < kMostFirstTests; ++tries) {
    std::vector<Id> batch;
    // The baseline first, when nothing slowed the device, and last, to see whether a wall did.
    batch.push_back(baseline_);
    for (int left = std::min(options_.batch, kMostTogether) - 1; left > 0; --left) {
      batch.push_back(wall && left % 2 == 0 ? *wall : baseline_);
    }
    if (wall && !beside.empty()) {
      batch = {baseline_, *wall};
      batch.insert(batch.end(), beside.begin(), beside.end());
    }
    if (!wall || tries > 0) batch.resize(1, baseline_);
    if (auto done = measure(batch, batch.size() > 1 ? "is it a wall?" : "the baseline"); !done) {
      return done.error().while_doing("measuring the baseline");
    }
  }
  const WallRule& rule = campaign_.wall;
  std::optional<double> reference;
  for (const std::size_t place : asked_[baseline_].readings) {
    if (!readings_[place].failed && !reference) reference = values_[place];
  }
  if (!reference && is_relative(rule)) {
    return fail(ErrorCode::kNotMeasured,
                fmt::format("the baseline {} gives no {}; run the campaign again, or choose a "
                            "baseline that works",
                            configuration(baseline_).name(), rule.metric));
  }
  if (is_relative(rule) && !(*reference > 0.0)) {
    return fail(ErrorCode::kBadInput,
                fmt::format("the baseline's {} is {}; a share of it says nothing, state an "
                            "absolute bound (wall.below or wall.above)",
                            rule.metric, *reference));
  }
  const Scale scale(rule, reference.value_or(rule.below ? *rule.below : rule.above.value_or(1.0)));
  model_ = ValueModel(scale);
  for (std::size_t i = 0; i < readings_.size(); ++i) readings_[i].score = scale.score(values_[i]);
  begun_ = true;
  // What repeats in the run say about noise.
  const auto [squares, freedom] = spread_of_repeats();
  if (freedom > 0.0) model_.set_prior_spread(squares / freedom, freedom);
  refit();
  return {};
}

void Session::add(Id id, const Observation& observation) {
  Asked& asked = asked_[id];
  Reading reading;
  double value = 0.0;
  switch (observation.outcome) {
    case Outcome::kMeasured: {
      const auto measured = observation.value(campaign_.wall.metric);
      if (!measured) return;
      value = *measured;
      if (begun_) reading.score = model_.scale().score(value);
      break;
    }
    case Outcome::kFailed:
    case Outcome::kTimedOut:
      reading.failed = true;
      asked.failure = fmt::format("{}: {}", to_string(observation.outcome), observation.reason);
      break;
    case Outcome::kTooShort:
      asked.was_short = true;
      asked.too_short += begun_ ? 1 : 0;  // what the run stored is asked again, for longer
      return;
    case Outcome::kRefused:
      asked.refused = true;
      return;
    case Outcome::kNotRun:
      return;
  }
  reading.of_baseline = id == baseline_;
  asked.readings.push_back(readings_.size());
  readings_.push_back(reading);
  reading_ids_.push_back(id);
  values_.push_back(value);
}

void Session::refit() {
  for (std::size_t i = 0; i < readings_.size(); ++i) {
    readings_[i].belief = asked_[reading_ids_[i]].belief;
  }
  std::vector<Group> groups;
  std::vector<Id> ids;
  for (Id id = 0; id < asked_.size(); ++id) {
    if (asked_[id].readings.empty()) continue;
    groups.push_back({&asked_[id].readings});
    ids.push_back(id);
  }
  model_.fit(readings_, groups);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    asked_[ids[i]].evidence = groups[i].evidence;
    asked_[ids[i]].by_bound = groups[i].by_bound;
    asked_[ids[i]].known = groups[i].known;
  }
}

void Session::allow(std::optional<std::size_t> tests) {
  give_up_at_ = tests ? std::optional(tests_ + *tests) : std::nullopt;
}

std::size_t Session::usual_tests(Id wall, std::size_t settings) const {
  std::vector<double> scores = scores_of(wall);
  double depth = model_.bound();
  if (!scores.empty()) {
    std::sort(scores.begin(), scores.end());
    depth = std::max(depth, scores[scores.size() / 2]);
  }
  const double apart = (depth - model_.baseline()) / std::max(model_.sigma(), 1e-6);
  const double told = 1.0 - std::exp(-apart * apart / (8.0 * std::numbers::ln2));
  const double ways = 3.0 * std::log2(std::max<double>(2.0, static_cast<double>(settings)));
  return static_cast<std::size_t>((2.0 * ways + kBitsOfLevels) / std::max(told, kLeastTold));
}

Result<void> Session::measure(std::span<const Id> ids, const std::string& why) {
  if (give_up_at_ && tests_ >= *give_up_at_) {
    return fail(ErrorCode::kAllowanceSpent,
                fmt::format("given up after {} tests, many times what such a wall usually takes: "
                            "tests contradict one another; longer tests, or fewer things that "
                            "disturb them, would settle it",
                            tests_));
  }
  if (sticky_ && ids.size() > 1) {  // each may follow a wall
    for (const Id id : ids) {
      if (auto done = measure({&id, 1}, why); !done) return done;
    }
    return {};
  }
  if (sticky_) {
    if (auto done = recover(); !done) return done;
  }
  if (laboratory_.progress) laboratory_.progress(tests_, why);
  std::vector<Configuration> wanted;
  for (const Id id : ids) wanted.push_back(asked_[id].what);
  auto observations = laboratory_.measure(wanted);
  if (!observations) return pass_on(observations);
  ++rounds_;
  tests_ += observations->size();
  for (const Observation& observation : *observations) {
    const Id id = id_of(observation.asked);
    TrailTest test;
    test.why = why;
    test.configuration = observation.asked;
    test.round = rounds_;
    test.before = by_belief_ ? asked_[id].belief : chance_of(evidence(id));
    if (const auto value = observation.value(campaign_.wall.metric)) test.value = *value;
    test.outcome = to_string(observation.outcome);
    trail_.push_back(std::move(test));
    add(id, observation);
  }
  if (!begun_ || (by_belief_ && tests_ % kFollowDrift != 0)) return {};
  refit();
  for (const Id id : ids) {
    if (std::abs(evidence(id)) < kOpen) ++open_since_baseline_;
    if (id == baseline_) open_since_baseline_ = 0;
  }
  for (std::size_t i = trail_.size() - observations->size(); i < trail_.size(); ++i) {
    trail_[i].after = chance_of(evidence(id_of(trail_[i].configuration)));
  }
  return sticky_ && !stuck_ ? recover_from(ids.front()) : Result<void>();
}

void Session::note_beliefs() {
  for (std::size_t i = trail_.size(); i-- > 0 && trail_[i].round == rounds_;) {
    trail_[i].after = asked_[id_of(trail_[i].configuration)].belief;
  }
}

bool Session::last_is_slow() const {
  if (readings_.empty()) return false;
  const std::size_t last = readings_.size() - 1;
  // A device may be slower now than any wall that it was seen at.
  const Reading& one = readings_[last];
  if (!one.failed && one.score - model_.offset(last) > model_.bound()) return true;
  return model_.evidence(one, last) > 0.0;
}

void Session::ignore(std::span<const std::size_t> places) {
  for (const std::size_t place : places) readings_[place].ignored = true;
}

bool Session::hopeless(Id id) const {
  const double count = static_cast<double>(tests_of(id));
  if (tests_of(id) >= static_cast<std::size_t>(options_.most_repeats)) return true;
  if (tests_of(id) < kHopelessFrom) return false;
  if (std::abs(evidence(id)) / count < kHopelessRate) return true;
  // So near to the bound that nobody would care which side it is on.
  const double near =
      (by_bound_ ? kNearForLevel : kNearBound) * (model_.bound() - model_.baseline());
  if (model_.sigma() / std::sqrt(count) > near) return false;
  double sum = 0.0;
  const std::vector<double> scores = scores_of(id);
  for (const double score : scores) sum += score;
  return std::abs(sum - model_.bound() * static_cast<double>(scores.size())) <
         near * static_cast<double>(scores.size());
}

void Session::ask_baseline_first(std::vector<Id>& next) const {
  const auto waits = [&](Id id) {
    const std::size_t count = tests_of(id);
    return count > kOwnTests && count > tests_of(baseline_) &&
           model_.baseline_error() * std::sqrt(static_cast<double>(count)) > model_.sigma();
  };
  if (!is_relative(campaign_.wall)) return;
  const bool all_wait = open_since_baseline_ >= kMostOpen;
  if (!all_wait && std::none_of(next.begin(), next.end(), waits)) return;
  std::erase_if(next, [&](Id id) { return all_wait || waits(id); });
  next.push_back(baseline_);
}

/// Where a laboratory takes several tests at a time, what its first test left open is asked several times at
/// once: a round costs more there than a test.
void Session::ask_several_times(std::vector<Id>& next) const {
  const bool asked_before =
      std::all_of(next.begin(), next.end(), [&](Id id) { return tests_of(id) > 0; });
  if (sticky_ || !asked_before) return;
  const std::size_t count = next.size();
  const std::size_t most = std::min(static_cast<std::size_t>(options_.batch), kMostAtOnce * count);
  for (std::size_t i = 0; next.size() < most; ++i) next.push_back(next[i]);
}

Result<std::vector<Verdict>> Session::decide(const std::vector<Id>& ids, double before,
                                             double error, const std::string& why,
                                             std::optional<double> error_of_wall) {
  const double prior = std::log(before / (1.0 - before));
  const double sure = std::log((1.0 - error) / error);
  const double sure_of_wall =
      error_of_wall ? -std::log(*error_of_wall / (1.0 - *error_of_wall)) : sure;
  std::vector<Verdict> verdicts(ids.size(), Verdict::kUndecided);
  const std::size_t begun = tests_;
  while (true) {
    std::vector<Id> open;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const Asked& asked = asked_[ids[i]];
      const double odds = prior + evidence(ids[i]);
      asked_[ids[i]].belief = chance_of(odds);
      const bool tested = !asked.readings.empty();
      if (tested && odds >= sure_of_wall) {
        verdicts[i] = Verdict::kWall;
      } else if (tested && odds <= -sure) {
        verdicts[i] = Verdict::kClear;
      } else if (asked.refused || (!tested && asked.too_short >= kMostTooShort)) {
        verdicts[i] = Verdict::kUntestable;
      } else if (hopeless(ids[i])) {
        verdicts[i] = Verdict::kUndecided;
      } else {
        open.push_back(ids[i]);
      }
    }
    if (open.empty()) return verdicts;
    if (auto still = stay(tests_ - begun); !still) return pass_on(still);
    if (std::ssize(open) > options_.batch) open.resize(static_cast<std::size_t>(options_.batch));
    ask_baseline_first(open);
    ask_several_times(open);
    if (auto done = measure(open, why); !done) return pass_on(done);
  }
}

Result<Verdict> Session::decide(Id id, double before, double error, const std::string& why,
                                std::optional<double> error_of_wall) {
  auto verdicts = decide(std::vector<Id>{id}, before, error, why, error_of_wall);
  if (!verdicts) return pass_on(verdicts);
  return verdicts->front();
}

std::optional<Id> Session::clear_beside(Id wall, double evidence) const {
  for (std::size_t place = first_ordered_; place < readings_.size(); ++place) {
    const Id id = reading_ids_[place];
    if (id != wall && id != baseline_ && is_clear(place, evidence)) return id;
  }
  return std::nullopt;
}

std::vector<double> Session::scores_of(Id id) const {
  std::vector<double> scores;
  for (const std::size_t place : asked_[id].readings) {
    const Reading& reading = readings_[place];
    if (!reading.failed && !reading.ignored) scores.push_back(reading.score - model_.offset(place));
  }
  return scores;
}

std::size_t Session::failures_of(Id id) const {
  return static_cast<std::size_t>(
      std::count_if(asked_[id].readings.begin(), asked_[id].readings.end(),
                    [&](std::size_t place) { return readings_[place].failed; }));
}

bool Session::has_wall_but(Id id) const {
  for (Id other = 0; other < asked_.size(); ++other) {
    if (other != id && tests_of(other) > 0 && evidence(other) > kSurelyWall) return true;
  }
  return false;
}

Session::Spread Session::spread_of_repeats() const {
  Spread spread;
  for (Id id = 0; id < asked_.size(); ++id) {
    const std::vector<double> scores = scores_of(id);
    if (scores.size() < 2) continue;
    spread.squares += statistics::squares_of(scores);
    spread.freedom += static_cast<double>(scores.size()) - 1.0;
  }
  return spread;
}

bool Session::is_noisy(Id wall, bool beside_least) const {
  for (Id id = 0; id < asked_.size(); ++id) {
    const bool seen = beside_least && tests_of(id) >= kOwnTests && evidence(id) > kSurelyWall;
    std::vector<double> scores = id == wall || seen ? scores_of(id) : std::vector<double>();
    if (scores.empty()) continue;
    std::sort(scores.begin(), scores.end());
    const double depth = std::max(scores[scores.size() / 2], model_.bound()) - model_.baseline();
    if (model_.sigma() > (id == wall && beside_least ? kLargeNoise : kLargeForLeast) * depth)
      return true;
  }
  return false;
}

Ratio Session::ratio_of(Id id) const {
  std::vector<double> scores = scores_of(id);
  if (scores.empty()) return {0.0, 0.0, 0.0};
  // The median: a stall must not set the effect.
  std::sort(scores.begin(), scores.end());
  const double middle = scores.size() % 2 == 1
                            ? scores[scores.size() / 2]
                            : (scores[scores.size() / 2 - 1] + scores[scores.size() / 2]) / 2.0;
  const double of_baseline = static_cast<double>(scores_of(baseline_).size());
  const double error = model_.sigma() * std::sqrt(1.0 / static_cast<double>(scores.size()) +
                                                  1.0 / std::max(1.0, of_baseline));
  const double half = error * statistics::student_upper_quantile((1.0 - options_.confidence) / 2.0,
                                                                 model_.freedom());
  const double expected = is_relative(campaign_.wall) ? model_.scale().value(model_.baseline())
                                                      : model_.scale().value(model_.bound());
  const auto ratio = [&](double score) { return model_.scale().value(score) / expected; };
  return {ratio(middle), std::min(ratio(middle - half), ratio(middle + half)),
          std::max(ratio(middle - half), ratio(middle + half))};
}

std::vector<std::string> notes_of_device(const Session& session) {
  std::vector<std::string> notes;
  const ValueModel& model = session.model();
  if (model.drift() > 3.0 * model.sigma() / std::sqrt(12.0)) {
    notes.push_back(fmt::format(
        "the device drifted by about {:.0f} % over the tests; each was judged against its own time",
        100.0 * std::expm1(model.drift())));
  }
  if (session.waited_for_nothing()) {
    notes.push_back(
        "noise explains that the baseline was slow after a wall, so nothing was waited for later");
  }
  if (model.stall_rate() > 0.025) {
    notes.push_back(fmt::format("about {:.0f} % of the tests stalled whatever was set",
                                100.0 * model.stall_rate()));
  }
  return notes;
}

}  // namespace greynic::causal
