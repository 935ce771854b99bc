#include "pipeline/uncertainty.h"

#include <fmt/core.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>

#include "greynic/statistics/distributions.h"
#include "pipeline/posterior.h"

namespace greynic::model::pipeline {
namespace {

using statistics::kNormal95;
constexpr double kRise95 = kNormal95 * kNormal95;  // of the sum of squares, one parameter

double deviation_of(const PipelineFit& fit, int j) {
  return std::sqrt(std::max(0.0, fit.covariance[j * kParameterCount + j]));
}

/// The fit's least-squares problem with the information that its covariance counts.
Posterior effective_posterior(const std::vector<Point>& points, const Priors& priors,
                              const PipelineFit& fit) {
  Posterior posterior{points,     weights_for(points, fit.noise, fit.anomalous),
                      priors,     fit.active,
                      fit.values, Loss::kHuber};
  const auto effects = design_effects(points, fit, posterior.weight);
  for (std::size_t i = 0; i < points.size(); ++i) posterior.weight[i] /= std::sqrt(effects[i]);
  return posterior;
}

double squares_at(const Posterior& posterior, const std::vector<double>& x) {
  std::vector<double> r(posterior.points.size() + posterior.active.size());
  posterior.residuals(x, r, {});
  return std::inner_product(r.begin(), r.end(), r.begin(), 0.0);
}

/// Profile likelihood of the k-th active parameter.
class Profile {
 public:
  Profile(const Posterior& posterior, const PipelineFit& fit, std::size_t k)
      : whole_(posterior), rest_(posterior), k_(k), best_(posterior.at(fit.values)) {
    const int j = posterior.active[k];
    deviation_ = deviation_of(fit, j);
    for (const int i : posterior.active) {
      direction_.push_back(fit.covariance[i * kParameterCount + j] / deviation_);
    }
    rest_.active.erase(rest_.active.begin() + static_cast<long>(k));
    least_ = squares_at(whole_, best_);
  }

  /// Rise of the sum of squares `steps` deviations away, the others following in a straight line.
  [[nodiscard]] double straight_rise(double steps) const {
    std::vector<double> x = best_;
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += steps * direction_[i];
    return squares_at(whole_, whole_.at(whole_.with(x))) - least_;
  }

  /// The same, the others fitted anew. Empty when that does not converge.
  [[nodiscard]] std::optional<double> rise(double steps) {
    std::vector<double> x = best_;
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += steps * direction_[i];
    rest_.values = whole_.with(x);
    LeastSquaresOptions options;
    options.tolerance = 1e-5;
    const auto solved = minimize(rest_.problem(), rest_.at(rest_.values), options);
    if (!solved) return std::nullopt;
    // The fixed parameter's own prior is no residual of the rest.
    return squares_at(whole_, whole_.at(rest_.with(solved->parameters))) - least_;
  }

  /// Deviations to where the profile has risen by kRise95, at most 8; `side` is 1 or -1.
  [[nodiscard]] std::optional<double> end(double side) {
    constexpr double kFarthest = 8.0;
    double low = 0.0;
    double high = kNormal95;
    for (;;) {
      const auto value = rise(side * high);
      if (!value) return std::nullopt;
      if (*value >= kRise95) break;
      if (high >= kFarthest) return high;
      low = high;
      high = std::min(kFarthest, 2.0 * high);
    }
    while (high - low > 0.05 * high) {
      const double middle = 0.5 * (low + high);
      const auto value = rise(side * middle);
      if (!value) return std::nullopt;
      (*value < kRise95 ? low : high) = middle;
    }
    return 0.5 * (low + high);
  }

  [[nodiscard]] double deviation() const { return deviation_; }
  [[nodiscard]] double best() const { return best_[k_]; }

