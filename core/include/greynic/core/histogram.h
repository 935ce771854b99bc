#pragma once

/// Latency histogram with logarithmic buckets: constant memory, constant time a sample, relative
/// error of a reported value at most 1/256 (below 256 ns it is exact). Mergeable, so that threads
/// record on their own and meet at the end.

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

namespace greynic {

class LatencyHistogram {
 public:
  /// Records `count` samples of `nanoseconds`; values beyond 2^42 ns (73 min) land in the last
  /// bucket.
  void record(std::uint64_t nanoseconds, std::uint64_t count = 1);
  void merge(const LatencyHistogram& other);

  [[nodiscard]] std::uint64_t count() const { return count_; }
  [[nodiscard]] bool empty() const { return count_ == 0; }
  [[nodiscard]] double mean_ns() const;
  [[nodiscard]] std::uint64_t min_ns() const { return min_; }  ///< 0 when empty
  [[nodiscard]] std::uint64_t max_ns() const { return max_; }
  /// Smallest value with at least share `q` (0..1) of the samples at or below it; 0 when empty.
  [[nodiscard]] double quantile_ns(double q) const;

  /// (value in ns, count) for each bucket that is not empty, ascending; rebuild with from_buckets.
  [[nodiscard]] std::vector<std::pair<std::uint64_t, std::uint64_t>> buckets() const;
  static LatencyHistogram from_buckets(
      const std::vector<std::pair<std::uint64_t, std::uint64_t>>& buckets);

  bool operator==(const LatencyHistogram&) const = default;

 private:
  static constexpr int kSubBits = 7;  ///< 128 sub-buckets in each octave
  static constexpr int kMaxBits = 42;
  static constexpr std::size_t kBucketCount = (kMaxBits - kSubBits + 1) << kSubBits;
  static std::size_t index_of(std::uint64_t nanoseconds);
  static std::uint64_t middle_of(std::size_t index);

  std::vector<std::uint64_t> counts_;  ///< empty until the first sample
  std::uint64_t count_ = 0;
  std::uint64_t min_ = 0;
  std::uint64_t max_ = 0;
  double sum_ = 0.0;
};

}  // namespace greynic
