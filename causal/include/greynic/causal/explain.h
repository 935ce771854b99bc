#pragma once

/// Explains walls: which configurations are walls, and which few settings make each wall appear.
///
/// With a laboratory every answer comes from tests that are chosen one after the other (or a batch
/// at a time) where they are expected to tell most. A wall is first tested against the baseline.
/// Then all its causes are found: the baseline is grown towards the wall until the wall appears,
/// which gives one cause; the wall is healed of all known causes in every way there is, and what is
/// still a wall holds a further one. When every healed wall is clear, the list is complete. Last,
/// the campaign's levels are searched for where each term begins and ends. No answer is final: the
/// odds of every place stay, and a wrong test is outvoted by those after it.
///
/// Example. The baseline is (message_bytes 65536, operation SEND, qp_count 1, masks 0), the wall
/// (64, READ, 64, 40); the device is slow with at least 8 QPs and at least 12 masks. The campaign's
/// levels are 1 2 4 8 16 32 64 and 0 4 8 12 16 20 40.
///
///     as in the wall, all else baseline     wall?    what follows
///     masks, operation                      no       more of the wall is needed
///     masks, operation, message_bytes       no       qp_count is a term, as the last one added
///     qp_count, masks                       yes      neither of the others is needed
///     qp_count                              no       masks is a term
///     all but qp_count; all but masks       no; no   the list is complete
///     masks; qp_count at 8 4                8        it begins at 8, not at 4
///     qp_count; masks at 12 8               12       it begins at 12, not at 8
///
/// The cause: "qp_count >= 8 (clear at 4) and server_decap_masks >= 12 (clear at 8)".
///
/// Without a laboratory, causes are the simplest conjunctions that hold on walls and on no clear
/// configuration of the run. They are called hypotheses, because nothing was removed to test them.
/// A configuration is then a wall when a one-sided t test, corrected for their number by Holm's
/// procedure, says so.
///
/// Clear configurations in which all terms of a cause hold contradict it. The level that they
/// share, and no wall of the cause has, becomes an exception ("unless operation = READ").
///
/// Not promised: a cause in which a setting that the wall shares with the baseline takes part is
/// named without that setting.

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "greynic/causal/critical_path.h"
#include "greynic/causal/sensitivity.h"
#include "greynic/core/campaign.h"
#include "greynic/core/observation.h"
#include "greynic/core/result.h"

namespace greynic::causal {

enum class Relation : std::uint8_t {
  kEquals,
  kAtLeast,
  kAtMost,
  kIn,          ///< one of several levels
  kBetween,     ///< both ends included
  kSumAtLeast,  ///< the sum of this factor and others
};

/// Two levels, as near as they were asked for, between which a wall begins or ends.
struct Bracket {
  double clear = 0.0;
  double wall = 0.0;
};

/// One term of a cause: "server_decap_masks >= 12".
struct Condition {
  std::string factor;
  Relation relation = Relation::kEquals;
  FactorValue level;  ///< kBetween: the lower end; kSumAtLeast: of the sum
  /// Numeric terms: the nearest level tested at which the wall was not there.
  std::optional<double> clear_level;
  /// Removing this term alone, all others kept, made the wall vanish.
  bool confirmed = false;
  double upper = 0.0;                  ///< kBetween: the upper end
  std::optional<double> clear_above;   ///< kBetween: the nearest clear level above
  std::optional<Bracket> finer;        ///< between the campaign's levels, at clear_level
  std::optional<Bracket> finer_above;  ///< and at clear_above
  std::vector<FactorValue> among;      ///< kIn
  std::vector<std::string> with;       ///< kSumAtLeast: the other factors
  /// Factors that the constraints tie to this one: no allowed test tells them apart.
  std::vector<std::string> alike;

  /// Of a term about one factor.
  [[nodiscard]] bool holds(const FactorValue& value) const;
  [[nodiscard]] bool holds(const Configuration& configuration) const;
  [[nodiscard]] std::string text() const;
};

/// A measured ratio with its two-sided interval at the stated confidence. For absolute bounds it is
/// the metric divided by the bound.
struct Ratio {
  double value = 1.0;
  double low = 1.0;
  double high = 1.0;
};

struct Evidence {
  Configuration configuration;
  bool wall = false;
  bool decided = false;
  int tests = 0;
  double p_value = 1.0;  ///< of the side that was decided for
  Ratio ratio;
  std::string role;  ///< "all terms", "without operation", "bisecting qp_count"
};

struct Cause {
  std::vector<Condition> all_of;
  /// Levels under which the wall stays away although all terms hold, read from the clear
  /// configurations of the run; `confirmed` when a test from the baseline showed it.
  std::vector<Condition> unless;
  bool by_experiment = false;
  /// Healing another cause of the wall brings this one about.
  bool emergent = false;
  double confidence = 0.0;  ///< that every term and every threshold of it is right
  Ratio severity;           ///< metric over expected value where all terms hold
  std::size_t walls_explained = 0;
  std::vector<Evidence> evidence;

