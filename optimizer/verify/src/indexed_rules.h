#pragma once

/// Rules, by their numbers, that are asked which of them meet cubes: at first by looking at each, and
/// by an index from the time on when it pays to make one.

#include <memory>

#include "witnesses.h"

namespace greynic::verify {

class IndexedRules {
 public:
  void add(std::uint32_t rule) { rules_.push_back(rule); }
  [[nodiscard]] const RuleNumbers& all() const { return rules_; }
  /// Adds to `found` those before `bound` that meet the cube; comparisons are counted.
  void meeting(const Pool& pool, const Cube& cube, std::uint32_t bound, RuleNumbers& found,
               std::uint64_t& comparisons);

 private:
  bool pays(const Pool& pool);

  RuleNumbers rules_;  ///< no more are added once it was asked
  int asked_ = 0;
  std::unique_ptr<FullIndex> index_;
  RuleNumbers places_;  ///< what the index finds
};

}  // namespace greynic::verify
