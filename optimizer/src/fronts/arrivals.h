#pragma once

/// The packets that come to each table of a layout.

#include <cstdint>
#include <vector>

#include "greynic/core/flow_rule.h"
#include "src/ternary.h"

namespace greynic::optimizer {

/// A packet that comes to a table.
struct Arrival {
  std::uint32_t flow = 0;
  std::uint32_t row = kNoRow;  ///< of the table, that it hits
  double tried = 0.0;          ///< matchers, without fronts
  Packet packet;               ///< with what rules set on its way
};

/// By place of the table in the layout.
[[nodiscard]] std::vector<std::vector<Arrival>> arrivals_of(const Layout& layout,
                                                            const Traffic& traffic);

}  // namespace greynic::optimizer
