#pragma once

/// Every cause of one wall, as sets of its settings.
///
/// A cause is found by growing the baseline towards the wall: the step at which the wall appears is
/// a term; what came before it is grown again from that term, until the terms alone bring the wall.
/// Then the wall is healed: for each smallest choice of settings that breaks all causes found, all
/// other settings stay at the wall's levels. What is still a wall holds a further cause; when all
/// are clear, the list is complete, and these tests are its certificate.
///
/// Example. {a, b} and {b, c} bring the wall among a, b, c, d.
///
///     a b c d   wall     no cause is known yet
///     a b       wall     grown: b is the last term, then a: {a, b}
///     b c d     wall     healed by a: a further cause, {b, c}
///     a c d     clear    healed by b
///     b d       clear    healed by a and c: complete, there are no more
///
/// Each step rests on the one before it. Where noise is large, that costs too many tests: the search
/// then ends, incomplete, and another takes over (whole_search.h).
///
/// A cause that healing another brings about (emergent) shows as a wall where that one is healed in
/// one way and not where it is healed in another; the setting that must be at the baseline's level
/// is searched for in the same manner and becomes a term.

#include <functional>

#include "group_search.h"
#include "src/settings.h"

namespace greynic::causal {

/// A cause of no more terms is asked without each of them, one of more without the first and the last.
inline constexpr std::size_t kFewTerms = 3;

struct FoundCause {
  Set terms;                 ///< settings at the wall's level
  Set closed;                ///< the least allowed set that holds them: where the cause is tested
  Set absent;                ///< settings that must be at the baseline's level: an emergent cause
  std::vector<Set> classes;  ///< settings that no allowed test tells apart; a term each
  double confidence = 1.0;
  std::vector<Condition> levels;  ///< of each term, where they are known already
};

/// A healed wall that was tested.
struct Healing {
  Set healed;
  Set kept;
  Verdict verdict = Verdict::kUndecided;
};

struct CausesOfWall {
  std::vector<FoundCause> causes;
  std::vector<Healing> certificate;
  bool complete = false;
  bool waits = false;         ///< questions on settings that heal were left to the rows of a plan
  bool contradicted = false;  ///< by tests: no answer that the search knows agrees with them
  double confidence = 1.0;    ///< that the list is complete
  double odds_of_any = 0.0;   ///< logarithm, of these causes against no wall at all; 0: not known
  std::vector<std::string> notes;
};

/// Are all settings of the one in the other?
inline bool holds(const Set& large, const Set& small) { return (small & ~large).none(); }

class WitnessSearch {
 public:
  /// `patient`: goes on where noise is large.
  WitnessSearch(Session& session, Settings& settings, bool patient = false);
  /// kAllowanceSpent ends the search inside: what was found stands, incomplete. `found`: what a search before
  /// this one found.
  [[nodiscard]] Result<CausesOfWall> causes(CausesOfWall found = {});
  /// What may heal a cause or hide one is not asked.
  void leave_healers_to_plan() { healers_wait_ = true; }
  /// What it asks before all else.
  [[nodiscard]] std::optional<Id> first_question();

 private:
  static constexpr double kStepError = 0.015;  // of one term: healing checks each again

  [[nodiscard]] Row row_of(const Growth& growth, const Set& terms);
  struct Step {
    Set from;
    Set to;
    Growth growth;
    Set terms;
    std::vector<Set> classes;
  };
  [[nodiscard]] Result<std::optional<FoundCause>> cause_within(const Set& wall);
  [[nodiscard]] Result<bool> stays_slow();
  [[nodiscard]] FoundCause all_of_cause(const Needed& needed, const Set& wall);
  [[nodiscard]] double odds_of_causes(const CausesOfWall& found) const;
  /// `needed`: terms that are known already.
  [[nodiscard]] Result<std::optional<FoundCause>> cause_within(const Set& wall, const Set& needed);
  [[nodiscard]] std::optional<Id> healed_step(const Set& wall, const Growth& growth,
                                              std::size_t step);
  [[nodiscard]] Result<void> heal(CausesOfWall& found);
  [[nodiscard]] Result<std::optional<Set>> first_not_healed(CausesOfWall& found,
                                                            bool at_once = false);
  [[nodiscard]] Result<void> add(CausesOfWall& found, FoundCause cause);
  [[nodiscard]] Result<bool> confirm(CausesOfWall& found);
  [[nodiscard]] std::optional<Set> without_term(const FoundCause& cause, std::size_t term);
  [[nodiscard]] bool may_be_healed_without(const FoundCause& cause, std::size_t term);
  [[nodiscard]] Result<bool> shrink(FoundCause& cause, const Set& shared, const Set& left_out);
  [[nodiscard]] Result<bool> drop_needless(CausesOfWall& found);
  [[nodiscard]] bool a_cause_was_healed(const CausesOfWall& found) const;
  [[nodiscard]] std::vector<Set> may_hide_causes(const CausesOfWall& found);
  [[nodiscard]] Result<bool> find_hidden(CausesOfWall& found);
  [[nodiscard]] Set never_kept(const CausesOfWall& found, const FoundCause& cause) const;
  [[nodiscard]] Result<void> check_emergence(CausesOfWall& found);
  [[nodiscard]] Result<void> doubt(CausesOfWall& found);
  [[nodiscard]] Result<void> find_absent(FoundCause& cause, Set kept);
  [[nodiscard]] std::vector<double> odds_before(const Growth& growth, std::size_t found) const;
  [[nodiscard]] Result<std::optional<std::size_t>> first_wall_of(const std::vector<Id>& ids,
                                                                 std::vector<Healing>& healings);
  [[nodiscard]] double odds_of_wall(Id healed) const;
  [[nodiscard]] double error_of(std::size_t answers) const;
  [[nodiscard]] bool is_noisy() const {
    return !patient_ && session_.is_noisy(session_.id_of(settings_.wall()));
  }

  Session& session_;
  Settings& settings_;
  bool patient_;
  bool healers_wait_ = false;
  bool looked_at_device_ = false;
  std::vector<std::string> notes_;
};

/// The smallest sets that share a setting with every one of `sets`; at most `most` of them.
[[nodiscard]] std::vector<Set> minimal_transversals(const std::vector<Set>& sets, std::size_t most);

}  // namespace greynic::causal