 private:
  const Posterior& whole_;
  Posterior rest_;
  std::size_t k_;
  std::vector<double> best_;
  std::vector<double> direction_;
  double deviation_ = 0.0;
  double least_ = 0.0;
};

/// Weights of one bootstrap sample: exponential, mean 1.
std::vector<double> draw_weights(const std::vector<Point>& points, bool by_run,
                                 std::mt19937_64& random) {
  std::exponential_distribution<double> exponential;
  std::vector<double> weights(points.size());
  std::map<int, double> of_run;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (!by_run) {
      weights[i] = exponential(random);
      continue;
    }
    const auto [place, is_new] = of_run.try_emplace(points[i].run, 0.0);
    if (is_new) place->second = exponential(random);
    weights[i] = place->second;
  }
  return weights;
}

/// Descends by steps with one Jacobian as long as they shrink: residuals alone are worked out anew,
/// which makes a thousand samples cheap. Far from the minimum the Jacobian is renewed. False when
/// the steps do not die out.
bool chord_descent(const Posterior& posterior, const Eigen::MatrixXd& at_minimum,
                   const Eigen::VectorXd& weight, const Eigen::VectorXd& moved,
                   std::vector<double>& x) {
  constexpr int kSteps = 6;
  constexpr int kRenewals = 8;
  constexpr double kSmall = 3e-3;  // of a logarithm: far below any interval
  const Eigen::Index n = at_minimum.cols();
  const Eigen::Index m = at_minimum.rows();
  std::vector<double> r(static_cast<std::size_t>(m));
  Eigen::MatrixXd jacobian = at_minimum;
  for (int renewal = 0; renewal < kRenewals; ++renewal) {
    if (renewal > 0) {
      using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
      RowMajor rows(m, n);
      posterior.residuals(x, r, {rows.data(), static_cast<std::size_t>(m * n)});
      jacobian = rows;
    }
    const Eigen::MatrixXd weighted = weight.asDiagonal() * jacobian;
    const Eigen::LDLT<Eigen::MatrixXd> normal(jacobian.transpose() * weighted);
    double before = HUGE_VAL;
    for (int step = 0; step < kSteps; ++step) {
      posterior.residuals(x, r, {});
      Eigen::VectorXd residual = Eigen::Map<const Eigen::VectorXd>(r.data(), m);
      residual.tail(n) += moved;
      const Eigen::VectorXd change = normal.solve(weighted.transpose() * residual);
      if (!change.allFinite()) return false;
      const double size = change.norm();
      if (size > 0.9 * before) break;
      before = size;
      std::vector<double> next = x;
      for (Eigen::Index k = 0; k < n; ++k) {
        next[static_cast<std::size_t>(k)] -= std::clamp(change[k], -0.7, 0.7);
      }
      next = posterior.at(posterior.with(next));
      const bool stuck = next == x;  // at its bounds
      x = std::move(next);
      if (size < kSmall || stuck) return true;
    }
  }
  return false;
}

}  // namespace

std::vector<double> design_effects(const std::vector<Point>& points, const PipelineFit& fit,
                                   const std::vector<double>& weights) {
  std::map<int, int> run_sizes;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (weights[i] > 0.0) ++run_sizes[points[i].run];
  }
  std::vector<double> effects(points.size(), 1.0);
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (weights[i] == 0.0) continue;
    const double common = fit.noise[points[i].output].run;
    const double own = 1.0 / (weights[i] * weights[i]);
    effects[i] += (run_sizes[points[i].run] - 1) * common * common / std::max(own, common * common);
  }
  return effects;
}

std::vector<double> covariance_of(const std::vector<Point>& points, const PipelineFit& fit,
                                  const Priors& priors) {
  using Matrix = Eigen::Matrix<double, kParameterCount, kParameterCount, Eigen::RowMajor>;
  const auto precision = prior_precision(priors);
  Matrix information = Eigen::Map<const Matrix>(precision.data());
  const auto weight = weights_for(points, fit.noise, fit.anomalous);
  const auto effects = design_effects(points, fit, weight);
  // Parameters that no point speaks of have no gradient: only the active ones are worked out.
  const auto n = static_cast<Eigen::Index>(fit.active.size());
  Eigen::MatrixXd known = Eigen::MatrixXd::Zero(n, n);
  Eigen::VectorXd slopes(n);
  LawAt law(fit.values);
  Values gradient;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (weight[i] == 0.0) continue;
    law.at(points[i].output, points[i].setting, gradient);
    for (Eigen::Index a = 0; a < n; ++a) {
      slopes[a] = gradient[fit.active[static_cast<std::size_t>(a)]];
    }
    known.selfadjointView<Eigen::Lower>().rankUpdate(slopes, weight[i] * weight[i] / effects[i]);
  }
  for (Eigen::Index a = 0; a < n; ++a) {
    for (Eigen::Index b = 0; b < n; ++b) {
      information(fit.active[static_cast<std::size_t>(a)],
                  fit.active[static_cast<std::size_t>(b)]) += a >= b ? known(a, b) : known(b, a);
    }
  }
  const Matrix covariance = information.ldlt().solve(Matrix::Identity());
  return {covariance.data(), covariance.data() + covariance.size()};
}

