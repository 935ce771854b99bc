#pragma once

/// The surroundings of a wall: its settings with their levels, and what tests among them said.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "greynic/causal/explain.h"

namespace greynic::causal {

/// A factor that the wall sets otherwise than the baseline.
struct Moved {
  std::string factor;
  FactorValue base;
  FactorValue wall;
  std::vector<FactorValue> others;  ///< from the baseline's level up to the wall's, without that
  std::optional<FactorValue> weaker;
  std::optional<FactorValue> stronger;
};

class Surroundings {
 public:
  Surroundings(const Campaign& campaign, const Configuration& baseline, const Configuration& wall,
               double expected, const ExplainOptions& options, const Laboratory& laboratory);

  [[nodiscard]] const std::vector<Moved>& settings() const { return settings_; }
  [[nodiscard]] const Configuration& wall() const { return wall_; }
  [[nodiscard]] const Configuration& baseline() const { return baseline_; }
  [[nodiscard]] bool allows(const Configuration& whole) const;

  /// Makes tests until each has at least so many, in batches.
  [[nodiscard]] Result<void> test(const std::vector<Configuration>& wanted, std::size_t each,
                                  const std::string& why);
  /// Of the metric over what was expected, in natural logarithms; empty: refused, or never tested.
  [[nodiscard]] const std::vector<double>& scores(const Configuration& configuration) const;
  [[nodiscard]] std::optional<double> mean_score(const Configuration& configuration) const;
  [[nodiscard]] const std::vector<Observation>& observations(
      const Configuration& configuration) const;

  struct Noise {
    double variance = 0.0;
    double freedom = 0.0;
  };
  /// From all configurations that were tested more than once.
  [[nodiscard]] Noise noise() const;
  /// Of the mean score of the one less that of the other, as a ratio.
  [[nodiscard]] std::optional<Estimate> ratio(const Configuration& one,
                                              const Configuration& other) const;
  [[nodiscard]] std::size_t tests() const { return tests_; }
  [[nodiscard]] double confidence() const { return options_.confidence; }

 private:
  struct Tested {
    std::vector<double> scores;
    std::vector<Observation> observations;
  };
  [[nodiscard]] std::optional<double> score_of(const Observation& observation) const;

  const Campaign& campaign_;
  Configuration baseline_;
  Configuration wall_;
  double expected_;
  const ExplainOptions& options_;
  const Laboratory& laboratory_;
  std::vector<Moved> settings_;
  std::map<std::string, Tested> tested_;
  std::size_t tests_ = 0;
};

}  // namespace greynic::causal
