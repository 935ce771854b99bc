#pragma once

/// How deep walls are and how far noise reaches, learned from all tests together, given how likely
/// each configuration is a wall.
///
/// Clear configurations share the baseline's mean; walls share few depths. So every test tells of
/// the noise, repeated or not. A mean of its own, up to the bound or beyond it, is possible for any
/// configuration, but not likely. Tests may stall, or fail, whatever is set.

#include <cstdint>
#include <functional>
#include <vector>

#include "values/mean_mixture.h"
#include "views.h"

namespace greynic::causal {

/// The tests of one configuration.
struct Tested {
  std::vector<double> scores;
  int failures = 0;
  bool of_baseline = false;
  double wall = 0.5;         ///< chance that it is a wall, by all other knowledge
  std::uint32_t causes = 0;  ///< those that hold, where an answer says which
  double evidence = 0.0;     ///< log p(tests | wall) - log p(tests | clear)
};

class Depths {
 public:
  /// `baseline` and `depth`: where to begin. `bound`: the least score of a wall.
  Depths(double baseline, double depth, double sigma, std::function<double(double)> bound);
  /// Learns from all, and sets the evidence of each.
  void fit(std::vector<Tested>& all);
  /// A grid of baselines and depths around what was learned: an answer is judged by the sum over all of them,
  /// so that none is likely for a baseline that it alone asks for.
  [[nodiscard]] Views views(const std::vector<Tested>& all) const;
  /// Sets the evidence of each by what is known already.
  void judge(std::vector<Tested>& all) const;
  /// How likely the tests are, as a logarithm, if walls are those with `wall` of 1, as `causes` says, and all is
  /// learned from that.
  [[nodiscard]] double by_own(const std::vector<Tested>& all) const;
  /// Log odds that these are walls, against the mean of the baseline's own tests, by these tests alone:
  /// what is clear by an answer says nothing of the baseline if the answer is wrong.
  [[nodiscard]] double odds_beside(const std::vector<double>& of_baseline,
                                   const std::vector<double>& scores) const;
  [[nodiscard]] double sigma() const { return sigma_; }
  [[nodiscard]] const std::function<double(double)>& bound() const { return bound_; }
  [[nodiscard]] double baseline() const { return baseline_; }
  [[nodiscard]] double shallowest() const;
  /// Standard errors of the two.
  [[nodiscard]] double baseline_error() const { return baseline_error_; }
  [[nodiscard]] double depth_error() const { return depth_error_; }
  [[nodiscard]] double stalls() const { return stalls_; }

 private:
  struct Depth {
    double mean = 0.0;
    double share = 1.0;
  };
  struct Chances {
    double clear = 0.0;  // logarithms
    double wall = 0.0;
    double at_baseline = 0.0;
    double fresh = 0.0;            // share of the wall's chance that no depth explains
    std::vector<double> at_depth;  // shares
  };
  [[nodiscard]] double own_share(double score, double mean) const;
  [[nodiscard]] double between(const std::vector<double>& scores, double low, double high) const;
  [[nodiscard]] std::vector<double> baselines_of_views(const std::vector<Tested>& all) const;
  [[nodiscard]] std::vector<double> depths_of_views(double learned, double bound,
                                                    double deepest) const;
  [[nodiscard]] Chances chances(const Tested& one) const;
  [[nodiscard]] double log_chance(const std::vector<Tested>& all) const;
  void make_table();
  void learn(const std::vector<Tested>& all);
  void look_how_deep(const std::vector<Tested>& all);
  [[nodiscard]] double log_chance_by_causes(const std::vector<Tested>& all);
  void begin_anew(const std::vector<Tested>& all);
  void new_depth(const std::vector<Tested>& all);
  void join_depths();

  std::function<double(double)> bound_;
  double baseline_;
  double repeated_ = 0.0;  // the deepest that one configuration showed twice
  std::vector<Depth> depths_;
  double sigma_;
  double spread_;  // sigma, widened by what is not known of it
  NoiseTable table_;
  double stalls_ = 0.01;
  double fails_clear_ = 0.01;
  double fails_wall_ = 0.01;
  double baseline_error_ = 1.0;
  double depth_error_ = 1.0;
};

}  // namespace greynic::causal
