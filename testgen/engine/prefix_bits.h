#pragma once

/// One set of values for each choice of a few values of different parameters (a prefix). With t - 1
/// values in the prefix this is a set of tuples of strength t, each kept under all of its t
/// prefixes.

#include <algorithm>
#include <span>
#include <vector>

#include "engine/engine_bits.h"
#include "engine/engine_values.h"

namespace greynic::testgen {

class PrefixBits {
 public:
  /// For the first `values` values; those of helpers, which are never looked up, come last.
  PrefixBits(const ValueIndex& index, std::size_t values, std::size_t prefix_size)
      : index_(index),
        words_((values + 63) / 64),
        choose_(prefix_size, std::vector<std::size_t>(values + 1, 0)) {
    for (std::size_t i = 0; i < prefix_size; ++i) {
      for (std::size_t v = 1; v <= values; ++v) {
        choose_[i][v] = choose_[i][v - 1] + (i == 0 ? 1 : choose_[i - 1][v - 1]);
      }
      prefixes_ = choose_[i][values];
    }
    bits_.assign(prefixes_ * words_, 0);
  }

  /// Bytes that such an object takes, before making it.
  [[nodiscard]] static double bytes_needed(std::size_t values, std::size_t prefix_size) {
    double prefixes = 1;
    for (std::size_t i = 0; i < prefix_size; ++i) {
      prefixes *= std::max(0.0, static_cast<double>(values) - static_cast<double>(i)) /
                  static_cast<double>(i + 1);
    }
    return prefixes * static_cast<double>((values + 63) / 64) * 8.0;
  }

  [[nodiscard]] std::size_t prefixes() const { return prefixes_; }
  [[nodiscard]] std::size_t prefix_size() const { return choose_.size(); }
  [[nodiscard]] std::size_t words() const { return words_; }
  [[nodiscard]] Word* at(std::size_t rank) { return &bits_[rank * words_]; }
  [[nodiscard]] const Word* at(std::size_t rank) const { return &bits_[rank * words_]; }

  /// Position of a prefix of ascending values: the sum of C(v_i, i).
  [[nodiscard]] std::size_t rank(std::span<const Value> prefix) const {
    std::size_t r = 0;
    for (std::size_t i = 0; i < prefix.size(); ++i) r += choose_[i][prefix[i]];
    return r;
  }
  /// C(v, i + 1): what v adds to the rank as value i of a prefix.
  [[nodiscard]] std::size_t rank_of(std::size_t i, Value v) const { return choose_[i][v]; }

  [[nodiscard]] std::vector<Value> unrank(std::size_t rank) const {
    std::vector<Value> prefix(choose_.size());
    for (std::size_t i = choose_.size(); i-- > 0;) {
      const auto& row = choose_[i];
      const auto it = std::upper_bound(row.begin(), row.end(), rank);
      prefix[i] = static_cast<Value>(it - row.begin() - 1);
      rank -= row[prefix[i]];
    }
    return prefix;
  }

  /// Calls visit(prefix, rank) for each choice among these ascending values.
  template <typename Visit>
  void for_each_prefix(std::span<const Value> from, Visit&& visit) const {
    const std::size_t size = choose_.size();
    std::vector<Value> prefix(size);
    const auto descend = [&](const auto& self, std::size_t depth, std::size_t next,
                             std::size_t rank_so_far) -> void {
      if (depth == size) {
        visit(std::span<const Value>(prefix), rank_so_far);
        return;
      }
      for (std::size_t i = next; i < from.size(); ++i) {
        const Value v = from[i];
        if (depth > 0 && index_.parameter(v) == index_.parameter(prefix[depth - 1])) continue;
        prefix[depth] = v;
        self(self, depth + 1, i + 1, rank_so_far + choose_[depth][v]);
      }
    };
    descend(descend, 0, 0, 0);
  }

 private:
  const ValueIndex& index_;
  std::size_t words_;
  std::size_t prefixes_ = 1;
  std::vector<std::vector<std::size_t>> choose_;  ///< choose_[i][v] = C(v, i + 1)
  Words bits_;
};

}  // namespace greynic::testgen
