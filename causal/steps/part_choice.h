#pragma once

/// Which settings of a wall to heal in a test, so that its answer tells most of the sets that may be needed, beside
/// the tests that are in the batch already.

#include <functional>
#include <optional>
#include <vector>

#include "needed_sets.h"

namespace greynic::causal {

class PartChoice {
 public:
  PartChoice(const std::vector<NeededSet>& sets, statistics::Random& random);
  /// A test that is in the batch.
  void add(const Set& healed);
  /// How much its answer tells beside theirs.
  [[nodiscard]] double bits_of(const Set& healed) const;
  [[nodiscard]] double chance_of_wall(const Set& healed) const;
  /// The best of some that are drawn, with settings moved in and out as long as that tells more.
  [[nodiscard]] Set best();

 private:
  [[nodiscard]] std::vector<bool> hits_of(const Set& healed) const;

  const std::vector<NeededSet>& sets_;
  statistics::Random& random_;
  std::vector<std::size_t> open_;    ///< settings that some set has, and not all
  std::vector<std::uint32_t> cell_;  ///< of each set; those of one cell answer the batch alike
  std::size_t cells_ = 1;
};

}  // namespace greynic::causal
