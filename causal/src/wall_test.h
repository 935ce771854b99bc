#pragma once

/// From the stored observations of one configuration: is it a wall? Samples are turned into scores
/// above the campaign's bound, so that one t test serves all four kinds of bound.

#include <map>
#include <vector>

#include "greynic/causal/explain.h"
#include "greynic/statistics/shrunk_variance.h"
#include "values/value_model.h"

namespace greynic::causal {

/// What the samples of one configuration say.
struct WallTest {
  bool wall = false;
  bool decided = false;
  bool testable = false;   ///< false: refused, or without a measurement of the metric
  bool too_short = false;  ///< untestable, because nothing completed within the measured time
  double p_wall = 1.0;     ///< chance of such scores if the configuration were just clear
  double p_clear = 1.0;    ///< chance of such scores if it were just a wall
  int tests = 0;
  Ratio ratio;
  std::string outcome;  ///< "failed: ..." when that is what makes it a wall
};

class WallTester {
 public:
  /// Learns the expected value from the baseline's observations and the noise from all of them.
  static Result<WallTester> create(const Campaign& campaign, const Configuration& baseline,
                                   std::span<const Observation> observations, double confidence);

  void add(const Observation& observation);
  /// `alpha` is the error allowed for this one answer.
  [[nodiscard]] WallTest test(const Configuration& configuration, double alpha) const;
  [[nodiscard]] double expected() const { return expected_; }
  /// Every configuration seen, in canonical order.
  [[nodiscard]] std::vector<Configuration> configurations() const;

 private:
  struct Samples {
    std::vector<double> scores;
    int failed = 0;
    int too_short = 0;
    std::string reason;
  };
  Result<void> learn_bound(const Configuration& baseline, const std::vector<double>& of_baseline);
  [[nodiscard]] double score(double value) const;
  [[nodiscard]] double ratio_of(double score) const;
  [[nodiscard]] WallTest test_scores(const std::vector<double>& scores, double alpha) const;
  [[nodiscard]] WallTest test_failures(const Samples& samples, double alpha) const;

  WallRule rule_;
  Scale scale_;
  double expected_ = 0.0;          // baseline mean, or the absolute bound
  double bound_ = 0.0;             // as a score
  double baseline_error_ = 0.0;    // standard error of the baseline in scores
  statistics::SpreadPrior noise_;  // pooled over configurations
  double confidence_ = 0.99;
  std::map<Configuration, Samples> samples_;
};

}  // namespace greynic::causal
