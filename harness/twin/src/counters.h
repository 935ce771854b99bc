#pragma once

/// The RNICs' event counts under the names that drivers give them: all that the rest of greynic
/// sees.

#include <string>
#include <utility>
#include <vector>

#include "nic.h"

namespace greynic::twin {

/// What only some runs count.
struct CounterGroups {
  bool recovery = false;    ///< lost packets
  bool errors = false;      ///< QPs that fail
  bool congestion = false;  ///< DCQCN
};

/// Counters of the client's RNIC under their plain names, those of the server's behind "server.".
/// Always the same names in the same order; those of `groups` come on top.
[[nodiscard]] std::vector<std::pair<std::string, double>> name_counters(
    const NicCounters& client, const NicCounters& server, double pipe_count,
    const CounterGroups& groups);

}  // namespace greynic::twin
