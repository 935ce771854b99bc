#pragma once

/// One posterior over whole answers: which conjunctions of settings bring the wall, and between
/// which levels each term holds.
///
/// A structure is a list of causes; a cause is a list of terms; a term is a setting and the levels
/// of it that bring the wall. Every test speaks for or against every structure: those that say
/// "wall" there gain by its log odds. So no test is ever the answer to one question alone, and a
/// wrong one is outvoted wherever it matters.
///
/// There are far too many structures to list. Chains walk among them: one term is replaced by each
/// other setting in turn, one is added or dropped, a cause is added or dropped, an end of a term is
/// moved. Every structure that a chain looks at is kept, if it is likely, with its exact score; the
/// chance of a structure is its share of all that are kept.
///
/// Levels between two tested ones cannot be told apart. They are one class, and a term's end is
/// named by the level of the class that was tested as a wall.
///
/// A cause that healing another brings about (emergent) has a term that is absent: a setting of
/// another cause, which must be at the baseline's level.
///
/// Positions count levels from the baseline's side to the wall's and beyond, so a wall begins at
/// `from` and ends at `to`, whichever way the numbers run.

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "greynic/statistics/random.h"
#include "views.h"

namespace greynic::causal {

/// What a structure must know of the levels of one setting.
struct Axis {
  bool ordered = false;  ///< numbers; categories otherwise
  int base = 0;          ///< position of the baseline's level
  int wall = 1;
  int last = 1;
};

using Positions = std::vector<std::uint16_t>;  ///< one for each setting

/// The tests that a structure says are walls.
class TestSet {
 public:
  static constexpr std::size_t kWords = 32;
  static constexpr std::size_t kMost = 64 * kWords;
  void set(std::size_t test) { words_[test / 64] |= std::uint64_t{1} << (test % 64); }
  [[nodiscard]] bool has(std::size_t test) const { return words_[test / 64] >> (test % 64) & 1; }
  [[nodiscard]] std::uint64_t word(std::size_t i) const { return words_[i]; }
  std::uint64_t& word(std::size_t i) { return words_[i]; }

 private:
  std::array<std::uint64_t, kWords> words_{};
};

struct Term {
  std::uint16_t setting = 0;
  std::int16_t from = 0;
  std::int16_t to = 0;
  std::uint64_t among = 0;  ///< categories: positions that bring the wall
  friend bool operator==(const Term&, const Term&) = default;
};
using Conjunction = std::vector<Term>;  ///< in the order of settings

struct Structure {
  std::vector<Conjunction> causes;
  double before = 0.0;  ///< logarithm of its odds before any test
  double score = 0.0;   ///< and after all
  double chance = 0.0;
  TestSet walls;
};

inline constexpr std::size_t kMostTerms = 8;
inline constexpr std::size_t kMostOfWall = 6;  ///< causes
/// Odds of a cause of so many terms, before any test.
inline constexpr std::array<double, kMostTerms + 1> kTermsBefore = {0.0,  0.22, 0.25,  0.22, 0.17,
                                                                    0.12, 0.01, 0.005, 0.005};
inline constexpr double kFarBehind = 13.0;  ///< behind the best, in logarithms: not kept
inline constexpr std::size_t kMostKept = 1500;
inline constexpr std::size_t kNoTerm = static_cast<std::size_t>(-1);

/// The setting is a term, or must be absent.
[[nodiscard]] bool has_setting(const Conjunction& cause, std::size_t setting);

/// The logarithm of the number of ways to choose k of n.
[[nodiscard]] double log_choose(double n, double k);

class Structures {
 public:
  explicit Structures(std::vector<Axis> axes);

  [[nodiscard]] std::size_t size() const { return axes_.size(); }
  /// A configuration that was tested, by the order of calls.
  std::size_t add_test(const Positions& positions);
  /// log p(readings | wall) - log p(readings | clear), of each test; the chains walk on from there.
  void weigh(const std::vector<double>& evidence, int steps);
  /// The same, where it is not known which of these views holds: scores are of all of them together.
  void weigh(const Views& views, int steps);

  /// Keeps what another one keeps, of the same tests; weigh() scores it.
  void adopt(const Structures& other);
  /// How far the baselines of views lie apart, by the likely answers: a standard error.
  [[nodiscard]] double baseline_error() const;
  /// Logarithm of the odds of all that are kept, together.
  [[nodiscard]] double log_odds() const;

  /// Judges the likeliest, so many of them, by what `by_own` says of the walls of each cause, how likely all
  /// tests are as a logarithm. The rest gains as much as these do in the mean.
  void judge_by_own(const std::function<double(const std::vector<TestSet>&)>& by_own,
                    std::size_t most);

  /// Answers that call much the same configurations walls as the likeliest does, each judged with what
  /// `by_own` says of the walls of each cause: those that come near it are likely, too.
  void judge_alike(const std::function<double(const std::vector<TestSet>&)>& by_own);
  [[nodiscard]] static std::vector<std::vector<Conjunction>> alike(
      const std::vector<Conjunction>& causes);

