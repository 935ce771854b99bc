#include "step_finder.h"

#include "cover.h"

namespace greynic::verify {

void StepFinder::meeting(PlaceId place, const Cube& cube, std::vector<std::uint32_t>& steps,
                         std::uint64_t& comparisons) {
  constexpr std::size_t kFewSteps = 16;  // looked through without an index
  const auto& all = places_[place].steps;
  steps.clear();
  if (all.size() <= kFewSteps) {
    comparisons += all.size();
    for (std::uint32_t i = 0; i < all.size(); ++i) {
      if (meets(pool_, all[i].entry, cube)) steps.push_back(i);
    }
    return;
  }
  StepIndex& held = indexes_[place];
  if (!held.index) {
    for (const Step& step : all) held.entries.push_back(step.entry);
    held.index = std::make_unique<RuleIndex>(pool_, held.entries);
    for (std::uint32_t i = 0; i < all.size(); ++i) held.index->insert(i);
  }
  const auto count = static_cast<std::uint32_t>(all.size());
  held.index->meeting(cube.value.data(), cube.fixed.data(), count, steps, comparisons);
}

}  // namespace greynic::verify
