#include "pipeline/fit_together.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "data/points.h"

namespace greynic::model {

using pipeline::kParameterCount;
using pipeline::PipelineFit;
using pipeline::Prior;
using pipeline::Priors;

namespace {

/// Variance of value j less its reference, and that value, of one fit.
std::pair<double, double> value_and_variance(const PipelineFit& fit, int j, const Prior& prior) {
  const auto c = [&](int a, int b) { return fit.covariance[a * kParameterCount + b]; };
  if (!prior.relative_to) return {fit.values[j], c(j, j)};
  const int k = *prior.relative_to;
  return {fit.values[j] - fit.values[k], c(j, j) + c(k, k) - 2.0 * c(j, k)};
}

}  // namespace

Priors pooled_priors(std::span<const PipelineFit> fits, std::size_t left_out) {
  Priors priors = pipeline::table_priors();
  for (int j = 0; j < kParameterCount; ++j) {
    Prior& prior = priors[static_cast<std::size_t>(j)];
    const double wide = prior.deviation * prior.deviation;
    std::vector<std::pair<double, double>> known;  // value, variance
    for (std::size_t d = 0; d < fits.size(); ++d) {
      const auto& active = fits[d].active;
      if (d == left_out || !std::binary_search(active.begin(), active.end(), j)) continue;
      const auto [value, variance] = value_and_variance(fits[d], j, prior);
      // A fit that only repeats its prior says nothing about the others.
      if (variance < 0.5 * wide) known.emplace_back(value, variance);
    }
    if (known.empty()) continue;
    // Spread between devices by moments, never below what so few can tell: the table's spread
    // counts as one more device.
    double mean = prior.mean;
    double spread = wide;
    for (int round = 0; round < 20; ++round) {
      double weights = 1.0 / (spread + wide);
      double sum = prior.mean * weights;
      for (const auto& [value, variance] : known) {
        weights += 1.0 / (spread + variance);
        sum += value / (spread + variance);
      }
      mean = sum / weights;
      double squares = wide;
      for (const auto& [value, variance] : known) {
        squares += std::max(0.0, (value - mean) * (value - mean) - variance);
      }
      spread = std::max(1e-4, squares / static_cast<double>(known.size() + 1));
    }
    // The mean itself is known as well as so many devices can.
    const double of_mean = spread / static_cast<double>(known.size());
    prior.mean = mean;
    prior.deviation = std::min(prior.deviation, std::sqrt(spread + of_mean));
  }
  return priors;
}

Result<std::vector<FitReport>> fit_together(std::span<const std::vector<Observation>> runs,
                                            const FitOptions& options) {
  if (runs.size() < 2) {
    return fail(ErrorCode::kBadInput, "fitting together needs the runs of at least two devices");
  }
  const auto doing = [](std::size_t d) { return fmt::format("fitting run {}", d + 1); };
  std::vector<PipelineFit> fits;
  for (std::size_t d = 0; d < runs.size(); ++d) {
    const auto points = read_points(runs[d]);
    if (!points) return points.error().while_doing(doing(d));
    auto fit =
        pipeline::fit_pipeline(points->points, {.seed = options.seed, .starts = options.starts});
    if (!fit) return fit.error().while_doing(doing(d));
    fits.push_back(std::move(*fit));
  }
  std::vector<FitReport> reports;
  for (std::size_t d = 0; d < runs.size(); ++d) {
    auto report = report_pipeline_with(runs[d], options, pooled_priors(fits, d));
    if (!report) return report.error().while_doing(doing(d));
    report->findings.insert(
        report->findings.begin(),
        fmt::format("pooled: fitted with what {} other runs say", runs.size() - 1));
    reports.push_back(std::move(*report));
  }
  return reports;
}

}  // namespace greynic::model
