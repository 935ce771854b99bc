#pragma once

/// What is worth its lookup recipes on a device that has few.

#include <optional>

#include "greynic/core/layout_limits.h"
#include "src/entering.h"

namespace greynic::optimizer::recipes {

/// Packets that agree with a flow under a mask: they are inside of the rule that decides it, and
/// outside of all that stand before that rule.
struct Cut {
  std::uint32_t row = 0;     ///< the rule's, of the problem
  std::uint32_t packet = 0;  ///< row of the entering packets
  std::uint32_t mask = 0;    ///< place in Held::masks
};

struct Held {
  std::vector<std::vector<Word>> masks;  ///< that the device is to hold, the dearest choice last
  std::vector<std::uint32_t> rows;       ///< of the problem, ascending: rules that it holds whole
  std::vector<Cut> cuts;
};

/// Chooses rules and flows that the device's recipes do for, all but `kept_back` of them, within
/// `most_masks` masks. `decider`: row of the problem by packet.
[[nodiscard]] Held choose_held(const Problem& problem, const Entering& packets,
                               const std::vector<std::uint32_t>& decider,
                               const LayoutLimits& limits, std::size_t kept_back,
                               std::size_t most_masks);

}  // namespace greynic::optimizer::recipes