  [[nodiscard]] bool holds(const Configuration& configuration) const;
  [[nodiscard]] std::string text() const;
};

struct Wall {
  Configuration configuration;
  Ratio ratio;
  double p_value = 1.0;
  int tests = 0;
  std::string outcome;               ///< empty, or the failed outcome that makes it a wall
  std::optional<std::size_t> cause;  ///< index into Explanation::causes; empty: unexplained
};

enum class Finding : std::uint8_t { kWall, kFalseAlarm, kUndecided };
[[nodiscard]] std::string_view name_of(Finding finding);  ///< "wall"

/// One test of the trail: what was asked, why, and what it changed in belief.
struct TrailTest {
  Configuration configuration;
  std::string why;
  std::size_t round = 0;
  std::optional<double> value;  ///< of the metric
  std::string_view outcome;
  double before = 0.5;  ///< chance, by the tests of this configuration, that it is a wall
  double after = 0.5;
};

struct Explanation {
  std::string campaign;
  std::string metric;
  std::string bound;        ///< the wall rule in words
  double expected = 0.0;    ///< baseline value, or the absolute bound
  double confidence = 0.0;  ///< asked for
  Configuration baseline;
  Finding finding = Finding::kUndecided;
  std::vector<Wall> walls;    ///< worst first
  std::vector<Cause> causes;  ///< most walls explained first
  bool complete = false;      ///< healed of the causes, no wall is one, at the confidence below
  double complete_confidence = 0.0;
  /// A setting of a wall may heal what another one causes, and then the wall does not show it: the share of all
  /// such pairs that no clear test excludes, at the wall where it is largest. Nothing without tested causes.
  std::optional<double> hidden_left;
  std::size_t configurations = 0;
  std::size_t refused = 0;
  std::size_t undecided = 0;
  std::vector<Configuration> undecided_configurations;
  std::size_t tests_read = 0;     ///< observations given
  std::size_t tests_ordered = 0;  ///< observations the laboratory made
  std::size_t tests = 0;          ///< asked for by this explanation, made now or before
  std::size_t rounds = 0;         ///< batches of them
  std::vector<TrailTest> trail;
  std::optional<CriticalPath> path;  ///< of the worst wall, where it was asked for
  std::optional<Sensitivity> sensitivity;
  std::vector<std::string> notes;
};

struct ExplainOptions {
  double confidence = 0.99;
  int most_repeats = 300;           ///< of one configuration, before an answer is left undecided
  std::uint64_t most_tests = 4000;  ///< ordered from the laboratory in all
  int most_terms = 3;               ///< of a hypothesis without a laboratory
  int batch = 1;                    ///< tests that the laboratory takes at a time
  bool hidden = false;              ///< ask for causes that a wall of many settings itself heals
  double finer = 0.0;               ///< share of a level to which numbers are halved; 0: not at all
  bool critical_path = false;       ///< which stage holds the worst wall
  int sensitivity_rows = 0;         ///< of Sobol's design around it; 0: not asked for
  /// The wall to explain; empty: the run's, or what a plan finds.
  std::optional<Configuration> witness;
  /// Names of configurations that earlier explanations ordered: evidence, but none of the
  /// campaign's.
  std::set<std::string> ordered;
};

/// What the explanation may ask for; all but `measure` may be empty. `measure` makes one test of
/// each configuration, longer where nothing completes in the campaign's time. `complete` makes a
/// whole valid configuration of a few levels, all others as near to the baseline as constraints and
/// conditional factors allow; nothing where they allow none. `allows` says whether a whole
/// configuration is valid. `plan` gives configurations among which a wall may be found.
/// `reset` brings a device back that a wall left slow.
struct Laboratory {
  std::function<Result<std::vector<Observation>>(std::span<const Configuration>)> measure;
  std::function<std::optional<Configuration>(const Configuration& levels)> complete;
  std::function<bool(const Configuration& whole)> allows;
  std::function<Result<std::vector<Configuration>>()> plan;
  std::function<void(std::size_t tests, const std::string& what)> progress;
  std::function<Result<void>()> reset;
};

/// Errors: kNotMeasured (the baseline, or the metric), kBadInput (a relative bound of a baseline
/// that is not positive), and what the laboratory returns.
[[nodiscard]] Result<Explanation> explain(const Campaign& campaign,
                                          std::span<const Observation> observations,
                                          const ExplainOptions& options = {},
                                          const Laboratory* laboratory = nullptr);

/// The document of docs/formats/explanation.md.
[[nodiscard]] std::string to_json_text(const Explanation& explanation);

/// A few lines for people: walls, causes, evidence.
[[nodiscard]] std::string to_text(const Explanation& explanation);

}  // namespace greynic::causal
