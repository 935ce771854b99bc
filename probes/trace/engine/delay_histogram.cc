#include <algorithm>
#include <cmath>

#include "greynic/trace/tracer.h"

namespace greynic::trace {

std::pair<std::uint64_t, std::uint64_t> DelayHistogram::bounds(std::size_t bucket) {
  if (bucket < 16) return {bucket, bucket + 1};  // as bucket_of() in journeys.h
  const std::size_t octave = bucket / 16 + 3;
  const std::uint64_t width = std::uint64_t{1} << (octave - 4);
  const std::uint64_t first = (16 + bucket % 16) * width;
  return {first, first + width};
}

void DelayHistogram::add(std::size_t bucket, std::uint64_t count) {
  if (count == 0) return;
  buckets_[bucket] += count;
  count_ += count;
}

void DelayHistogram::merge(const DelayHistogram& other) {
  for (const auto& [bucket, count] : other.buckets_) add(bucket, count);
}

DelayHistogram DelayHistogram::since(const DelayHistogram& before) const {
  DelayHistogram made;
  for (const auto& [bucket, count] : buckets_) {
    const auto old = before.buckets_.find(bucket);
    made.add(bucket, old == before.buckets_.end() ? count : count - old->second);
  }
  return made;
}

std::optional<std::size_t> DelayHistogram::bucket_at(double share) const {
  const auto wanted = std::max<std::uint64_t>(
      1, static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(count_))));
  std::uint64_t seen = 0;
  for (const auto& [bucket, count] : buckets_) {
    seen += count;
    if (seen >= wanted) return bucket;
  }
  return std::nullopt;
}

double DelayHistogram::quantile_ns(double share) const {
  const auto bucket = bucket_at(share);
  if (!bucket) return 0;
  const auto [first, behind] = bounds(*bucket);
  return static_cast<double>(first + behind - 1) / 2;
}

double DelayHistogram::error_ns(double share) const {
  const auto bucket = bucket_at(share);
  if (!bucket) return 0;
  const auto [first, behind] = bounds(*bucket);
  return static_cast<double>(behind - first) / 2;
}

}  // namespace greynic::trace
