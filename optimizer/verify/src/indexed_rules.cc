#include "indexed_rules.h"

#include <algorithm>

#include "cover.h"

namespace greynic::verify {

bool IndexedRules::pays(const Pool& pool) {
  constexpr std::size_t kFewRules = 16;
  constexpr int kFewQuestions = 4;
  if (index_) return true;
  if (rules_.size() <= kFewRules || ++asked_ <= kFewQuestions) return false;
  std::sort(rules_.begin(), rules_.end());
  std::vector<std::uint32_t> entries;
  for (const std::uint32_t rule : rules_) entries.push_back(pool.rules[rule]);
  index_ = std::make_unique<FullIndex>(pool, std::move(entries));
  return true;
}

void IndexedRules::meeting(const Pool& pool, const Cube& cube, std::uint32_t bound,
                           RuleNumbers& found, std::uint64_t& comparisons) {
  if (pays(pool)) {
    const auto first_behind = std::lower_bound(rules_.begin(), rules_.end(), bound);
    index_->index.meeting(cube.value.data(), cube.fixed.data(),
                          static_cast<std::uint32_t>(first_behind - rules_.begin()), places_,
                          comparisons);
    for (const std::uint32_t place : places_) found.push_back(rules_[place]);
    return;
  }
  comparisons += rules_.size();
  for (const std::uint32_t rule : rules_) {
    if (rule < bound && meets(pool, pool.rules[rule], cube)) found.push_back(rule);
  }
}

}  // namespace greynic::verify
