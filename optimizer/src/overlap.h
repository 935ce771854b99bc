#pragma once

/// The exact overlap scan: which rules of one mask must stay before which of another. Two rules of
/// masks A and B overlap exactly when they agree on the bits of A & B, so a hash join on those bits
/// finds every overlapping pair without comparing all of them. A collision of the 64-bit hash could
/// only report an overlap that is not there, which costs an exchange but never correctness.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "ternary.h"

namespace greynic::optimizer {

/// The rules of one input table. Row i wins over row j when i < j.
struct Problem {
  Problem(Columns packed_columns, std::size_t words)
      : columns(std::move(packed_columns)), rows(words) {}
  Columns columns;
  Ternaries rows;
  std::vector<std::uint32_t> effect;  ///< equal number: equal actions
  std::vector<std::uint32_t> rule;    ///< index in the RuleSet
  std::vector<double> weight;         ///< of the traffic that the row decides
};

/// Rows of equal mask: a matcher to be.
struct Group {
  std::vector<std::uint32_t> rows;  ///< ascending, at least one
  double weight = 0.0;
};

/// Square matrix of bits.
class BitMatrix {
 public:
  explicit BitMatrix(std::size_t size)
      : size_(size), words_((size + 63) / 64), bits_(size * words_) {}
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::size_t words() const { return words_; }
  void set(std::size_t row, std::size_t column) {
    bits_[row * words_ + column / 64] |= Word{1} << column % 64;
  }
  [[nodiscard]] bool test(std::size_t row, std::size_t column) const {
    return (bits_[row * words_ + column / 64] >> column % 64 & 1) != 0;
  }
  [[nodiscard]] bool none() const {
    return std::ranges::all_of(bits_, [](Word word) { return word == 0; });
  }
  [[nodiscard]] const Word* row(std::size_t index) const { return &bits_[index * words_]; }

 private:
  std::size_t size_;
  std::size_t words_;
  std::vector<Word> bits_;
};

/// Rows with the same mask as one group each, in order of first appearance.
[[nodiscard]] std::vector<Group> groups_by_mask(const Problem& problem,
                                                const std::vector<std::uint32_t>& rows);

/// (a, b) is set when some row of group a wins over an overlapping row of group b that does
/// something else.
[[nodiscard]] BitMatrix precedence(const Problem& problem, const std::vector<Group>& groups);

/// Two rows that overlap and do different things; the first wins.
struct RowPair {
  std::uint32_t first;
  std::uint32_t second;
};
/// The same, where all such pairs of `rows` rows are known.
[[nodiscard]] BitMatrix precedence(const std::vector<RowPair>& pairs, std::size_t rows,
                                   const std::vector<Group>& groups);

/// For each row of `later`: does an overlapping row of `earlier`, with another effect, win over it?
/// Adds `step` to counts[row] where it does.
void count_blocked(const Problem& problem, const std::vector<std::uint32_t>& earlier,
                   const std::vector<std::uint32_t>& later, int step,
                   std::vector<std::int32_t>& counts);

/// Rows that can never decide: an earlier row contains them. Also rows whose packets would get the
/// same from a later row, with nothing of another effect between; those only as far as a bounded
/// search finds them. true for each row that may be left out.
[[nodiscard]] std::vector<bool> redundant_rows(const Problem& problem);

}  // namespace greynic::optimizer
