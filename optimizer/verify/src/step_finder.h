#pragma once

/// The steps of places that a cube meets.

#include <memory>
#include <vector>

#include "places.h"
#include "rule_index.h"

namespace greynic::verify {

class StepFinder {
 public:
  StepFinder(const Pool& pool, const Places& places)
      : pool_(pool), places_(places), indexes_(places.size()) {}

  /// Numbers of the place's steps, ascending; comparisons are counted.
  void meeting(PlaceId place, const Cube& cube, std::vector<std::uint32_t>& steps,
               std::uint64_t& comparisons);
  /// One that contains the cube; null when none does.
  [[nodiscard]] const Step* containing(PlaceId place, const Cube& cube, std::uint64_t& comparisons);
  /// Does one step of the place take all packets of the cube, or several of one mask together?
  [[nodiscard]] bool take_all(PlaceId place, const Cube& cube, std::uint64_t& comparisons);

 private:
  /// Null where there are so few steps that they are looked through.
  FullIndex* index_of(PlaceId place);

  const Pool& pool_;
  const Places& places_;
  std::vector<std::unique_ptr<FullIndex>> indexes_;  ///< by place
};

}  // namespace greynic::verify
