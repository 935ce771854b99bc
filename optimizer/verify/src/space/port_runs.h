#pragma once

/// Rules that a reader wrote out of one line with port ranges, put together again. They follow one
/// another, do the same and ask for the same but for their ports, so they are as many rectangles of
/// ports as needed, in any order.

#include <cstdint>
#include <vector>

#include "greynic/core/flow_rule.h"

namespace greynic::verify {

struct PortRun {
  Match match;          ///< ports as ranges where several rules were put together
  std::uint32_t first;  ///< of the rules that it stands for
};

/// `effects`: of each match; first wins, before and after.
[[nodiscard]] std::vector<PortRun> port_runs(const std::vector<const Match*>& matches,
                                             const std::vector<std::uint32_t>& effects);

}  // namespace greynic::verify
