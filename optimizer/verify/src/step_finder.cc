#include "step_finder.h"

#include <algorithm>

#include "cover.h"

namespace greynic::verify {

FullIndex* StepFinder::index_of(PlaceId place) {
  constexpr std::size_t kFewSteps = 16;
  const auto& steps = places_[place].steps;
  if (steps.size() <= kFewSteps) return nullptr;
  auto& index = indexes_[place];
  if (!index) {
    std::vector<std::uint32_t> entries;
    for (const Step& step : steps) entries.push_back(step.entry);
    index = std::make_unique<FullIndex>(pool_, std::move(entries));
  }
  return index.get();
}

void StepFinder::meeting(PlaceId place, const Cube& cube, std::vector<std::uint32_t>& steps,
                         std::uint64_t& comparisons) {
  if (const FullIndex* const all = index_of(place)) {
    all->index.meeting(cube.value.data(), cube.fixed.data(), RuleIndex::kNoRule, steps,
                       comparisons);
    return;
  }
  const auto& all = places_[place].steps;
  comparisons += all.size();
  steps.clear();
  for (std::uint32_t i = 0; i < all.size(); ++i) {
    if (meets(pool_, all[i].entry, cube)) steps.push_back(i);
  }
}

const Step* StepFinder::containing(PlaceId place, const Cube& cube, std::uint64_t& comparisons) {
  const auto& all = places_[place].steps;
  if (const FullIndex* const index = index_of(place)) {
    const std::uint32_t step = index->index.first_containing(cube, comparisons);
    return step == RuleIndex::kNoRule ? nullptr : &all[step];
  }
  comparisons += all.size();
  const auto step =
      std::ranges::find_if(all, [&](const Step& s) { return contains(pool_, s.entry, cube); });
  return step == all.end() ? nullptr : &*step;
}

bool StepFinder::take_all(PlaceId place, const Cube& cube, std::uint64_t& comparisons) {
  if (FullIndex* const all = index_of(place);
      all != nullptr && all->index.first_containing(cube, comparisons) != RuleIndex::kNoRule) {
    return true;
  }
  if (places_[place].masks.size() == 1 &&
      places_[place].steps.size() < places_.parts(place, cube)) {
    return false;
  }
  std::vector<std::uint32_t> met;
  meeting(place, cube, met, comparisons);
  return places_.take_all(place, cube, met.size()) ||
         std::ranges::any_of(met, [&](std::uint32_t step) {
           return contains(pool_, places_[place].steps[step].entry, cube);
         });
}

}  // namespace greynic::verify
