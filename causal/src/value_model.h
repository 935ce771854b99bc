#pragma once

/// What one test says about its configuration: how much likelier is its value if the configuration
/// is a wall than if it is clear.
///
/// Values are turned into scores: logarithms of value over the first baseline value, with the sign
/// that makes walls large. A clear configuration scores near the baseline, or anywhere up to the
/// bound; a wall scores near a depth that was seen, or anywhere beyond the bound. Any test may
/// stall by chance and then score like a wall, and any test may fail or time out: such a value is
/// censored, not missing. How often either happens, the noise, and a slow drift of the device are
/// learned from all tests together, each weighed by the belief that its configuration is a wall.
///
/// Not promised: values of several tests are taken as independent once the drift is known.

#include <span>
#include <string>
#include <vector>

#include "greynic/core/campaign.h"
#include "greynic/core/observation.h"

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

/// The readings of one configuration, and the odds of a wall before any of them.
struct Group {
  const std::vector<std::size_t>* places = nullptr;
  double wall = 0.5;
};

class ValueModel {
 public:
  ValueModel() = default;
  explicit ValueModel(const Scale& scale) : scale_(scale) {}

  /// Learns from all readings in the order they were made.
  void fit(const std::vector<Reading>& readings, const std::vector<Group>& groups);
  void set_prior_spread(double variance, double freedom);

  /// log p(readings | wall) - log p(readings | clear), for readings of one configuration at these
  /// places of the fit. They share one unknown mean, so a value between the known depths, however
  /// often it is repeated, is no wall that was drawn anew each time.
  [[nodiscard]] double evidence(const std::vector<Reading>& readings,
                                std::span<const std::size_t> places) const;

  /// What repeats said of the noise before this; no freedom: nothing.
  [[nodiscard]] double prior_variance() const { return learnt_variance_; }
  [[nodiscard]] double prior_freedom() const { return learnt_freedom_; }
  [[nodiscard]] double sigma() const { return sigma_; }
  [[nodiscard]] double freedom() const { return freedom_; }
  [[nodiscard]] double baseline() const { return clear_; }
  [[nodiscard]] double offset(std::size_t place) const;
  [[nodiscard]] double bound() const { return bound_; }
  [[nodiscard]] double stall_rate() const { return stalls_; }
  [[nodiscard]] double failure_rate() const { return failures_clear_; }
  /// How far the device drifted over the tests, in scores.
  [[nodiscard]] double drift() const;
  [[nodiscard]] const Scale& scale() const { return scale_; }

 private:
  /// Shares of one reading that each kind of value has.
  struct Shares {
    double clear_sharp = 0.0;
    double clear_broad = 0.0;
    double wall_sharp = 0.0;
    double wall_broad = 0.0;
    double stall = 0.0;
  };
  [[nodiscard]] double peak(double distance) const;
  [[nodiscard]] double broad(double score, double low, double high) const;
  [[nodiscard]] Shares densities(double score) const;
  /// Logarithms, of all scores of one configuration.
  struct Chances {
    double wall = 0.0;
    double clear = 0.0;
  };
  [[nodiscard]] Chances chances(const std::vector<double>& scores) const;
  [[nodiscard]] double log_chance(const std::vector<double>& scores, double mean) const;
  [[nodiscard]] double log_chance_between(const std::vector<double>& scores, double low,
                                          double high) const;
  [[nodiscard]] double reference(const std::vector<Reading>& readings) const;
  void learn_rates(const std::vector<Reading>& readings);
  void learn_sigma(const std::vector<Reading>& readings, const std::vector<Group>& groups);
  [[nodiscard]] double log_chance_of_all(const std::vector<Reading>& readings,
                                         const std::vector<Group>& groups, double sigma);
  [[nodiscard]] Shares shares_of(const Reading& reading, std::size_t place) const;
  void learn_drift(const std::vector<Reading>& readings, const std::vector<Shares>& shares);

  Scale scale_;
  double clear_ = 0.0;
  double depth_ = 0.0;  // of walls; 0 until one was seen
  double bound_ = 0.0;
  double sigma_ = 0.1;
  double freedom_ = 2.0;
  double height_ = 0.3536;  // of Student's density with that freedom
  double sharp_clear_ = 0.9;
  double sharp_wall_ = 0.8;
  double stalls_ = 0.01;
  double failures_clear_ = 0.01;
  double failures_wall_ = 0.01;
  double learnt_variance_ = 0.0;
  double learnt_freedom_ = 0.0;
  std::vector<double> offsets_;
};

}  // namespace greynic::causal
