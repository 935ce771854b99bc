#pragma once

/// What one test says about its configuration: how much likelier is its value if the configuration
/// is a wall than if it is clear.
///
/// Values are turned into scores: logarithms of value over the first baseline value, with the sign
/// that makes walls large. Where clear configurations and walls score is learned from all of them
/// (mean_mixture.h). Any test may stall by chance and then score like a wall, and any test may fail
/// or time out: such a value is censored, not missing. How often either happens, the noise, and a
/// slow drift of the device are learned from all tests together.
///
/// Not promised: values of several tests are taken as independent once the drift is known.

#include <span>
#include <string>
#include <vector>

#include "failures.h"
#include "greynic/core/campaign.h"
#include "greynic/core/observation.h"
#include "mean_mixture.h"

namespace greynic::causal {

/// The bound is a share of the baseline's mean.
[[nodiscard]] bool is_relative(const WallRule& rule);

/// The wall rule in words.
[[nodiscard]] std::string bound_text(const WallRule& rule);

/// Turns values into scores and back.
class Scale {
 public:
  Scale() = default;
  /// `reference`: a value of the baseline, or the absolute bound where that is not positive.
  Scale(const WallRule& rule, double reference);
  [[nodiscard]] double score(double value) const;
  [[nodiscard]] double value(double score) const;
  /// The least score of a wall, when the baseline scores `baseline`.
  [[nodiscard]] double bound(double baseline) const;

 private:
  WallRule rule_;
  double reference_ = 1.0;
  double sign_ = 1.0;  // walls score positive
  bool logarithms_ = true;
};

/// One test, as the model reads it.
struct Reading {
  double score = 0.0;
  bool failed = false;   ///< failed or timed out: no value
  bool ignored = false;  ///< of a device that had not recovered: says nothing
  bool of_baseline = false;
  double belief = 0.5;  ///< that the configuration is a wall, from all that is known
};

/// The readings of one configuration, and the odds of a wall by them, once they are fitted.
struct Group {
  const std::vector<std::size_t>* places = nullptr;
  double evidence = 0.0;
  double by_bound = 0.0;  ///< MeanMixture::evidence_by_bound
  double known = 0.0;     ///< how far others have the same mean (MeanMixture::Mean)
};

class ValueModel {
 public:
  ValueModel() = default;
  explicit ValueModel(const Scale& scale) : scale_(scale) {}

  /// Learns from all readings in the order they were made, and gives each group its evidence:
  /// log p(readings | wall) - log p(readings | clear). The readings of a group share one unknown
  /// mean, so a value between the known depths, however often it is repeated, is no wall that was
  /// drawn anew each time.
  void fit(const std::vector<Reading>& readings, std::vector<Group>& groups);
  void set_prior_spread(double variance, double freedom);

  /// The same for one reading alone.
  [[nodiscard]] double evidence(const Reading& reading, std::size_t place) const;

  /// What repeats said of the noise before this; no freedom: nothing.
  [[nodiscard]] double prior_variance() const { return learnt_variance_; }
  [[nodiscard]] double prior_freedom() const { return learnt_freedom_; }
  [[nodiscard]] double sigma() const { return sigma_; }
  [[nodiscard]] double freedom() const { return freedom_; }
  [[nodiscard]] double baseline() const { return mixture_.baseline(); }
  [[nodiscard]] double baseline_error() const { return mixture_.baseline_error(); }
  [[nodiscard]] double offset(std::size_t place) const;
  [[nodiscard]] double bound() const { return scale_.bound(baseline()); }
  [[nodiscard]] double stall_rate() const { return stalls_; }
  /// How far the device drifted over the tests, in scores.
  [[nodiscard]] double drift() const;
  [[nodiscard]] const Scale& scale() const { return scale_; }

 private:
  void learn_sigma(double most);
  [[nodiscard]] double most_sigma_by_repeats() const;
  void learn_stalls(const std::vector<Reading>& readings);
  void learn_failures(const std::vector<Reading>& readings, const std::vector<Group>& groups,
                      const std::vector<std::size_t>& sample_of_group);
  void learn_drift(const std::vector<Reading>& readings);
  [[nodiscard]] double log_chance_of_all(double sigma);

  Scale scale_;
  MeanMixture mixture_;
  Failures failures_;
  std::vector<Sample> samples_;
  std::vector<std::size_t> sample_of_;  // of each reading
  double sigma_ = 0.1;
  double freedom_ = 3.0;
  double stalls_ = 0.01;
  double learnt_variance_ = 0.0;
  double learnt_freedom_ = 0.0;
  std::vector<double> offsets_;
};

}  // namespace greynic::causal
