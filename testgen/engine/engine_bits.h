#pragma once

/// Bit sets as plain runs of 64-bit words: the inner loops of the engine.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace greynic::testgen {

using Word = std::uint64_t;
using Words = std::vector<Word>;

inline void set_bit(Word* words, std::size_t i) { words[i >> 6] |= Word{1} << (i & 63); }
inline void clear_bit(Word* words, std::size_t i) { words[i >> 6] &= ~(Word{1} << (i & 63)); }
inline bool test_bit(const Word* words, std::size_t i) { return (words[i >> 6] >> (i & 63)) & 1; }

inline int count_common(const Word* a, const Word* b, std::size_t words) {
  int count = 0;
  for (std::size_t i = 0; i < words; ++i) count += std::popcount(a[i] & b[i]);
  return count;
}

inline bool any_common(const Word* a, const Word* b, std::size_t words) {
  Word any = 0;
  for (std::size_t i = 0; i < words; ++i) any |= a[i] & b[i];
  return any != 0;
}

/// Calls visit(index) for each set bit, ascending.
template <typename Visit>
void for_each_bit(const Word* words, std::size_t count, Visit&& visit) {
  for (std::size_t i = 0; i < count; ++i) {
    for (Word w = words[i]; w != 0; w &= w - 1) {
      visit(i * 64 + static_cast<std::size_t>(std::countr_zero(w)));
    }
  }
}

/// xoshiro-like small generator: the same numbers on every machine for a seed (std distributions
/// differ).
class Random {
 public:
  explicit Random(std::uint64_t seed)
      : state_(seed * 0x9e3779b97f4a7c15ULL + 0x2545f4914f6cdd1dULL) {}
  std::uint64_t next() {  // splitmix64
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  /// Uniform in [0, bound); bound > 0.
  std::uint32_t below(std::uint32_t bound) {
    return static_cast<std::uint32_t>(((next() >> 32) * bound) >> 32);
  }

 private:
  std::uint64_t state_;
};

}  // namespace greynic::testgen
