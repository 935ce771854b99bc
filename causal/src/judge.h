#pragma once

/// The sequential test: is this configuration a wall? Samples are turned into scores that are
/// positive on the wall side of the campaign's bound (logarithms for bounds relative to the
/// baseline, differences for absolute ones), so that one t test serves all four kinds of bound.

#include <map>
#include <vector>

#include "greynic/causal/explain.h"

namespace greynic::causal {

struct Verdict {
  bool wall = false;
  bool decided = false;
  bool testable = false;  ///< false: nothing measured, or refused
  double p_wall = 1.0;    ///< chance of such scores if the configuration were just clear
  double p_clear = 1.0;   ///< chance of such scores if it were just a wall
  int tests = 0;
  Ratio ratio;
  std::string outcome;  ///< "failed: ..." when that is what makes it a wall
};

class Judge {
 public:
  /// Learns the expected value from the baseline's observations and the noise from all of them.
  static Result<Judge> create(const Campaign& campaign, const Configuration& baseline,
                              std::span<const Observation> observations, double confidence);

  void add(const Observation& observation);
  /// `alpha` is the error allowed for this one answer.
  [[nodiscard]] Verdict verdict(const Configuration& configuration, double alpha) const;
  [[nodiscard]] double expected() const { return expected_; }
  [[nodiscard]] const std::string& bound_text() const { return bound_text_; }
  [[nodiscard]] bool seen(const Configuration& configuration) const {
    return samples_.contains(configuration);
  }
  /// Every configuration seen, in canonical order.
  [[nodiscard]] std::vector<Configuration> configurations() const;

 private:
  struct Samples {
    std::vector<double> scores;
    int failed = 0;
    int refused = 0;
    std::string reason;
  };
  [[nodiscard]] double score(double value) const;
  [[nodiscard]] double ratio_of(double score) const;
  void learn_noise();

  WallRule rule_;
  bool relative_ = true;
  double expected_ = 0.0;        // baseline mean, or the absolute bound
  double baseline_error_ = 0.0;  // standard error of the baseline in scores
  double noise_variance_ = 0.0;  // pooled over configurations
  double noise_freedom_ = 0.0;
  double confidence_ = 0.99;
  std::string bound_text_;
  std::map<Configuration, Samples> samples_;
};

}  // namespace greynic::causal
