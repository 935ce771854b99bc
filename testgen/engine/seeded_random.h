#pragma once

/// SplitMix64 (Steele, Lea and Flood, 2014): the same numbers on every machine for a seed, which
/// std distributions do not give. It is not statistics::Random (xoshiro256++), because published
/// array sizes hang on this stream, and one word of state is all that a search needs.

#include <cstdint>

#include "greynic/statistics/random.h"

namespace greynic::testgen {

class SeededRandom {
 public:
  explicit SeededRandom(std::uint64_t seed) : state_(seed * kStep + 0x2545f4914f6cdd1dULL) {}
  std::uint64_t next() {
    const std::uint64_t number = statistics::split_mix(state_);
    state_ += kStep;
    return number;
  }
  /// Uniform in [0, bound); bound > 0.
  std::uint32_t below(std::uint32_t bound) {
    return static_cast<std::uint32_t>(((next() >> 32) * bound) >> 32);
  }

 private:
  static constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15ULL;
  std::uint64_t state_;
};

}  // namespace greynic::testgen
