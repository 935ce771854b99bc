#pragma once

/// Fills one row: starts from a tuple that must be in it, then takes again and again the value that
/// newly covers most, among those that validity still allows.

#include <vector>

#include "engine/engine_bits.h"
#include "engine/open_tuples.h"
#include "engine/seeded_random.h"
#include "validity/validity.h"

namespace greynic::testgen {

class RowBuilder {
 public:
  RowBuilder(const Space& space, const ValueIndex& index, Validity& validity,
             const std::vector<OpenTuples>& layers);

  /// Levels that cost more than another that is still allowed are left out of rows that are not
  /// built on them. `cost` of each value; empty: none.
  void avoid(std::vector<double> cost);

  /// A valid row that holds `must`, one value a parameter; empty when there is none.
  [[nodiscard]] std::vector<Value> build(std::span<const Value> must, SeededRandom& random);

 private:
  void take_in();
  void start_over();
  [[nodiscard]] Value best(SeededRandom& random) const;
  [[nodiscard]] double least_cost(std::uint32_t parameter) const;

  const ValueIndex& index_;
  Validity& validity_;
  const std::vector<OpenTuples>& layers_;
  std::vector<std::int32_t> gain_;
  Words held_;
  Words others_;             ///< values of parameters that the row does not have yet
  std::vector<Value> list_;  ///< held values that layers concern, ascending
  std::size_t taken_ = 0;    ///< of validity_.row()
  std::vector<char> filled_;
  std::vector<double> cost_;
  std::vector<double> cheapest_;    ///< of each parameter
  std::vector<double> preference_;  ///< of each value: weight, or cheapness
};

}  // namespace greynic::testgen
