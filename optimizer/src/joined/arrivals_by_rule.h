#pragma once

/// The packets that each rule of a pipeline decides.

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "src/joined/pipeline.h"

namespace greynic::optimizer::joined {

/// Packets as they come to a rule's table, in the pipeline's columns.
struct Arrivals {
  Rows packets;
  std::vector<double> share;  ///< of all packets
};
using Place = std::pair<std::uint32_t, std::uint32_t>;  ///< table and row
using ArrivalsByRule = std::map<Place, Arrivals>;

/// Of tables from `first` on.
[[nodiscard]] ArrivalsByRule arrivals_by_rule(const Pipeline& pipeline, const Traffic& traffic,
                                              std::uint32_t first);

}  // namespace greynic::optimizer::joined
