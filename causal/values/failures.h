#pragma once

/// What tests that gave no value say of their configuration.
///
/// Any test may fail or time out by chance, at a rate that nobody knows. A wall may be one that fails: then
/// most of its tests do. Both rates are unknown, so every pair of them is kept with its odds by the tests of
/// all configurations. Where hundreds of tests gave values and some configurations failed each time they were
/// asked, one failure more says far more than the first one did.
///
/// Example. 3 configurations failed 4 times of 4, and 60 others gave a value each: to fail by chance is
/// hardly ever seen then, and one failure elsewhere is a wall at odds of some 100 to 1.

#include <array>
#include <cstddef>
#include <span>
#include <vector>

namespace greynic::causal {

/// The tests of one configuration.
struct Outcomes {
  std::size_t failed = 0;
  std::size_t valued = 0;
  double wall = 0.5;  ///< belief that it is a wall, from all but its failures
};

class Failures {
 public:
  Failures();
  /// Learns from these. No group, or no failure: what is believed before any test.
  void fit(std::span<const Outcomes> all);
  /// log p(outcomes | wall) - log p(outcomes | clear) of one of the fitted, by all others. 0 without a failure:
  /// values tell by themselves.
  [[nodiscard]] double evidence_of(std::size_t one) const;
  /// Of one more failed test, of a configuration that was not asked before.
  [[nodiscard]] double evidence_of_next() const;

 private:
  static constexpr std::size_t kRates = 12;  // of failures by chance
  static constexpr std::size_t kShares = 5;  // of walls that fail
  struct Chance {
    double clear = 1.0;
    double wall = 1.0;
  };
  using Grid = std::array<double, kRates * kShares>;
  [[nodiscard]] static Chance chance_of(const Outcomes& one, std::size_t cell);
  [[nodiscard]] static double log_odds(const Outcomes& one, const Grid& chances);
  [[nodiscard]] Grid without(const Outcomes* one) const;

  Grid log_chances_;
  std::vector<Outcomes> all_;
};

}  // namespace greynic::causal
