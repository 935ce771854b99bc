#pragma once

/// Seeded random numbers: xoshiro256++, seeded by splitmix64, so that one 64-bit seed
/// gives the same run everywhere.

#include <array>
#include <cmath>
#include <cstdint>

namespace greynic::statistics {

/// Spreads a seed; also joins two seeds into one: split_mix(a ^ split_mix(b)).
[[nodiscard]] constexpr std::uint64_t split_mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

class Random {
 public:
  explicit Random(std::uint64_t seed) {
    for (auto& word : state_) word = seed = split_mix(seed);
  }
  [[nodiscard]] std::uint64_t next() {
    const std::uint64_t result = rotl(state_[0] + state_[3], 23) + state_[0];
    const std::uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = rotl(state_[3], 45);
    return result;
  }
  /// In [0, 1).
  [[nodiscard]] double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  /// In [0, bound); the bias is below 2^-32 for the bounds used here.
  [[nodiscard]] std::uint32_t below(std::uint32_t bound) {
    return static_cast<std::uint32_t>(((next() >> 32) * bound) >> 32);
  }
  [[nodiscard]] double exponential(double mean) { return -mean * std::log1p(-uniform()); }

 private:
  static constexpr std::uint64_t rotl(std::uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }
  std::array<std::uint64_t, 4> state_{};
};

/// Where a few instructions matter and quality does not: the upper half of Knuth's linear
/// congruential generator.
class QuickRandom {
 public:
  explicit QuickRandom(std::uint64_t seed = 0) : state_(split_mix(seed)) {}
  /// In [0, bound).
  [[nodiscard]] std::uint32_t below(std::uint64_t bound) {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<std::uint32_t>(((state_ >> 32) * bound) >> 32);
  }

 private:
  std::uint64_t state_;
};

}  // namespace greynic::statistics
