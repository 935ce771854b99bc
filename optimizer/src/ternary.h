#pragma once

/// Rules and packets as rows of bits. Only bits that some rule of the table looks at have a column,
/// so that two rules are compared in a few words.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "greynic/core/flow_rule.h"

namespace greynic::optimizer {

using Word = std::uint64_t;

/// Which bit of which field each column holds.
class Columns {
 public:
  /// One column for each bit that a mask looks at.
  explicit Columns(const Mask& all);

  [[nodiscard]] std::size_t words() const { return words_; }
  [[nodiscard]] std::size_t count() const { return count_; }
  /// Writes words() words: column bits of a value and of a mask.
  void pack(const Match& match, Word* value, Word* mask) const;
  void pack(const Packet& packet, Word* value) const;
  [[nodiscard]] Mask unpack_mask(const Word* mask) const;
  [[nodiscard]] Match unpack(const Word* value, const Word* mask) const;

 private:
  struct FieldColumns {
    MatchField field;
    U128 bits;          ///< the bits with a column
    std::size_t first;  ///< column of the lowest of them; the others follow
    unsigned lowest;    ///< of the bits
    bool run;           ///< the bits lie side by side
  };
  void scatter(const FieldColumns& place, U128 bits, Word* out) const;
  [[nodiscard]] U128 gather(const FieldColumns& place, const Word* row) const;

  std::shared_ptr<const std::vector<FieldColumns>> fields_;  ///< copies share it
  std::size_t count_ = 0;
  std::size_t words_ = 1;
};

/// Rows of equal length, one after the other.
class Rows {
 public:
  explicit Rows(std::size_t words) : words_(words) {}
  [[nodiscard]] std::size_t words() const { return words_; }
  [[nodiscard]] std::size_t size() const { return data_.size() / words_; }
  void reserve(std::size_t rows) { data_.reserve(rows * words_); }
  [[nodiscard]] const Word* operator[](std::size_t row) const { return &data_[row * words_]; }
  [[nodiscard]] Word* operator[](std::size_t row) { return &data_[row * words_]; }
  /// Adds a row of zeros; the pointer is good until the next one is added.
  Word* add() {
    data_.resize(data_.size() + words_);
    return &data_[data_.size() - words_];
  }
  std::size_t add(const Word* row) {
    data_.insert(data_.end(), row, row + words_);
    return size() - 1;
  }

 private:
  std::size_t words_;
  std::vector<Word> data_;
};

/// Ternary rows: value and mask; value bits outside the mask are zero.
struct Ternaries {
  explicit Ternaries(std::size_t words) : value(words), mask(words) {}
  Rows value;
  Rows mask;
  [[nodiscard]] std::size_t size() const { return value.size(); }
  [[nodiscard]] std::size_t words() const { return value.words(); }
  void reserve(std::size_t rows) {
    value.reserve(rows);
    mask.reserve(rows);
  }
  void add(const Word* row_value, const Word* row_mask) {
    value.add(row_value);
    mask.add(row_mask);
  }
};

[[nodiscard]] inline bool overlap(const Word* value_a, const Word* mask_a, const Word* value_b,
                                  const Word* mask_b, std::size_t words) {
  for (std::size_t w = 0; w < words; ++w) {
    if (((value_a[w] ^ value_b[w]) & mask_a[w] & mask_b[w]) != 0) return false;
  }
  return true;
}

/// Everything that b matches, a matches.
[[nodiscard]] inline bool contains(const Word* value_a, const Word* mask_a, const Word* value_b,
                                   const Word* mask_b, std::size_t words) {
  for (std::size_t w = 0; w < words; ++w) {
    if ((mask_a[w] & ~mask_b[w]) != 0) return false;
    if (((value_a[w] ^ value_b[w]) & mask_a[w]) != 0) return false;
  }
  return true;
}

[[nodiscard]] inline bool matches(const Word* value, const Word* mask, const Word* packet,
                                  std::size_t words) {
  for (std::size_t w = 0; w < words; ++w) {
    if (((value[w] ^ packet[w]) & mask[w]) != 0) return false;
  }
  return true;
}

/// Hash of the bits of `row` under `mask`.
[[nodiscard]] inline std::uint64_t hash_under(const Word* row, const Word* mask,
                                              std::size_t words) {
  std::uint64_t hash = 0x9e3779b97f4a7c15ULL;
  for (std::size_t w = 0; w < words; ++w) {
    hash ^= row[w] & mask[w];
    hash *= 0xd6e8feb86659fd93ULL;
    hash ^= hash >> 32;
  }
  hash *= 0xd6e8feb86659fd93ULL;
  return hash ^ hash >> 29;
}

/// For each packet the first row, in order, that matches it; kNoRow when none does. Rows and
/// packets are split together, bit by bit, so the time grows little faster than their number.
inline constexpr std::uint32_t kNoRow = 0xffffffff;
[[nodiscard]] std::vector<std::uint32_t> first_matches(const Ternaries& rows, const Rows& packets);

/// The column that splits rows best into those with 0 and those with 1, both with few wild ones; -1
/// when no row looks at any column outside `decided`. Looks at a sample of the rows.
[[nodiscard]] int best_split(const Ternaries& rows, std::span<const std::uint32_t> members,
                             const std::vector<Word>& decided);

}  // namespace greynic::optimizer
