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

}  // namespace greynic::testgen
