#pragma once

/// Asks the laboratory and keeps what it said: every test with its configuration, and how much all
/// tests of a configuration speak for a wall.
///
/// Two kinds of questions build on it. decide() asks about one configuration until the odds are
/// sure. first_wall() asks where a row of configurations, each with more of the wall's settings
/// than the one before, turns into a wall: it keeps the odds of every place and tests where they
/// are halved, so one wrong answer costs a few tests and never a wrong path.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "greynic/causal/explain.h"
#include "values/value_model.h"

namespace greynic::causal {

/// Of what lies between baseline and wall: larger noise makes single answers wrong too often.
inline constexpr double kLargeNoise = 0.26;
/// The same, of the least deep wall that was seen: step by step is the better way for longer there.
inline constexpr double kLargeForLeast = 0.4;
/// Tests of baseline and wall in one batch.
inline constexpr int kMostTogether = 8;

/// A configuration that was asked about, by number.
using Id = std::size_t;

enum class Verdict { kClear, kWall, kUndecided, kUntestable };

/// What a row grows towards, without what one of its steps adds: if that is the first wall, this is clear,
/// unless there is a further cause.
struct HealedStep {
  std::size_t step = 0;
  Id id = 0;
};

/// Where a row of configurations turns into a wall.
struct Row {
  std::vector<Id> steps;       ///< each is a wall if the one before it is
  std::vector<double> before;  ///< odds, before any test, that each step is the first wall
  double never = 0.01;         ///< odds that none is
  std::string why;
  /// Where few steps are left, one of them may be healed in place of a further step: that answer serves
  /// elsewhere too. Empty: only steps are asked.
  std::function<std::optional<Id>(std::size_t step)> heal;
  Id whole = 0;          ///< the wall that is healed there
  double further = 0.0;  ///< odds that it holds a further cause: then it may stay one
  /// The first step is asked by itself where it is likely enough: its answer serves elsewhere too.
  bool ask_first = false;
  /// The last step was shown to be a wall before, whatever this row says.
  bool last_is_known = false;
};

struct Place {
  std::size_t step = 0;
  double confidence = 0.0;
  bool never = false;    ///< no step is a wall
  double further = 0.0;  ///< odds of a further cause, by what was healed
};

/// How often one of two equally likely answers is right, as odds.
[[nodiscard]] double chance_of(double log_odds);

class Session {
 public:
  Session(const Campaign& campaign, const Configuration& baseline, const ExplainOptions& options,
          const Laboratory& laboratory);

  /// A test of the run: evidence from the start.
  void read(const Observation& observation);
  /// The scores start from the first value of the baseline. kNotMeasured when it gives none. Where
  /// the laboratory takes several tests at a time, what may be a wall is tested in turn with it, and
  /// what is `beside` them in one batch with them.
  [[nodiscard]] Result<void> begin(std::optional<Id> wall = {}, const std::vector<Id>& beside = {});

  [[nodiscard]] Id id_of(const Configuration& configuration);
  [[nodiscard]] const Configuration& configuration(Id id) const { return asked_[id].what; }

  /// One test of each; together they are one round.
  [[nodiscard]] Result<void> measure(std::span<const Id> ids, const std::string& why);

  /// log odds of all tests of it.
  [[nodiscard]] double evidence(Id id) const {
    return by_bound_ ? asked_[id].by_bound : asked_[id].evidence;
  }
  [[nodiscard]] std::size_t tests_of(Id id) const { return asked_[id].readings.size(); }
  [[nodiscard]] bool was_tested(const Configuration& configuration) const {
    const auto known = ids_.find(configuration.name());
    return known != ids_.end() && tests_of(known->second) > 0;
  }
  [[nodiscard]] bool too_short(Id id) const {
    return asked_[id].readings.empty() && asked_[id].was_short;
  }
  /// It was tested here, not only in a run that was read.
  [[nodiscard]] bool was_ordered(Id id) const {
    return tests_of(id) > 0 && asked_[id].readings.back() >= first_ordered_;
  }
  /// Another configuration is surely a wall.
  [[nodiscard]] bool has_wall_but(Id id) const;
  [[nodiscard]] bool refused(Id id) const { return asked_[id].refused; }
  void believe(Id id, double wall) { asked_[id].belief = wall; }
  /// Configurations that were asked about.
  [[nodiscard]] std::size_t asked() const { return asked_.size(); }
  /// Beliefs are somebody else's to make: the odds of each configuration are not learned.
  void judge_by_belief(bool on) { by_belief_ = on; }
  void judge_by_bound(bool on) { by_bound_ = on; }
  /// The beliefs after the last round, for the trail.
  void note_beliefs();
  /// log odds of a configuration, made elsewhere.
  void judge(Id id, double evidence) { asked_[id].evidence = asked_[id].by_bound = evidence; }

