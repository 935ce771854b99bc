#pragma once

/// Where the means of configurations lie, learned from the tests of all of them.
///
/// Clear configurations mostly have the baseline's own mean; a few lie anywhere up to the bound.
/// Walls have few depths: each cause has its own, and so have causes that act together. Neither how
/// many there are nor how deep is known, so every configuration adds its share to the places where
/// its mean may lie, and the next is held against the places that others hold, or a new one.
///
/// The baseline's mean is unknown too, and the bound moves with it. Every mean that its tests allow
/// is kept, with its odds by all tests. A weak wall that is seen often therefore never becomes the
/// centre of what is clear: that would make the baseline's own tests too unlikely.
///
/// Example. The baseline was 100 and 98; six others were 85 to 88. That these are clear takes a
/// baseline of about 88, and both of its tests four noises away; that they are one weak wall takes
/// one more depth. The second is likelier by far, and each of the six is a wall.

#include <functional>
#include <limits>
#include <span>
#include <vector>

namespace greynic::causal {

/// What one test adds to the mean of its configuration, in scores.
struct Noise {
  double sigma = 0.1;
  double freedom = 3.0;  ///< of Student's density
  double stalls = 0.01;  ///< share of the tests that score far beyond, whatever is set
  double floor = 1e-6;   ///< density of what nothing else explains
};

/// A stall scores anywhere up to this.
inline constexpr double kStallRange = 2.0;

/// log p(score | mean), from a table: it is asked for millions of times.
class NoiseTable {
 public:
  NoiseTable() = default;
  explicit NoiseTable(const Noise& noise);
  [[nodiscard]] double sigma() const { return sigma_; }
  [[nodiscard]] double log_chance(std::span<const double> scores, double mean) const;

 private:
  double sigma_ = 0.1;
  std::vector<double> plain_;    // by distance in noises
  std::vector<double> stalled_;  // where a stall may be the reason too
};

/// The tests of one configuration.
struct Sample {
  std::vector<double> scores;  ///< one at least
  double wall = 0.5;           ///< belief that it is a wall, from what else is known
  bool baseline = false;
};

class MeanMixture {
 public:
  /// `bound`: the least score of a wall, when the baseline scores so much. Returns the logarithm
  /// of how likely all scores are. The first sample must be the baseline, if it has any score.
  double fit(const std::vector<Sample>& samples, const Noise& noise,
             const std::function<double(double)>& bound);
  /// What follows from the last fit, to be called before anything below.
  void settle();

  /// log p(scores | wall) - log p(scores | clear), of a sample of the fit by all others.
  [[nodiscard]] double evidence_of(std::size_t sample) const { return evidence_[sample]; }
  /// The same where many lie between the baseline and the bound, as levels of a setting do that
  /// brings a wall little by little: what lies near the bound is decided by the bound itself.
  [[nodiscard]] double evidence_by_bound(std::size_t sample) const { return by_bound_[sample]; }
  /// Of other scores.
  [[nodiscard]] double evidence(const std::vector<double>& scores) const;

  [[nodiscard]] double baseline() const { return baseline_; }
  [[nodiscard]] double baseline_error() const { return baseline_error_; }
  /// Where the mean of a sample lies, by all tests; and the share of it that others confirm.
  struct Mean {
    double value = 0.0;
    double known = 0.0;
  };
  [[nodiscard]] Mean mean_of(std::size_t sample) const { return means_[sample]; }

 private:
  /// How likely one sample is at each place, times a factor of its own.
  struct Likelihood {
    std::size_t first = 0;        // of the places near it
    std::vector<double> at;       // each of those
    double elsewhere = 0.0;       // at places below them: a stall
    std::vector<double> centres;  // where its mean may be
    std::vector<double> log_centres;
    double scale = 0.0;  // logarithm of that factor
  };
  /// One mean of the baseline, and what follows from it.
  struct Candidate {
    std::size_t place = 0;  // of the baseline's mean
    double mean = 0.0;
    double bound = 0.0;
    double odds = 0.0;
    std::size_t first_wall = 0;  // first place beyond the bound
    std::vector<double> held;    // by all samples, at each place
    double clear = 0.0;          // sum of the above up to the bound
    double wall = 0.0;
    std::vector<std::vector<double>> own;  // of that, by each sample
  };
  struct Chances {
    double clear = 0.0;
    double wall = 0.0;
    double clear_new = 0.0;  // shares of the above that no place explains
    double wall_new = 0.0;
  };
  void lay_places();
  [[nodiscard]] Likelihood likelihood_of(const std::vector<double>& scores) const;
  void add_places(Likelihood& one, const std::vector<double>& scores) const;
  [[nodiscard]] double between(const Likelihood& one, std::size_t count, double low,
                               double high) const;
  [[nodiscard]] Chances chances(const Candidate& candidate, const Likelihood& one,
                                const std::vector<double>& scores,
                                const std::vector<double>& own) const;
  void hold(Candidate& candidate, const Likelihood& one, const Chances& chance, double wall,
            std::vector<double>& own) const;
  [[nodiscard]] double walk(Candidate& candidate) const;
  [[nodiscard]] std::vector<Chances> refine(Candidate& candidate) const;
  [[nodiscard]] std::vector<Candidate> candidates(const std::function<double(double)>& bound) const;
  void add_mean(const Candidate& one, std::size_t sample);

  NoiseTable noise_;
  double deepest_ = 0.0;
  std::vector<double> places_;
  std::vector<Sample> samples_;
  std::vector<Likelihood> likelihoods_;
  std::vector<Candidate> candidates_;
  std::vector<double> evidence_;
  std::vector<double> by_bound_;
  std::vector<Mean> means_;
  double baseline_ = 0.0;
  double baseline_error_ = 0.0;
};

}  // namespace greynic::causal
