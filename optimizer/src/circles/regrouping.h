#pragma once

/// Parts that change, mask by mask.

#include <cstdint>
#include <vector>

#include "greynic/statistics/random.h"
#include "src/circles/parts.h"

namespace greynic::optimizer::circles {

class Regrouping {
 public:
  /// Both must outlive it. The parts are in no circle, and never will be.
  Regrouping(const RowGraph& graph, Parts& parts);

  /// Takes up to four of these masks apart, drawn at random, and puts them together in any order.
  void regroup_some(const std::vector<std::uint32_t>& masks, statistics::Random& random);

 private:
  void take_apart(std::uint32_t mask);
  void put_together(std::uint32_t mask, bool last);
  void sort_parts(std::uint32_t mask);
  void count_behind(std::uint32_t mask);

  const RowGraph& graph_;
  Parts& parts_;
  std::vector<std::uint32_t> next_;     ///< in the same part
  std::vector<std::uint32_t> waiting_;  ///< by part: edges from parts that are not sorted yet
  std::vector<std::uint32_t> level_;    ///< by part
  std::vector<std::uint32_t> order_;    ///< parts behind all that must precede them
};

}  // namespace greynic::optimizer::circles
