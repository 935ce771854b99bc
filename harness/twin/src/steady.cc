#include "steady.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace greynic::twin {
namespace {

constexpr std::size_t kBlock = 5;
constexpr std::size_t kBatches = 20;
constexpr std::size_t kFewest = 40;
/// Differences below this share of the mean are none. Behind a bottleneck that serves every packet
/// alike, intervals differ by rounding only, and the least variance among them is a matter of luck.
constexpr double kResolution = 1e-5;

std::vector<double> block_means(std::span<const double> samples, std::size_t block) {
  std::vector<double> means;
  means.reserve(samples.size() / block);
  for (std::size_t i = 0; i + block <= samples.size(); i += block) {
    const auto part = samples.subspan(i, block);
    means.push_back(std::accumulate(part.begin(), part.end(), 0.0) / static_cast<double>(block));
  }
  return means;
}

/// The cut, in blocks, that makes variance-of-what-is-left / its-length-squared least.
std::size_t mser_cut(const std::vector<double>& blocks) {
  // Sums run from the back, so that every cut costs one step. Values are taken relative to the last
  // half's mean, which keeps the squares small.
  const std::size_t n = blocks.size();
  const std::size_t half = n / 2;
  const double centre =
      std::accumulate(blocks.begin() + static_cast<std::ptrdiff_t>(half), blocks.end(), 0.0) /
      static_cast<double>(n - half);
  const double least_variance = std::pow(kResolution * centre, 2);
  double sum = 0;
  double squares = 0;
  double best = HUGE_VAL;
  std::size_t cut = 0;
  for (std::size_t d = n; d-- > 0;) {
    const double x = blocks[d] - centre;
    sum += x;
    squares += x * x;
    const auto left = static_cast<double>(n - d);
    // A handful of blocks can agree by chance; a twentieth of them hardly can.
    if (left < 5 || left * 20 < static_cast<double>(n)) continue;
    const double spread = std::max(0.0, squares - sum * sum / left);
    const double statistic = (spread + left * least_variance) / (left * left);
    if (statistic <= best) {
      best = statistic;
      cut = d;
    }
  }
  return cut;
}

}  // namespace

SteadyEstimate estimate_steady(std::span<const double> samples) {
  SteadyEstimate estimate;
  if (samples.empty()) return estimate;
  if (samples.size() >= kFewest) {
    const std::vector<double> blocks = block_means(samples, kBlock);
    estimate.cut = mser_cut(blocks) * kBlock;
    estimate.settled = estimate.cut <= samples.size() / 2;
  }
  const auto kept = samples.subspan(estimate.cut);
  const auto n = static_cast<double>(kept.size());
  estimate.mean = std::accumulate(kept.begin(), kept.end(), 0.0) / n;
  const std::size_t batch = std::max<std::size_t>(1, kept.size() / kBatches);
  const std::vector<double> means = block_means(kept, batch);
  const auto batches = static_cast<double>(means.size());
  if (means.size() < 2) return estimate;
  double variance = 0;
  double covariance = 0;
  for (std::size_t i = 0; i < means.size(); ++i) {
    variance += (means[i] - estimate.mean) * (means[i] - estimate.mean);
    if (i > 0) covariance += (means[i] - estimate.mean) * (means[i - 1] - estimate.mean);
  }
  // Neighbouring batches that still go together carry less than two batches' worth of knowledge.
  const double correlation = variance > 0 ? std::clamp(covariance / variance, 0.0, 0.9) : 0.0;
  const double spread = variance / (batches - 1) / batches;
  estimate.standard_error = std::sqrt(spread * (1 + correlation) / (1 - correlation));
  return estimate;
}

}  // namespace greynic::twin
