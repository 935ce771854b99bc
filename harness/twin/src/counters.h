#pragma once

/// The RNICs' event counts under the names that drivers give them: all that the rest of greynic
/// sees.

#include <string>
#include <utility>
#include <vector>

#include "nic.h"

namespace greynic::twin {

/// Counters of the client's RNIC under their plain names, those of the server's behind "server.".
/// Always the same names in the same order; with `recovery` those of lost packets too.
[[nodiscard]] std::vector<std::pair<std::string, double>> name_counters(const NicCounters& client,
                                                                        const NicCounters& server,
                                                                        double pipe_count,
                                                                        bool recovery = false);

}  // namespace greynic::twin
