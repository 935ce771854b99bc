#include "rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

namespace greynic::verbs {
namespace {

constexpr int kBins = kSlices * kBinsPerSlice;
/// From here on the weighted estimate is within 0.2 % for regular bursts.
constexpr int kManyBursts = 8;
/// Long silences that are no more than this share of the time do not divide it into bursts: a
/// stream with pauses of all lengths is no series of bursts between the longest few.
constexpr double kSilentShare = 0.5;
/// Variance of the weighted mean against the plain one: the mean of Hann's square by its mean
/// squared.
constexpr double kHannNoise = 1.5;

}  // namespace

Slices::Slices(std::int64_t begin_ns, std::int64_t end_ns)
    : begin_ns_(begin_ns), bin_ns_(std::max<std::int64_t>((end_ns - begin_ns) / kBins, 1)) {}

void Slices::add(std::int64_t at_ns, std::uint64_t messages) {
  const std::int64_t index = (at_ns - begin_ns_) / bin_ns_;
  if (at_ns < begin_ns_ || index >= kBins) return;
  bins_[static_cast<std::size_t>(index)] += messages;
}

void Slices::merge(const Slices& other) {
  for (std::size_t i = 0; i < bins_.size(); ++i) bins_[i] += other.bins_[i];
}

double Slices::weighted_rate(int from) const {
  const int count = kBins - from;
  double sum = 0.0;
  for (int i = 0; i < count; ++i) {
    const auto messages = bins_[static_cast<std::size_t>(from) + static_cast<std::size_t>(i)];
    if (messages == 0) continue;
    const double phase = 2.0 * std::numbers::pi * (i + 0.5) / count;
    sum += static_cast<double>(messages) * (1.0 - std::cos(phase));
  }
  return sum / count;
}

std::optional<double> Slices::rate_between_bursts(int from) const {
  // Silences are runs of empty bins; the one in front may be cut short, the one behind ends
  // nothing.
  const auto walk = [&](auto&& after_silence) {
    int silent = 0;
    for (int i = from; i < kBins; ++i) {
      if (bins_[static_cast<std::size_t>(i)] == 0) {
        ++silent;
      } else {
        if (silent > 0) after_silence(i, silent);
        silent = 0;
      }
    }
  };
  int longest = 0;
  walk([&](int at, int silent) {
    if (at - silent > from) longest = std::max(longest, silent);
  });
  int bursts = 0;
  int silence = 0;
  int first = 0;
  int last = 0;
  walk([&](int at, int silent) {
    if (2 * silent <= longest) return;
    if (bursts++ == 0) first = at;
    last = at;
    silence += silent;
  });
  if (bursts < 2 || bursts >= kManyBursts || silence < kSilentShare * (kBins - from)) return {};
  double messages = 0.0;
  for (int i = first; i < last; ++i) {
    messages += static_cast<double>(bins_[static_cast<std::size_t>(i)]);
  }
  return messages / (last - first);
}

Slices::Rate Slices::rate() const {
  std::array<double, kSlices> slices{};
  for (std::size_t i = 0; i < bins_.size(); ++i) {
    slices[i / kBinsPerSlice] += static_cast<double>(bins_[i]);
  }
  const auto moments = [&](int from, int to) {
    double sum = 0.0;
    double squares = 0.0;
    for (int i = from; i < to; ++i) {
      const double value = slices[static_cast<std::size_t>(i)];
      sum += value;
      squares += value * value;
    }
    const int n = to - from;
    return std::pair{sum / n, std::max(0.0, squares / n - sum * sum / n / n)};
  };
  // MSER: cut the head whose removal makes the mean of the rest best known; at most half.
  int cut = 0;
  double best = -1.0;
  for (int from = 0; from <= kSlices / 2; ++from) {
    const double score = moments(from, kSlices).second / (kSlices - from);
    if (best < 0 || score < best) {
      best = score;
      cut = from;
    }
  }
  Rate rate;
  const auto between = rate_between_bursts(cut * kBinsPerSlice);
  const double per_bin = between ? *between : weighted_rate(cut * kBinsPerSlice);
  rate.per_second = per_bin * 1e9 / static_cast<double>(bin_ns_);
  const auto [mean, variance] = moments(cut, kSlices);
  const int n = kSlices - cut;
  const double noise_factor = between ? 1.0 : kHannNoise;
  if (mean > 0) {
    rate.standard_error = rate.per_second * std::sqrt(noise_factor * variance / (n - 1)) / mean;
  }
  const int middle = cut + n / 2;
  const auto [early, early_variance] = moments(cut, middle);
  const auto [late, late_variance] = moments(middle, kSlices);
  const double noise =
      std::sqrt(early_variance / (middle - cut) + late_variance / (kSlices - middle));
  rate.steady.settled = mean > 0 && std::abs(late - early) <= std::max(0.05 * mean, 2.0 * noise);
  rate.steady.warmup_share = static_cast<double>(cut) / kSlices;
  rate.steady.test = "MSER over 20 slices, halves within 5 % or 2 sigma";
  return rate;
}

}  // namespace greynic::verbs
