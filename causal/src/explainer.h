#pragma once

/// Explains with a laboratory: judges a witness, a run's configurations or a plan's, and finds the causes of what
/// is a wall. What a plan asks beyond that is in explain_plan.cc.

#include "explain_tested.h"
#include "replay.h"
#include "session.h"
#include "steps/witness_search.h"
#include "wall_check.h"

namespace greynic::causal {

/// Odds that a configuration of a plan is a wall.
inline constexpr double kWallInPlan = 0.1;

class Explainer {
 public:
  Explainer(const Campaign& campaign, const Configuration& baseline, const ExplainOptions& options,
            const Laboratory& laboratory)
      : campaign_(campaign),
        baseline_(baseline),
        options_(options),
        replay_(laboratory, options),
        laboratory_(laboratory),
        session_(campaign, baseline, options, laboratory_),
        explanation_(explanation_of(campaign, baseline, options)) {
    laboratory_.measure = [this](std::span<const Configuration> wanted) {
      return replay_.measure(wanted);
    };
  }

  [[nodiscard]] Result<Explanation> run(std::span<const Observation> observations);

 private:
  void take(std::span<const Observation> observations);
  [[nodiscard]] Result<void> judge_witness();
  /// What was known before a wall was explained.
  struct Before {
    std::size_t walls = 0, causes = 0, waiting = 0, notes = 0;
    bool all_complete = true;
    double complete = 1.0;
  };
  [[nodiscard]] Result<void> explain_checked(Id id, const WallCheck& likely);
  [[nodiscard]] Result<void> confirm(Id id, const Before& before);
  [[nodiscard]] Result<void> judge_run();
  [[nodiscard]] Result<void> walk_plan();
  [[nodiscard]] Result<bool> baseline_was_slow(std::span<const Configuration> judged);
  [[nodiscard]] Result<void> look_at_first_wall(Id id);
  [[nodiscard]] Result<void> judge_row(const Configuration& row, double error);
  [[nodiscard]] Result<WallCheck> settle_row(Id id);
  [[nodiscard]] Result<void> ask_what_waited();
  void sort_out(Id id, Verdict verdict);
  [[nodiscard]] Wall wall_of(Id id) const;
  void add_wall(Id id);
  void assign_causes();
  [[nodiscard]] Result<void> explain_walls();
  [[nodiscard]] Result<void> explain_wall(const Configuration& wall);
  [[nodiscard]] Result<void> tell(const Configuration& wall, Settings& settings,
                                  CausesOfWall& found);
  void note_hidden(Settings& settings, const CausesOfWall& found);
  [[nodiscard]] Result<CausesOfWall> causes_of(Settings& settings);
  [[nodiscard]] Result<CausesOfWall> causes_by_all_tests(Settings& settings);
  [[nodiscard]] Result<void> add_levels(const CausesOfWall& found, Settings& settings,
                                        std::vector<Cause>& causes);
  [[nodiscard]] bool is_explained(const Configuration& configuration) const;
  void keep_evidence(Cause& cause, const FoundCause& found, const CausesOfWall& all,
                     Settings& settings);
  [[nodiscard]] Evidence evidence_of(Id id, const std::string& role) const;
  [[nodiscard]] Result<bool> clears(Cause& cause, const Configuration& wall,
                                    const Condition& exception);
  void finish();
  [[nodiscard]] Result<void> look_around();

  const Campaign& campaign_;
  Configuration baseline_;
  const ExplainOptions& options_;
  Replay replay_;
  Laboratory laboratory_;
  Session session_;
  Explanation explanation_;
  std::vector<Id> of_run_;
  std::vector<Configuration> clear_;
  std::vector<bool> given_up_;
  /// A wall whose search left questions to the rows of the plan.
  struct Waiting {
    Configuration wall;
    Settings settings;
    CausesOfWall found;
    std::size_t first = 0;  ///< of its causes in the explanation
  };
  std::vector<Waiting> waiting_;
  std::size_t too_short_ = 0;
  bool walks_plan_ = false;
  bool knows_walls_ = false;            ///< one row of the plan was checked by itself
  std::optional<double> error_of_row_;  ///< that is judged as such rows are
  bool all_complete_ = true;
  bool sure_of_wall_ = true;  ///< of the one that is explained; it may be likely only
  double complete_ = 1.0;
};

}  // namespace greynic::causal
