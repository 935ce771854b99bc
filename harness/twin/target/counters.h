#pragma once

/// The RNICs' event counts under the names that drivers give them: all that the rest of greynic
/// sees.

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "parts/nic.h"

namespace greynic::twin {

/// What only some runs count.
struct CounterGroups {
  bool recovery = false;    ///< lost packets
  bool errors = false;      ///< QPs that fail
  bool discards = false;    ///< by a switch without PFC
  bool congestion = false;  ///< DCQCN
};

/// Counters of the client's RNIC under their plain names, those of the server's (the second) behind
/// "server.", those of other clients behind "client2." and so on. Always the same names in the same
/// order; those of `groups` come on top.
[[nodiscard]] std::vector<std::pair<std::string, double>> name_counters(
    std::span<const NicCounters> rnics, double pipe_count, const CounterGroups& groups);

}  // namespace greynic::twin
