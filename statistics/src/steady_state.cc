#include "greynic/statistics/steady_state.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "greynic/statistics/mean.h"
#include "mser.h"

namespace greynic::statistics {
namespace {

constexpr std::size_t kBlock = 5;
constexpr std::size_t kBatches = 20;
constexpr std::size_t kFewest = 40;
/// Differences below this share of the mean are none. Behind a bottleneck that serves every packet
/// alike, intervals differ by rounding only, and the least variance among them is a matter of luck.
constexpr double kResolution = 1e-5;

/// A series repeats itself when it goes together with itself, one period later, by this share of
/// its variance; among independent samples none of some hundred lags reaches half of it.
constexpr double kFewestAlike = 0.3;
/// In blocks. It bounds what the search costs.
constexpr std::size_t kLongestPeriod = 1000;

std::vector<double> block_means(std::span<const double> samples, std::size_t block) {
  std::vector<double> means;
  means.reserve(samples.size() / block);
  for (std::size_t i = 0; i + block <= samples.size(); i += block) {
    means.push_back(average(samples.subspan(i, block)));
  }
  return means;
}

/// The cut, in blocks, that makes variance-of-what-is-left / its-length-squared least.
std::size_t mser_cut(const std::vector<double>& blocks) {
  const std::size_t n = blocks.size();
  const std::vector<double> scores = mser_scores(blocks, kResolution);
  double best = HUGE_VAL;
  std::size_t cut = 0;
  for (std::size_t d = n; d-- > 0;) {
    const auto left = static_cast<double>(n - d);
    // A handful of blocks can agree by chance; a twentieth of them hardly can.
    if (left < 5 || left * 20 < static_cast<double>(n)) continue;
    if (scores[d] <= best) {
      best = scores[d];
      cut = d;
    }
  }
  return cut;
}

/// After how many blocks the second half of the series repeats itself; 0: it does not. The lag of
/// the highest autocorrelation, beyond the lags at which neighbours still go together. A drift goes
/// together with itself over a quarter of the series, so it is no period.
std::size_t period_of(const std::vector<double>& blocks) {
  const auto half = std::span(blocks).subspan(blocks.size() / 2);
  const double mean = average(half);
  const auto covariance = [&](std::size_t lag) {
    double sum = 0;
    for (std::size_t i = 0; i + lag < half.size(); ++i) {
      sum += (half[i] - mean) * (half[i + lag] - mean);
    }
    return sum;
  };
  const double variance = covariance(0);
  const std::size_t most = std::min(half.size() / 2, kLongestPeriod);
  std::size_t lag = 1;
  while (lag <= most && covariance(lag) > 0) ++lag;
  double best = kFewestAlike * variance;
  std::size_t period = 0;
  for (; lag <= most; ++lag) {
    if (const double seen = covariance(lag); seen > best) {
      best = seen;
      period = lag;
    }
  }
  return period;
}

/// Means over one period from each block on: what repeats itself is gone from them, and what drifts
/// or warms up is not.
std::vector<double> moving_means(const std::vector<double>& blocks, std::size_t period) {
  std::vector<double> means(blocks.size() - period + 1);
  for (std::size_t i = 0; i < means.size(); ++i) {
    means[i] = average(std::span(blocks).subspan(i, period));
  }
  return means;
}

/// Standard error of a mean, from the means of batches of the series. Neighbouring batches that
/// still go together carry less than two batches' worth of knowledge.
double error_of_batches(const std::vector<double>& means, double mean) {
  if (means.size() < 2) return 0.0;
  double variance = 0;
  double covariance = 0;
  for (std::size_t i = 0; i < means.size(); ++i) {
    variance += (means[i] - mean) * (means[i] - mean);
    if (i > 0) covariance += (means[i] - mean) * (means[i - 1] - mean);
  }
  const auto batches = static_cast<double>(means.size());
  const double correlation = variance > 0 ? std::clamp(covariance / variance, 0.0, 0.9) : 0.0;
  const double spread = variance / (batches - 1) / batches;
  return std::sqrt(spread * (1 + correlation) / (1 - correlation));
}

}  // namespace

SteadyEstimate estimate_steady(std::span<const double> samples) {
  SteadyEstimate estimate;
  if (samples.empty()) return estimate;
  std::size_t period = 0;  // in blocks; 0: none
  if (samples.size() >= kFewest) {
    const std::vector<double> blocks = block_means(samples, kBlock);
    estimate.cut = mser_cut(blocks) * kBlock;
    estimate.settled = estimate.cut <= samples.size() / 2;
    // Of a series that repeats itself least varies what lies between two of its events, so MSER
    // looks again with the period taken out.
    if (const std::size_t seen = estimate.settled ? 0 : period_of(blocks); seen > 0) {
      const std::size_t cut = mser_cut(moving_means(blocks, seen)) * kBlock;
      if (cut <= samples.size() / 2) {
        estimate.settled = true;
        estimate.cut = cut;
        period = seen;
      }
    }
  }
  const auto kept = samples.subspan(estimate.cut);
  estimate.mean = average(kept);
  // Batches of whole periods, lest they differ by what part of a period they hold.
  std::size_t batch = std::max<std::size_t>(1, kept.size() / kBatches);
  if (const std::size_t whole = period * kBlock; whole > 0)
    batch = (batch + whole - 1) / whole * whole;
  estimate.standard_error = error_of_batches(block_means(kept, batch), estimate.mean);
  return estimate;
}

}  // namespace greynic::statistics
