#include "validation/surface_fit.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace greynic::twin {
namespace {

using Point = std::array<double, 3>;  ///< m, n, log v

struct Trial {
  Point at{};
  double squares = 0;
  double u = 0, w = 0;
};

double exponent(const Point& at, const SurfaceSample& s) {
  const double dl = s.local - at[0];
  const double dr = s.remote - at[1];
  const double v = std::exp(at[2]);
  return -(dl * dl + dr * dr) / (2 * v * v);
}

/// With m, n and v given the form is a straight line in its exponential. That is taken relative to
/// the largest, for with a far centre all of them are tiny.
Trial try_at(const Point& at, std::span<const SurfaceSample> samples) {
  constexpr double kLargestExponent = 300;  // u itself has to be a number
  Trial trial{.at = at, .squares = HUGE_VAL};
  double top = -HUGE_VAL;
  for (const SurfaceSample& s : samples) top = std::max(top, exponent(at, s));
  if (!(top >= -kLargestExponent)) return trial;
  const auto count = static_cast<double>(samples.size());
  double x_mean = 0;
  double y_mean = 0;
  for (const SurfaceSample& s : samples) {
    x_mean += std::exp(exponent(at, s) - top) / count;
    y_mean += s.value / count;
  }
  double xx = 0;
  double xy = 0;
  for (const SurfaceSample& s : samples) {
    const double x = std::exp(exponent(at, s) - top) - x_mean;
    xx += x * x;
    xy += x * (s.value - y_mean);
  }
  if (xx < 1e-18) return trial;  // flat: no exponential can be told from w
  const double slope = xy / xx;
  trial.u = slope * std::exp(-top);
  trial.w = y_mean - slope * x_mean;
  trial.squares = 0;
  for (const SurfaceSample& s : samples) {
    const double rest = s.value - trial.w - slope * std::exp(exponent(at, s) - top);
    trial.squares += rest * rest;
  }
  return trial;
}

/// Nelder and Mead's search, restarted where it ended until that gains nothing.
Trial search(Trial best, std::span<const SurfaceSample> samples) {
  const auto less = [](const Trial& a, const Trial& b) { return a.squares < b.squares; };
  for (int start = 0; start < 20; ++start) {
    const double before = best.squares;
    std::array<Trial, 4> simplex = {best, best, best, best};
    for (std::size_t i = 0; i < 3; ++i) {
      Point at = best.at;
      at[i] += i == 2 ? 0.3 : 10.0;
      simplex[i + 1] = try_at(at, samples);
    }
    for (int step = 0; step < 400; ++step) {
      std::sort(simplex.begin(), simplex.end(), less);
      Trial& worst = simplex[3];
      Point centre{};
      for (std::size_t i = 0; i < 3; ++i) {
        for (std::size_t k = 0; k < 3; ++k) centre[k] += simplex[i].at[k] / 3;
      }
      const auto along = [&](double share) {
        Point at;
        for (std::size_t k = 0; k < 3; ++k) at[k] = centre[k] + share * (worst.at[k] - centre[k]);
        return try_at(at, samples);
      };
      const Trial mirrored = along(-1);
      if (less(mirrored, simplex[0])) {
        worst = std::min(mirrored, along(-2), less);
      } else if (less(mirrored, simplex[2])) {
        worst = mirrored;
      } else if (const Trial inside = along(0.5); less(inside, worst)) {
        worst = inside;
      } else {
        for (std::size_t i = 1; i < 4; ++i) {
          Point at = simplex[i].at;
          for (std::size_t k = 0; k < 3; ++k) at[k] = (at[k] + simplex[0].at[k]) / 2;
          simplex[i] = try_at(at, samples);
        }
      }
    }
    best = *std::min_element(simplex.begin(), simplex.end(), less);
    if (best.squares > before * (1 - 1e-9)) break;
  }
  return best;
}

}  // namespace

PublishedSurface fit_bandwidth(std::span<const SurfaceSample> samples) {
  Trial best;
  best.squares = HUGE_VAL;
  // The surface falls away from the origin, so its centre lies there or beyond.
  for (const double centre : {0.0, -20.0, -60.0}) {
    for (const double width : {10.0, 30.0, 90.0}) {
      const Trial trial = search(try_at({centre, centre, std::log(width)}, samples), samples);
      if (trial.squares < best.squares) best = trial;
    }
  }
  return {best.u, std::exp(best.at[2]), best.at[0], best.at[1], best.w, 0, 0, 0};
}

PublishedSurface fit_latency(std::span<const SurfaceSample> samples) {
  // Normal equations of three unknowns, by Gauss's elimination.
  std::array<std::array<double, 4>, 3> rows{};
  for (const SurfaceSample& s : samples) {
    const std::array<double, 4> x = {s.local, s.remote, 1, s.value};
    for (std::size_t i = 0; i < 3; ++i) {
      for (std::size_t k = 0; k < 4; ++k) rows[i][k] += x[i] * x[k];
    }
  }
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t other = 0; other < 3; ++other) {
      if (other == i || rows[i][i] == 0) continue;
      const double share = rows[other][i] / rows[i][i];
      for (std::size_t k = i; k < 4; ++k) rows[other][k] -= share * rows[i][k];
    }
  }
  const auto solved = [&](std::size_t i) { return rows[i][i] != 0 ? rows[i][3] / rows[i][i] : 0; };
  return {0, 1, 0, 0, 0, solved(0), solved(1), solved(2)};
}

double goodness_of_fit(std::span<const double> wanted, std::span<const double> fitted) {
  double sum = 0;
  double squares = 0;
  double residuals = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    sum += wanted[i];
    squares += wanted[i] * wanted[i];
    residuals += (wanted[i] - fitted[i]) * (wanted[i] - fitted[i]);
  }
  return 1 - residuals / (squares - sum * sum / static_cast<double>(wanted.size()));
}

}  // namespace greynic::twin