void set_covariance_intervals(PipelineFit& fit) {
  for (int j = 0; j < kParameterCount; ++j) {
    const double half_width = kNormal95 * deviation_of(fit, j);
    fit.interval[static_cast<std::size_t>(j)] = {
        fit.values[static_cast<std::size_t>(j)] - half_width,
        fit.values[static_cast<std::size_t>(j)] + half_width, Interval::Method::kCovariance};
  }
}

int profile_where_needed(const std::vector<Point>& points, const Priors& priors, PipelineFit& fit) {
  const Posterior posterior = effective_posterior(points, priors, fit);
  int profiled = 0;
  for (std::size_t k = 0; k < fit.active.size(); ++k) {
    Profile profile(posterior, fit, k);
    const auto holds = [&](double side) {
      const double share = profile.straight_rise(side * kNormal95) / kRise95;
      return share > 0.6 && share < 1.6;
    };
    if (holds(1.0) && holds(-1.0)) continue;
    const auto low = profile.end(-1.0);
    const auto high = profile.end(1.0);
    if (!low || !high) continue;
    fit.interval[static_cast<std::size_t>(fit.active[k])] = {
        profile.best() - *low * profile.deviation(), profile.best() + *high * profile.deviation(),
        Interval::Method::kProfile};
    ++profiled;
  }
  return profiled;
}

Result<void> bootstrap(const std::vector<Point>& points, const Priors& priors, int samples,
                       std::uint64_t seed, PipelineFit& fit) {
  Posterior posterior{points,     weights_for(points, fit.noise, fit.anomalous),
                      priors,     fit.active,
                      fit.values, Loss::kHuber};
  const std::vector<double> best = posterior.at(fit.values);
  const auto n = static_cast<Eigen::Index>(best.size());
  const auto m = static_cast<Eigen::Index>(points.size()) + n;
  using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  RowMajor rows(m, n);
  std::vector<double> r(static_cast<std::size_t>(m));
  posterior.residuals(best, r, {rows.data(), static_cast<std::size_t>(m * n)});
  const Eigen::MatrixXd jacobian = rows;

  std::map<int, int> runs;
  for (const Point& point : points) ++runs[point.run];
  bool kin = runs.size() >= 10;
  for (const Noise& noise : fit.noise) kin = kin && noise.run > 0.5 * noise.scatter;

  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::vector<std::vector<double>> drawn;
  for (int s = 0; s < samples; ++s) {
    Eigen::VectorXd weight = Eigen::VectorXd::Ones(m);
    const auto of_points = draw_weights(points, kin, random);
    std::copy(of_points.begin(), of_points.end(), weight.begin());
    Eigen::VectorXd moved(n);
    for (Eigen::Index k = 0; k < n; ++k) moved[k] = normal(random);
    std::vector<double> x = best;
    if (chord_descent(posterior, jacobian, weight, moved, x)) drawn.push_back(std::move(x));
  }
  if (static_cast<double>(drawn.size()) < 0.9 * samples) {
    return fail(ErrorCode::kNotConverged,
                fmt::format("only {} of {} bootstrap fits converged; the data determine the law "
                            "too badly: measure more settings",
                            drawn.size(), samples));
  }
  Eigen::MatrixXd all(static_cast<Eigen::Index>(drawn.size()), n);
  for (std::size_t s = 0; s < drawn.size(); ++s) {
    all.row(static_cast<Eigen::Index>(s)) =
        Eigen::Map<const Eigen::RowVectorXd>(drawn[s].data(), n);
  }
  const Eigen::MatrixXd centred = all.rowwise() - all.colwise().mean();
  const Eigen::MatrixXd covariance = centred.transpose() * centred /
                                     static_cast<double>(std::max<Eigen::Index>(1, all.rows() - 1));
  for (Eigen::Index a = 0; a < n; ++a) {
    const auto i = static_cast<std::size_t>(fit.active[static_cast<std::size_t>(a)]);
    for (Eigen::Index b = 0; b < n; ++b) {
      const auto j = static_cast<std::size_t>(fit.active[static_cast<std::size_t>(b)]);
      fit.covariance[i * kParameterCount + j] = covariance(a, b);
    }
    std::vector<double> column(all.col(a).begin(), all.col(a).end());
    std::sort(column.begin(), column.end());
    const auto at = [&](double share) {
      return column[static_cast<std::size_t>(share * static_cast<double>(column.size() - 1))];
    };
    fit.interval[i] = {at(0.025), at(0.975), Interval::Method::kBootstrap};
  }
  return {};
}

}  // namespace greynic::model::pipeline
