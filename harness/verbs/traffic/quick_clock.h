#pragma once

/// CLOCK_MONOTONIC for a few instructions, for threads that read it once a message: the processor's
/// time-stamp counter, where the kernel keeps its own time by it, at a rate that is found by
/// comparing the two; elsewhere, and for the first millisecond, clock_gettime itself.
///
/// Never runs backwards. Each rate holds for as long as it took to find, at most 64 ms, and the
/// clock then starts again from the kernel's: it is as exact as one comparison, some tens of
/// nanoseconds. Belongs to one thread.

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <limits>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace greynic::verbs {

/// What std::chrono::steady_clock reads.
[[nodiscard]] inline std::int64_t now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

/// The processor's counter and the kernel's clock.
class MachineTime {
 public:
  /// Whether the kernel's clock is made from the counter, which then runs evenly and alike on all
  /// cores.
  [[nodiscard]] static bool counter_is_trusted();
  /// Not before what stands in front of it in the program is done.
  [[nodiscard]] static std::uint64_t counter() {
#if defined(__x86_64__)
    _mm_lfence();
    return __rdtsc();
#else
    return 0;
#endif
  }
  [[nodiscard]] static std::int64_t clock_ns() { return now_ns(); }
};

template <typename Time>
class BasicQuickClock {
 public:
  explicit BasicQuickClock(Time time = {}) : time_(time), counts_(time_.counter_is_trusted()) {}

  [[nodiscard]] std::int64_t now_ns() {
    // A counter that ran backwards would have passed more than any span.
    const std::uint64_t passed = time_.counter() - from_count_;
    return passed < span_ ? from_ns_ + to_ns(passed) : compare();
  }

 private:
  static constexpr std::int64_t kShortestNs = 1'000'000;
  static constexpr std::int64_t kLongestNs = 64'000'000;  // and to_ns() does not overflow
  static constexpr int kAttempts = 3;

  struct Pair {
    std::uint64_t count = 0;
    std::int64_t ns = 0;
  };

  [[nodiscard]] std::int64_t to_ns(std::uint64_t counts) const {
    return static_cast<std::int64_t>((counts * ns_per_count_) >> 32);
  }

  /// Both at one time: of some attempts the one that took least, because a thread may lose its
  /// processor between the two.
  Pair read_both() {
    Pair best;
    std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t before = time_.counter();
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      const std::int64_t ns = time_.clock_ns();
      const std::uint64_t after = time_.counter();
      if (after - before < least) {
        least = after - before;
        best = {before + least / 2, ns};
      }
      before = after;
    }
    return best;
  }

  [[gnu::noinline]] std::int64_t compare() {
    if (!counts_) return time_.clock_ns();
    const Pair now = read_both();
    if (first_.ns == 0) first_ = now;
    const std::int64_t told = from_ns_ + to_ns(span_);  // at most
    const std::int64_t known_for = now.ns - first_.ns;
    if (known_for >= kShortestNs && now.count > first_.count) {
      const double rate =
          static_cast<double>(known_for) / static_cast<double>(now.count - first_.count);
      ns_per_count_ = static_cast<std::uint64_t>(rate * 0x1p32);
      span_ =
          static_cast<std::uint64_t>(static_cast<double>(std::min(known_for, kLongestNs)) / rate);
    }
    from_count_ = now.count;
    from_ns_ = std::max(now.ns, told);
    return from_ns_;
  }

  Time time_;
  bool counts_;
  std::uint64_t from_count_ = 0;
  std::int64_t from_ns_ = 0;
  std::uint64_t span_ = 0;          ///< counts behind from_count_ for which the rate holds
  std::uint64_t ns_per_count_ = 0;  ///< in 2^-32
  Pair first_;
};

using QuickClock = BasicQuickClock<MachineTime>;

}  // namespace greynic::verbs