  /// Likely ones, likeliest first.
  [[nodiscard]] const std::vector<Structure>& likely() const { return likely_; }
  /// The chance that a configuration is a wall.
  [[nodiscard]] double chance_of(const Positions& positions) const;
  [[nodiscard]] double chance_of(const Structure& structure, const Positions& positions) const;
  /// The chance of the settings of the likeliest structure, wherever its terms end.
  [[nodiscard]] double chance_of_settings() const;
  /// How many levels the class of an end holds.
  [[nodiscard]] int open_before(const Term& term) const;
  /// It holds at the baseline's level.
  [[nodiscard]] bool is_absent(const Term& term) const {
    return axes_[term.setting].ordered ? term.from == axes_[term.setting].base : term.among == 1;
  }
  [[nodiscard]] int open_after(const Term& term) const;
  [[nodiscard]] bool was_tested(std::size_t setting, int position) const;
  /// The wall with all causes of the likeliest structure healed, in every least way.
  [[nodiscard]] const std::vector<Positions>& healed() const { return healed_; }
  /// The chance of each of them to be a wall still, by a cause that no kept structure has.
  [[nodiscard]] const std::vector<double>& further_at() const { return further_at_; }
  /// Odds that one of them is.
  [[nodiscard]] double further_cause() const { return further_; }
  [[nodiscard]] Positions all_at_wall() const;
  [[nodiscard]] Positions all_at_base() const;

 private:
  struct Seen {
    int position = 0;
    TestSet tests;
  };
  struct Chain {
    std::vector<Conjunction> causes;
    double score = 0.0;
    double heat = 1.0;
  };
  [[nodiscard]] bool holds(const Term& term, int position) const;
  [[nodiscard]] bool holds(const Structure& structure, const Positions& positions) const;
  [[nodiscard]] double share_of(const Term& term, int position) const;
  [[nodiscard]] TestSet tests_of(const Term& term) const;
  [[nodiscard]] TestSet tests_of(const Conjunction& cause, std::size_t but) const;
  [[nodiscard]] std::vector<TestSet> walls_of_each(const std::vector<Conjunction>& causes) const;
  [[nodiscard]] TestSet walls_of(const std::vector<Conjunction>& causes, std::size_t but) const;
  [[nodiscard]] double told_by(const TestSet& walls) const;
  void add_up(const TestSet& walls, std::vector<float>& sums) const;
  [[nodiscard]] double told_by_all(const TestSet& walls) const;
  [[nodiscard]] std::vector<double> odds_of_views(const TestSet& walls) const;
  void weigh_views();
  void choose_view(double heat);
  [[nodiscard]] static double odds_of_count(std::size_t causes);
  [[nodiscard]] double odds_before(const Term& term) const;
  [[nodiscard]] double odds_before(const std::vector<Conjunction>& causes) const;
  [[nodiscard]] double odds_of_order(const std::vector<Conjunction>& causes, std::size_t c) const;
  [[nodiscard]] std::vector<std::size_t> terms_of_others(const std::vector<Conjunction>& causes,
                                                         std::size_t c) const;
  [[nodiscard]] Term usual_term(std::size_t setting) const;
  void split(std::size_t setting, int position);
  void keep(const std::vector<Conjunction>& causes, double before, double score);
  void keep_always(const Structure& structure);
  void prune(std::size_t most);
  void step(Chain& chain);
  void move_term(Chain& chain, std::size_t cause, std::size_t but);
  void move_ends(Chain& chain, std::size_t cause, std::size_t term);
  void move_absent(Chain& chain, std::size_t cause);
  void add_cause(Chain& chain);
  void drop_cause(Chain& chain, std::size_t cause);
  [[nodiscard]] Conjunction random_cause(const Positions* within);
  void restart(Chain& chain);
  [[nodiscard]] std::size_t draw(const std::vector<double>& scores, double heat);
  void settle();
  void share_out();
  void heal();
  void doubt(const std::vector<std::vector<std::size_t>>& healings,
             const std::vector<std::vector<double>>& told);

  std::vector<Axis> axes_;
  std::vector<double> order_odds_;  // of a cause of so many terms, for each choice of settings
  std::vector<Positions> tests_;
  Views views_;
  std::vector<float>
      sums_;  // of evidence, for each byte of a TestSet, each value of it, and each view
  std::size_t view_ = 0;  // of the chain that walks
  std::vector<double> view_chances_;
  mutable std::vector<float> sums_of_views_;  // of the last answer: not made anew for each
  std::size_t words_ = 1;
  std::vector<std::vector<Seen>> seen_;  // of each setting, positions but the baseline's
  std::vector<Term> habits_;             // the ends of each setting's term, when last it was one
  std::unordered_map<std::string, Structure> kept_;
  double best_ = -1e300;
  std::vector<Chain> chains_;
  std::vector<Structure> likely_;
  std::vector<Positions> healed_;
  double further_ = 1.0;
  std::vector<double> further_at_;
  statistics::Random random_;
};

}  // namespace greynic::causal
