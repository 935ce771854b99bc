#pragma once

/// For each place, the rules that its entries serve: the sets of which the local proof speaks.

#include <map>
#include <memory>
#include <vector>

#include "regions.h"
#include "rule_index.h"

namespace greynic::verify {

/// Rules are numbered by their place in Pool::rules.
using RuleNumbers = std::vector<std::uint32_t>;

class Witnesses {
 public:
  Witnesses(const Pool& pool, const Places& places, const Regions& regions,
            std::uint64_t& comparisons, std::uint64_t most_comparisons);

  /// Of the place itself: what its entries do, and what its jumps do until they meet its own way.
  [[nodiscard]] const RuleNumbers& of_place(PlaceId place) const { return of_place_[place]; }
  /// Those after which nothing is left of the packets of an entry that does not jump.
  [[nodiscard]] std::uint32_t last_of(PlaceId place, std::size_t step) const {
    return last_of_[place][step];
  }
  [[nodiscard]] bool out_of_comparisons() const { return comparisons_ > most_; }

 private:
  void find(PlaceId place);
  RuleNumbers of_entry(PlaceId place, std::uint32_t entry);
  RuleNumbers candidates(std::uint32_t effect, const Cube& cube);
  void add(PlaceId place, std::uint32_t rule);

  const Pool& pool_;
  const Places& places_;
  const Regions& regions_;
  std::uint64_t& comparisons_;
  std::uint64_t most_;
  std::map<std::uint32_t, RuleNumbers> by_effect_;
  std::map<std::uint32_t, std::unique_ptr<FullIndex>>
      indexes_;  ///< of effects that many rules have
  std::vector<RuleNumbers> of_place_;
  std::vector<RuleNumbers> last_of_;
  std::vector<PlaceId> added_at_;     ///< by rule
  std::vector<PlaceId> followed_at_;  ///< by place: the last one of which a jump was followed to it
};

}  // namespace greynic::verify
