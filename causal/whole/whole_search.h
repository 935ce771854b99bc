#pragma once

/// Every cause of one wall with its levels, where noise is large: each test is held against all
/// likely answers at once (structures.h), and the next test is the one they disagree on most.
///
/// Tests are sets of the wall's settings, half of which the likely answers call walls; the wall with
/// all causes healed; the terms alone; and, once the settings are fairly sure, levels of each term.
/// The search ends when one answer has the asked confidence, with the chance counted in that the
/// healed wall holds a further cause; or when tests contradict every answer.

#include <map>

#include "depths.h"
#include "lanes.h"
#include "steps/witness_search.h"
#include "structures.h"

namespace greynic::causal {

class WholeSearch {
 public:
  /// `sure`: that the wall is one. Where it is only likely, that is checked before long.
  WholeSearch(Session& session, Settings& settings, bool sure);
  /// kAllowanceSpent ends the search inside: the likeliest answer stands, incomplete.
  [[nodiscard]] Result<CausesOfWall> causes();

 private:
  struct Candidate {
    Positions positions;
    const char* why = "";
    std::vector<float> walls;  // by each of the sample
    double further = 0.0;      // chance that it is a wall by a cause that none of them has
  };
  [[nodiscard]] std::optional<Positions> positions_of(const Configuration& configuration) const;
  [[nodiscard]] Configuration configuration_of(const Positions& positions) const;
  [[nodiscard]] std::optional<Id> id_of(Positions& positions);
  void read_tests();
  void learn(int steps);
  void begin_anew();
  static void believe(const Structures& structures, std::vector<Tested>& tested);
  void believe();
  void judge_rivals();
  [[nodiscard]] double by_own(const std::vector<TestSet>& causes) const;
  [[nodiscard]] bool stands();
  [[nodiscard]] std::vector<Id> doubtful_healing();
  [[nodiscard]] bool is_sure() const;
  [[nodiscard]] bool is_contradicted() const;
  [[nodiscard]] bool is_resolved(const Structure& structure) const;
  void draw_sample();
  void ask(Candidate& one) const;
  void add(std::vector<Candidate>& all, Positions positions, const char* why, double further = 0.0);
  void add_halves(std::vector<Candidate>& all);
  [[nodiscard]] Positions terms_alone(const Conjunction& cause) const;
  [[nodiscard]] std::vector<Positions> terms_but_one(const Conjunction& cause) const;
  [[nodiscard]] bool may_be_healed(const Positions& part) const;
  [[nodiscard]] std::vector<Id> never_alone();
  [[nodiscard]] std::vector<Id> doubtful_parts();
  void add_checks(std::vector<Candidate>& all);
  void add_levels(std::vector<Candidate>& all, const Conjunction& cause, const Term& term);
  [[nodiscard]] double chance_in_sample(const Positions& positions) const;
  [[nodiscard]] std::vector<Candidate> candidates();
  [[nodiscard]] bool needs_baseline() const;
  [[nodiscard]] std::vector<Id> choose();
  [[nodiscard]] Result<void> check();
  [[nodiscard]] Result<void> search();
  [[nodiscard]] Condition condition_of(const Term& term) const;
  void conclude(CausesOfWall& found);

  Session& session_;
  Settings& settings_;
  std::vector<Lane> lanes_;
  Structures structures_;
  Depths depths_;
  std::vector<Id> ids_;  // of tests, as the structures count them
  std::map<Id, std::size_t> places_;
  std::vector<Tested> tested_;
  std::size_t begin_anew_at_ = 0;  // tests
  std::vector<std::pair<const Structure*, double>> sample_;
  const char* why_ = "";
  statistics::Random random_;
  bool is_wall_;
  bool sure_ = false;
};

}  // namespace greynic::causal
