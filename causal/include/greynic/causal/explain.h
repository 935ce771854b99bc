#pragma once

/// Explains a run: which configurations are walls, and which few settings make each wall appear.
///
/// A configuration is a wall when a one-sided t test says, with the stated confidence, that its
/// metric is worse than the campaign's bound. Its variance is shrunk towards the run's pooled one,
/// and Holm's procedure corrects for the number of configurations. Where nothing completed within
/// the measured time nothing is known, so the configuration is undecided.
///
/// With a laboratory, causes are found by experiment. Group testing (QuickXplain, about k log n
/// questions for k terms among n factors) finds a minimal set of factors whose levels bring the
/// wall. Then each term alone is put back, and the wall must vanish. Then numeric terms are
/// bisected to the level where the wall begins. Each answer is a sequential test, which repeats one
/// configuration until it is sure or its allowance is spent.
///
/// Example. The baseline is (message_bytes 65536, operation SEND, qp_count 1, masks 0), the wall
/// (64, READ, 64, 40); the device is slow with at least 8 QPs and at least 12 masks.
///
///     as in the wall, all else baseline    wall?       what follows
///     message_bytes, operation             no          the other half holds a term
///     message_bytes, operation, qp_count   no          masks is a term
///     message_bytes, operation, masks      no          qp_count is a term
///     qp_count, masks                      yes         the first half holds none
///     masks                                no          qp_count is confirmed
///     qp_count                             no          masks is confirmed
///     masks; qp_count at 8 3 6 7           8           it begins at 8, not at 7
///     qp_count; masks at 20 10 15 12 11    20 15 12    it begins at 12, not at 11
///
/// The cause: "qp_count >= 8 (clear at 7) and masks >= 12 (clear at 11)".
///
/// Without a laboratory, causes are the simplest conjunctions that hold on walls and on no clear
/// configuration of the run. They are called hypotheses, because nothing was removed to test them.
///
/// Clear configurations in which all terms of a cause hold contradict it. The level that they
/// share, and no wall of the cause has, becomes an exception ("unless operation = READ").
///
/// Not promised: a cause that a further setting hides is found only from walls in which it shows.

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "greynic/core/campaign.h"
#include "greynic/core/observation.h"
#include "greynic/core/result.h"

namespace greynic::causal {

enum class Relation : std::uint8_t { kEquals, kAtLeast, kAtMost };

/// One term of a cause: "server_decap_masks >= 12".
struct Condition {
  std::string factor;
  Relation relation = Relation::kEquals;
  FactorValue level;
  /// Numeric terms: the nearest level tested at which the wall was not there.
  std::optional<double> clear_level;
  /// Removing this term alone, all others kept, made the wall vanish.
  bool confirmed = false;

  [[nodiscard]] bool holds(const FactorValue& value) const;
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
  double confidence = 0.0;  ///< 1 minus the sum of the error probabilities of its evidence
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

struct Explanation {
  std::string campaign;
  std::string metric;
  std::string bound;          ///< the wall rule in words
  double expected = 0.0;      ///< baseline value, or the absolute bound
  double confidence = 0.0;    ///< asked for
  std::vector<Wall> walls;    ///< worst first
  std::vector<Cause> causes;  ///< most walls explained first
  std::size_t configurations = 0;
  std::size_t refused = 0;
  std::size_t undecided = 0;
  std::vector<Configuration> undecided_configurations;
  std::size_t tests_read = 0;     ///< observations given
  std::size_t tests_ordered = 0;  ///< observations the laboratory made
  std::vector<std::string> notes;
};

struct ExplainOptions {
  double confidence = 0.99;
  int most_repeats = 12;         ///< of one configuration, before an answer is left undecided
  std::size_t most_tests = 400;  ///< ordered from the laboratory in all
  int most_terms = 3;            ///< of a hypothesis without a laboratory
  /// Names of configurations that earlier explanations ordered: evidence, but none of the
  /// campaign's.
  std::set<std::string> ordered;
};

/// What the explanation may ask for. `measure` returns `count` further observations of one
/// configuration, measured longer where nothing completes in the campaign's time. `complete` makes
/// a whole valid configuration of a few levels, all others as near to the baseline as constraints
/// and conditional factors allow; nothing where they allow none (an empty function: the baseline's
/// levels fill in and all is allowed). `progress` may be empty.
struct Laboratory {
  std::function<Result<std::vector<Observation>>(const Configuration&, int count)> measure;
  std::function<std::optional<Configuration>(const Configuration& levels)> complete;
  std::function<void(std::size_t tests_ordered, const std::string& what)> progress;
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