  /// Whether each is a wall; `before` is the chance that it is, before any test. `error_of_wall`: where more
  /// questions follow on a wall, that would show the error.
  [[nodiscard]] Result<std::vector<Verdict>> decide(const std::vector<Id>& ids, double before,
                                                    double error, const std::string& why,
                                                    std::optional<double> error_of_wall = {});
  [[nodiscard]] Result<Verdict> decide(Id id, double before, double error, const std::string& why,
                                       std::optional<double> error_of_wall = {});
  [[nodiscard]] Result<Place> first_wall(const Row& row, double error);
  /// What first_wall() would ask next; nothing where it knows.
  [[nodiscard]] std::optional<Id> next_question(const Row& row) const;

  /// Scores of the tests of one configuration, without drift; failures are left out.
  [[nodiscard]] std::vector<double> scores_of(Id id) const;
  [[nodiscard]] std::size_t failures_of(Id id) const;
  [[nodiscard]] std::string failure_of(Id id) const { return asked_[id].failure; }
  /// The metric over the baseline (or the absolute bound) at this configuration.
  [[nodiscard]] Ratio ratio_of(Id id) const;
  /// Noise is large beside the depth of a wall, or of the least one that was seen since: single
  /// answers are often wrong. A wall of several causes is deeper than each of them.
  [[nodiscard]] bool is_noisy(Id wall, bool beside_least = true) const;
  /// Questions that take long end with kAllowanceSpent where noise turned out to be large beside the
  /// depth of this wall.
  void leave_when_noisy(std::optional<Id> wall) {
    leave_when_noisy_ = wall;
    leave_from_ = tests_;
    left_ = left_ && !wall;
  }
  /// It did, the last time.
  [[nodiscard]] bool left_for_noise() const { return left_; }
  /// How many tests the causes of a wall take that differs from the baseline in so many settings, if
  /// it has two causes of three terms, thresholds with them: their bits over what a test tells.
  [[nodiscard]] std::size_t usual_tests(Id wall, std::size_t settings) const;
  [[nodiscard]] ValueModel& model() { return model_; }
  [[nodiscard]] const ValueModel& model() const { return model_; }
  [[nodiscard]] Id baseline() const { return baseline_; }

  /// After a wall the device stays slow for a while: wait until the baseline is back before each
  /// test that follows a wall. Where its tests turn out to be one heap, nothing is waited for any more.
  /// `slow`: tests of the baseline after the first wall.
  void wait_for_recovery(std::size_t slow) {
    sticky_ = true;
    slow_waits_ = slow;
    waits_ = 1;
  }
  /// Tests of the baseline that were as slow as it is after a wall, before that was known, say nothing. True
  /// where there were some: what was held against them is not known.
  bool ignore_slow_baseline();
  [[nodiscard]] bool baseline_was_slow() const { return baseline_was_slow_; }
  [[nodiscard]] bool waited_for_nothing() const { return waited_for_nothing_; }
  [[nodiscard]] bool waits() const { return sticky_; }
  /// One slow test was seen between two fast ones, so the device is not slow for a while after a wall.
  [[nodiscard]] bool recovers_at_once() const;
  /// Of configurations that were tested here but for these two, the first that is clear.
  [[nodiscard]] std::optional<Id> clear_beside(Id wall, double evidence) const;
  [[nodiscard]] bool last_is_slow() const;
  [[nodiscard]] double slow_from() const;
  /// It did not come back by itself (symptom S9).
  void call_stuck() { stuck_ = true; }
  [[nodiscard]] bool is_stuck() const { return stuck_; }
  /// The baseline is a wall by now, so nothing can be held against it.
  void lose_baseline() { lost_baseline_ = true; }
  [[nodiscard]] bool lost_baseline() const { return lost_baseline_; }
  /// These tests say nothing of their configurations.
  void ignore(std::span<const std::size_t> places);
  [[nodiscard]] const std::vector<std::size_t>& places_of(Id id) const {
    return asked_[id].readings;
  }
  [[nodiscard]] std::size_t last() const { return readings_.size() - 1; }
  /// The first test that was ordered here; those before it were read from a run.
  [[nodiscard]] std::size_t first_ordered() const { return first_ordered_; }
  [[nodiscard]] const Reading& reading(std::size_t place) const { return readings_[place]; }
  /// By all tests of the configuration that was tested there.
  [[nodiscard]] bool is_clear(std::size_t place, double evidence) const {
    return this->evidence(reading_ids_[place]) < evidence;
  }
  void refit();

