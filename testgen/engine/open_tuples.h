#pragma once

/// The tuples of one strength that still need a row. A tuple of t values is kept under each of its
/// t prefixes of t - 1 values: a prefix has one bit for every value that is open together with it.
/// So "what would this value newly cover in that row" is a population count, whatever the order in
/// which the row is filled.

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/engine_bits.h"
#include "engine/engine_values.h"
#include "engine/prefix_bits.h"

namespace greynic::testgen {

class OpenTuples {
 public:
  /// `parameters`: those among which tuples of `strength` values are wanted, ascending;
  /// `compatible`: for each value the set of values that may share a row with it, index.words()
  /// words each; a value that takes part in nothing (absent, impossible) has an empty set. A tuple
  /// with two incompatible values is not wanted. `go_on` is asked from time to time while the
  /// tables are laid out, with the share that is done; after a false they are not to be used.
  OpenTuples(const ValueIndex& index, int strength, std::span<const std::uint32_t> parameters,
             const Words& compatible, const std::function<bool(double share)>& go_on);

  [[nodiscard]] int strength() const { return strength_; }
  [[nodiscard]] std::uint64_t open() const { return open_; }
  /// Open tuples that contain the value.
  [[nodiscard]] std::uint64_t open_with(Value v) const { return open_with_[v]; }
  [[nodiscard]] bool concerns(Value v) const { return test_bit(wanted_.data(), v); }

  /// Takes the tuples of a row (ascending values, one a parameter) away; how many were open.
  std::uint64_t cover(std::span<const Value> row);
  /// Takes away one tuple, ascending values.
  void remove(std::span<const Value> tuple);
  [[nodiscard]] bool is_open(std::span<const Value> tuple) const;

  /// The value joins a row that holds `held` (a set) and `list` (the same, ascending, without it):
  /// adds to gain[v], for each value of `candidates`, the open tuples that v and the new value
  /// complete with held ones. Gains of further values are left as they come.
  void add_gain(Value joined, const Words& held, std::span<const Value> list,
                const Words& candidates, std::vector<std::int32_t>& gain) const;
  /// An open tuple, found from a starting point in [0, 2^32) that spreads over all of them;
  /// ascending.
  [[nodiscard]] std::vector<Value> any_open(std::uint32_t start) const;
  /// Calls visit(tuple) for each open tuple, ascending values; visit may remove() it.
  template <typename Visit>
  void for_each(Visit&& visit) const;

 private:
  int strength_;
  std::size_t words_;
  Words wanted_;
  PrefixBits bits_;
  std::vector<std::uint64_t> open_with_;
  std::vector<std::uint64_t> pending_;  ///< scratch of cover(), all 0 between calls
  std::uint64_t open_ = 0;
};

template <typename Visit>
void OpenTuples::for_each(Visit&& visit) const {
  for (std::size_t r = 0; r < bits_.prefixes(); ++r) {
    const Word* bits = bits_.at(r);
    bool any = false;
    for (std::size_t w = 0; w < words_ && !any; ++w) any = bits[w] != 0;
    if (!any) continue;
    std::vector<Value> tuple = bits_.unrank(r);
    const Value after = tuple.empty() ? 0 : tuple.back() + 1;
    const Words copy(bits, bits + words_);
    tuple.push_back(0);
    for_each_bit(copy.data(), words_, [&](std::size_t v) {
      if (v < after) return;  // the same tuple comes under its own first values
      tuple.back() = static_cast<Value>(v);
      visit(std::span<const Value>(tuple));
    });
  }
}

}  // namespace greynic::testgen
