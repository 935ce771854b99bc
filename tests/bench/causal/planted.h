#pragma once

/// Planted walls with exact truth: a device of settings, causes, noise and nuisances, its campaign,
/// a witness, and how many tests information theory allows. Shares no code with the engine: truth
/// is kept as sets of levels, and an answer is right when it allows the very same levels.

#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "greynic/causal/explain.h"

namespace greynic::bench {

/// What a family of cases has; a case draws the rest.
struct Family {
  std::string name;
  int least_factors = 20;
  int most_factors = 192;
  int least_order = 1;
  int most_order = 4;
  int least_causes = 1;
  int most_causes = 1;
  bool numbers = false;    ///< thresholds and intervals on 8 to 64 levels, sets of levels
  double intervals = 0.0;  ///< share of numeric terms with two ends
  bool overlap = false;    ///< causes may share settings
  std::vector<double> noise = {0.03};
  double least_drop = 0.12;
  double most_drop = 0.55;
  double most_stalls = 0.0;
  double most_timeouts = 0.0;
  int most_forbidden = 0;
  bool emergent = false;
  bool false_alarm = false;
  bool sum = false;
  double drift = 0.0;     ///< of the baseline over 100 tests, in logarithms
  int sticky = 0;         ///< tests that stay slow after a wall
  int most_sticky = 0;    ///< where it is more: a case draws how many
  bool absolute = false;  ///< the bound
  int most_decoys = 0;    ///< innocent factors that go with the wall in a log of stored runs
  /// Share of the log's runs that something outside the campaign made slow, decoys with them.
  double troubled = 0.0;
  bool healed = false;   ///< a setting of the witness heals the cause, and another one undoes that
  bool hidden = false;   ///< one more cause, of one term, that a setting of the witness heals
  bool slopes = false;   ///< numeric terms bring the wall level by level
  bool planned = false;  ///< triples are walked in place of a witness
};

/// Those of the benchmark.
[[nodiscard]] std::vector<Family> families();

/// The levels of one factor, by index, under which a planted term holds.
struct PlantedTerm {
  std::size_t factor = 0;
  std::set<std::size_t> levels;
};

struct PlantedCause {
  std::vector<PlantedTerm> terms;
  std::vector<PlantedTerm> healers;  ///< where one of them holds, the terms bring no wall,
  std::vector<PlantedTerm> undoers;  ///< unless one of these does too
  bool emergent = false;
  /// A sum of two numeric factors, in place of terms about each; `least` of the sum.
  std::vector<std::size_t> sum;
  double least = 0.0;
  double drop = 0.3;
};

class PlantedCase {
 public:
  PlantedCase(const Family& family, std::uint64_t seed);

  [[nodiscard]] Observation measure(const Configuration& configuration);
  /// Measures this case, which must outlive it. Constraints are the caller's.
  [[nodiscard]] causal::Laboratory laboratory();
  /// Whatever an earlier wall left.
  void reset() { slow_for_ = 0; }
  [[nodiscard]] bool is_wall(const Configuration& configuration) const;
  /// Tests that information theory allows: (bits of structure and levels, and a certificate) over
  /// the capacity of one test.
  struct Bound {
    double structure = 0.0;
    double levels = 0.0;
    double certificate = 0.0;
    [[nodiscard]] double all() const { return structure + levels + certificate; }
  };
  [[nodiscard]] Bound bound() const;
  [[nodiscard]] bool allowed(const Configuration& configuration) const;
  /// Every cause named, nothing else, each with the very levels.
  [[nodiscard]] bool exact(const causal::Explanation& explanation) const;
  /// Every cause's factors named, nothing else.
  [[nodiscard]] bool structure(const causal::Explanation& explanation) const;
  [[nodiscard]] bool right(const causal::Cause& cause) const;
  [[nodiscard]] std::string truth() const;

  Campaign campaign;
  Configuration witness;
  std::vector<PlantedCause> causes;
  std::vector<Observation> log;  ///< runs that were stored before
  int tests = 0;

 private:
  void make_factors();
  void make_causes();
  void make_healers(std::vector<std::size_t>& free);
  [[nodiscard]] PlantedTerm term_of(std::size_t factor);
  [[nodiscard]] PlantedTerm take_term(std::vector<std::size_t>& free);
  void make_sum(PlantedCause& cause, std::vector<std::size_t>& free);
  void make_forbidden();
  void make_log();
  [[nodiscard]] Configuration run_of_log(bool wall);
  [[nodiscard]] bool holds(const PlantedTerm& term, const Configuration& configuration) const;
  [[nodiscard]] bool holds(const PlantedCause& cause, const Configuration& configuration) const;
  [[nodiscard]] double depth(const PlantedTerm& term, const PlantedCause& cause,
                             const Configuration& configuration) const;
  [[nodiscard]] double left_by(const PlantedCause& cause, const Configuration& configuration) const;
  [[nodiscard]] bool names_healer(const PlantedCause& planted, const causal::Condition& one) const;
  [[nodiscard]] bool same_pairs(const PlantedCause& planted, const causal::Cause& cause) const;
  [[nodiscard]] bool same(const PlantedCause& planted, const causal::Cause& cause) const;
  [[nodiscard]] std::size_t below(std::size_t bound) { return random_() % bound; }
  [[nodiscard]] double uniform(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random_);
  }

  Family family_;
  std::mt19937_64 random_;
  double noise_ = 0.03;
  double stalls_ = 0.0;
  double timeouts_ = 0.0;
  double drift_ = 0.0;
  int slow_after_ = 0;           // a wall, tests
  int slow_for_ = 0;             // tests more
  double steepest_clear_ = 0.0;  // of the bound, in logarithms: the last level before a wall
  bool product_ = false;
  std::vector<std::size_t> of_baseline_;  // level of each factor
  std::vector<std::size_t> of_witness_;
};

}  // namespace greynic::bench
