#pragma once

/// Finding one cause by experiment: group testing for a minimal set of factors, removal of each
/// term, bisection of numeric ones. Every question is one configuration between the baseline and
/// the wall.

#include <set>
#include <string>

#include "wall_test.h"

namespace greynic::causal {

/// The cause of one wall, or why there is none to tell.
struct Finding {
  std::optional<Cause> cause;
  std::string why_not;
};

class Experiment {
 public:
  Experiment(const Campaign& campaign, const Configuration& baseline, WallTester& tester,
             const ExplainOptions& options, const Laboratory& laboratory);

  /// Orders more tests of a configuration until it is known whether it is a wall.
  [[nodiscard]] Result<WallTest> decide(const Configuration& configuration, double alpha,
                                        const std::string& what);

  /// kAllowanceSpent when the tests run out before the cause is confirmed.
  [[nodiscard]] Result<Finding> cause_of(const Configuration& wall);

  /// Tests an exception from the baseline: all terms at the wall's levels, and the exception's
  /// level.
  [[nodiscard]] Result<void> confirm_exception(Cause& cause, const Configuration& wall,
                                               Condition& exception);

  [[nodiscard]] std::size_t tests_ordered() const { return ordered_; }

 private:
  using Factors = std::vector<std::string>;

  /// The wall's levels of these factors, the baseline's of all others; nothing where forbidden.
  [[nodiscard]] std::optional<Configuration> with_levels(const Factors& factors) const;
  [[nodiscard]] std::optional<Configuration> with_levels(const Factors& factors,
                                                         const std::string& factor,
                                                         const FactorValue& level) const;
  [[nodiscard]] std::optional<Configuration> completed(const Configuration& levels) const;
  [[nodiscard]] Result<bool> is_wall(const Factors& factors, const std::string& what);
  [[nodiscard]] Result<Factors> minimal(const Factors& kept, bool changed, const Factors& open);
  [[nodiscard]] Result<void> confirm(const Factors& terms, const Configuration& all, Cause& cause);
  [[nodiscard]] Result<void> bisect(const Factors& terms, Condition& condition, Cause& cause);
  void keep_evidence(Cause& cause, const Configuration& configuration, const WallTest& test,
                     std::string role) const;

  const Campaign& campaign_;
  const Configuration& baseline_;
  WallTester& tester_;
  const ExplainOptions& options_;
  const Laboratory& laboratory_;
  Configuration wall_;
  std::size_t ordered_ = 0;
};

/// The levels of a campaign's baseline, completed by each factor's first level.
[[nodiscard]] Configuration whole_baseline(const Campaign& campaign);

/// Factors that a configuration sets otherwise than the baseline; those that do not exist in it
/// follow from the others and are left out.
[[nodiscard]] std::vector<std::string> changed_factors(const Configuration& baseline,
                                                       const Configuration& configuration);

/// The condition that `level` of a factor stands for: an order relation away from the baseline for
/// numbers, equality otherwise.
[[nodiscard]] Condition condition_for(const std::string& factor, const FactorValue& baseline,
                                      const FactorValue& level);

}  // namespace greynic::causal
