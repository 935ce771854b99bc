#include "greynic/core/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace greynic {

std::size_t LatencyHistogram::index_of(std::uint64_t nanoseconds) {
  // Below 2^(kSubBits+1) every value has its own bucket; above, the top kSubBits bits after the
  // leading one name the bucket within the octave.
  constexpr std::uint64_t kLargest = (std::uint64_t{1} << kMaxBits) - 1;
  const std::uint64_t value = std::min(nanoseconds, kLargest);
  if (value < (std::uint64_t{1} << (kSubBits + 1))) return value;
  const int shift = std::bit_width(value) - 1 - kSubBits;
  return (static_cast<std::size_t>(shift) << kSubBits) + (value >> shift);
}

std::uint64_t LatencyHistogram::middle_of(std::size_t index) {
  if (index < (std::size_t{1} << (kSubBits + 1))) return index;
  const auto shift = static_cast<int>((index >> kSubBits) - 1);
  const std::uint64_t low = (index - (static_cast<std::size_t>(shift) << kSubBits)) << shift;
  return low + ((std::uint64_t{1} << shift) >> 1);
}

void LatencyHistogram::record(std::uint64_t nanoseconds, std::uint64_t count) {
  if (count == 0) return;
  if (counts_.empty()) counts_.resize(kBucketCount);
  counts_[index_of(nanoseconds)] += count;
  min_ = count_ == 0 ? nanoseconds : std::min(min_, nanoseconds);
  max_ = std::max(max_, nanoseconds);
  count_ += count;
  sum_ += static_cast<double>(nanoseconds) * static_cast<double>(count);
}

void LatencyHistogram::merge(const LatencyHistogram& other) {
  if (other.empty()) return;
  if (counts_.empty()) counts_.resize(kBucketCount);
  for (std::size_t i = 0; i < kBucketCount; ++i) counts_[i] += other.counts_[i];
  min_ = count_ == 0 ? other.min_ : std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
  count_ += other.count_;
  sum_ += other.sum_;
}

double LatencyHistogram::mean_ns() const {
  return count_ == 0 ? 0.0 : sum_ / static_cast<double>(count_);
}

double LatencyHistogram::quantile_ns(double q) const {
  if (count_ == 0) return 0.0;
  const auto wanted = static_cast<std::uint64_t>(
      std::max(1.0, std::ceil(std::clamp(q, 0.0, 1.0) * static_cast<double>(count_))));
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    seen += counts_[i];
    if (seen >= wanted) return static_cast<double>(std::clamp(middle_of(i), min_, max_));
  }
  return static_cast<double>(max_);
}

std::vector<std::pair<std::uint64_t, std::uint64_t>> LatencyHistogram::buckets() const {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> result;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    if (counts_[i] != 0) result.emplace_back(middle_of(i), counts_[i]);
  }
  return result;
}

LatencyHistogram LatencyHistogram::from_buckets(
    const std::vector<std::pair<std::uint64_t, std::uint64_t>>& buckets) {
  LatencyHistogram histogram;
  for (const auto& [value, count] : buckets) histogram.record(value, count);
  return histogram;
}

}  // namespace greynic
