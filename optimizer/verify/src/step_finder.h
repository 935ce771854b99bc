#pragma once

/// The steps of places that a cube meets.

#include <map>
#include <memory>
#include <vector>

#include "places.h"
#include "rule_index.h"

namespace greynic::verify {

class StepFinder {
 public:
  StepFinder(const Pool& pool, const Places& places) : pool_(pool), places_(places) {}

  /// Numbers of the place's steps, ascending; comparisons are counted.
  void meeting(PlaceId place, const Cube& cube, std::vector<std::uint32_t>& steps,
               std::uint64_t& comparisons);

 private:
  struct StepIndex {
    std::vector<std::uint32_t> entries;
    std::unique_ptr<RuleIndex> index;
  };
  const Pool& pool_;
  const Places& places_;
  std::map<PlaceId, StepIndex> indexes_;  ///< of places with many steps
};

}  // namespace greynic::verify