  /// So many tests more, and kAllowanceSpent after them; nothing: as many as the options allow.
  void allow(std::optional<std::size_t> tests);
  [[nodiscard]] std::size_t tests() const { return tests_; }
  [[nodiscard]] std::size_t rounds() const { return rounds_; }
  [[nodiscard]] const std::vector<TrailTest>& trail() const { return trail_; }
  [[nodiscard]] const ExplainOptions& options() const { return options_; }
  [[nodiscard]] const Campaign& campaign() const { return campaign_; }
  [[nodiscard]] const Laboratory& laboratory() const { return laboratory_; }

 private:
  struct Asked {
    Configuration what;
    std::vector<std::size_t> readings;
    double evidence = 0.0;
    double by_bound = 0.0;
    double known = 0.0;  // share of its mean that others have too
    double belief = 0.5;
    bool refused = false;
    bool was_short = false;  // nothing completed
    int too_short = 0;       // how often, since it was asked for
    std::string failure;
  };
  void add(Id id, const Observation& observation);
  [[nodiscard]] Result<void> recover();
  [[nodiscard]] Result<void> recover_from(Id id);
  [[nodiscard]] bool baseline_has_two_heaps() const;
  /// Scores of a baseline that is back after a wall.
  struct Back {
    double sure = 0.0, likely = 0.0;
  };
  [[nodiscard]] Back back() const;
  void stop_waiting();
  [[nodiscard]] bool hopeless(Id id) const;
  /// Of scores about the mean of their configuration.
  struct Spread {
    double squares = 0.0, freedom = 0.0;
  };
  [[nodiscard]] Spread spread_of_repeats() const;
  /// Fails where it is time to leave because of noise.
  [[nodiscard]] Result<void> stay(std::size_t tests_of_question);
  /// The baseline in place of what waits for it: its mean, and so the bound, is known less well. All
  /// wait where many tests of different configurations left them open: they may all lean on a baseline that is wrong.
  void ask_baseline_first(std::vector<Id>& next) const;
  void ask_several_times(std::vector<Id>& next) const;
  /// All answers of a long row lean on the baseline's mean.
  [[nodiscard]] bool baseline_is_vague(std::size_t tests_of_row) const;
  struct RowOdds {
    std::vector<double> first;  // chance of each step to be the first wall; last: that none is
    double further = 0.0;
  };
  [[nodiscard]] RowOdds odds_of(const Row& row, const std::vector<HealedStep>& healed) const;
  [[nodiscard]] double further_by_depth(const Row& row,
                                        const std::vector<HealedStep>& healed) const;
  [[nodiscard]] std::optional<HealedStep> worth_healing(const Row& row, const RowOdds& odds) const;
  [[nodiscard]] std::vector<Id> seen_once(const Row& row, const Place& place) const;
  [[nodiscard]] std::vector<Id> questions(const Row& row, const std::vector<double>& chances) const;

  const Campaign& campaign_;
  const ExplainOptions& options_;
  const Laboratory& laboratory_;
  ValueModel model_;
  std::vector<Asked> asked_;
  std::map<std::string, Id> ids_;
  std::vector<Reading> readings_;
  std::vector<Id> reading_ids_;
  std::vector<double> values_;  // of readings, as measured
  std::vector<TrailTest> trail_;
  Id baseline_ = 0;
  bool begun_ = false;
  bool by_belief_ = false;
  bool by_bound_ = false;
  bool sticky_ = false;
  bool waited_for_nothing_ = false;
  bool baseline_was_slow_ = false;
  std::size_t waits_ = 0;       ///< for the device to recover,
  std::size_t slow_waits_ = 0;  ///< and tests of the baseline that were slow then
  bool stuck_ = false;
  bool lost_baseline_ = false;
  std::size_t tests_ = 0;
  std::optional<std::size_t> give_up_at_;
  std::size_t open_since_baseline_ = 0;  ///< tests that left open what they asked
  std::optional<Id> leave_when_noisy_;
  std::size_t leave_from_ = 0;
  bool left_ = false;
  std::size_t rounds_ = 0;
  std::size_t first_ordered_ = 0;
};

/// As long as it lives, answers may lie anywhere near the bound (MeanMixture::evidence_by_bound).
class JudgingByBound {
 public:
  explicit JudgingByBound(Session& session) : session_(session) { session_.judge_by_bound(true); }
  ~JudgingByBound() { session_.judge_by_bound(false); }
  JudgingByBound(const JudgingByBound&) = delete;
  JudgingByBound& operator=(const JudgingByBound&) = delete;

 private:
  Session& session_;
};

/// What was seen of the device whatever was set: drift, stalls.
[[nodiscard]] std::vector<std::string> notes_of_device(const Session& session);

}  // namespace greynic::causal
