#pragma once

/// The hash join behind the overlap scan: rows by their bits under a mask, with the extreme ranks
/// of each key.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "ternary.h"

namespace greynic::optimizer {

/// Ranks of the rows that share one key. Effects matter because rows of equal effect may swap: next
/// to the extreme rank we keep the extreme among rows of any other effect.
struct Ranks {
  std::uint64_t key = 0;
  std::uint32_t first = kNoRow;
  std::uint32_t first_effect = 0;
  std::uint32_t first_other = kNoRow;
  std::int64_t last = -1;
  std::uint32_t last_effect = 0;
  std::int64_t last_other = -1;

  void add(std::uint32_t rank, std::uint32_t effect) {
    if (first == kNoRow) {
      first = rank;
      first_effect = effect;
    } else if (rank < first) {
      if (effect != first_effect) first_other = first;
      first = rank;
      first_effect = effect;
    } else if (effect != first_effect) {
      first_other = std::min(first_other, rank);
    }
    if (last < 0) {
      last = rank;
      last_effect = effect;
    } else if (rank > last) {
      if (effect != last_effect) last_other = last;
      last = rank;
      last_effect = effect;
    } else if (effect != last_effect) {
      last_other = std::max<std::int64_t>(last_other, rank);
    }
  }

  /// Some row here wins over some row of `other` with another effect.
  [[nodiscard]] bool precedes(const Ranks& other) const {
    if (first_effect != other.last_effect) return static_cast<std::int64_t>(first) < other.last;
    return static_cast<std::int64_t>(first) < other.last_other ||
           (first_other != kNoRow && static_cast<std::int64_t>(first_other) < other.last);
  }

  /// Some row here wins over a row of this rank and effect, doing something else.
  [[nodiscard]] bool blocks(std::uint32_t rank, std::uint32_t effect) const {
    return (first_effect != effect ? first : first_other) < rank;
  }
};

/// Rows by the hash of their bits under a mask: open addressing, at most half full.
class KeyTable {
 public:
  /// Rows `members` of `rows` under `mask`; `rank` and `effect` are by row.
  template <typename RankOf>
  KeyTable(const Ternaries& rows, const std::vector<std::uint32_t>& members, const Word* mask,
           RankOf rank, const std::vector<std::uint32_t>& effect) {
    slots_.resize(std::bit_ceil(std::max<std::size_t>(2, members.size() * 2)));
    for (const std::uint32_t row : members) {
      find(hash_under(rows.value[row], mask, rows.words())).add(rank(row), effect[row]);
    }
    entries_.reserve(members.size());
    for (std::uint32_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i].first != kNoRow) entries_.push_back(i);
    }
  }

  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  [[nodiscard]] const Ranks& entry(std::size_t i) const { return slots_[entries_[i]]; }
  [[nodiscard]] const Ranks* lookup(std::uint64_t key) const {
    for (std::size_t i = key & (slots_.size() - 1);; i = (i + 1) & (slots_.size() - 1)) {
      if (slots_[i].first == kNoRow) return nullptr;
      if (slots_[i].key == key) return &slots_[i];
    }
  }

 private:
  Ranks& find(std::uint64_t key) {
    for (std::size_t i = key & (slots_.size() - 1);; i = (i + 1) & (slots_.size() - 1)) {
      if (slots_[i].first == kNoRow) {
        slots_[i].key = key;
        return slots_[i];
      }
      if (slots_[i].key == key) return slots_[i];
    }
  }

  std::vector<Ranks> slots_;
  std::vector<std::uint32_t> entries_;
};

struct RowHash {
  std::size_t operator()(const std::vector<Word>& row) const {
    std::size_t hash = 0;
    for (const Word word : row) hash = (hash ^ word) * 0xd6e8feb86659fd93ULL;
    return hash ^ hash >> 31;
  }
};
template <typename T>
using ByMask = std::unordered_map<std::vector<Word>, T, RowHash>;

[[nodiscard]] inline std::vector<Word> mask_of(const Ternaries& rows, std::uint32_t row) {
  return {rows.mask[row], rows.mask[row] + rows.words()};
}

[[nodiscard]] inline std::vector<Word> common(const std::vector<Word>& a,
                                              const std::vector<Word>& b) {
  std::vector<Word> result(a.size());
  for (std::size_t w = 0; w < a.size(); ++w) result[w] = a[w] & b[w];
  return result;
}

}  // namespace greynic::optimizer
