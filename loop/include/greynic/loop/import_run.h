#pragma once

#include <string>
#include <vector>

#include "greynic/results/perftest.h"

namespace greynic::loop {

/// Makes the run file `out` of perftest's logs; `command` is kept with it for its report. kBadInput
/// when `out` is there already; other errors name the log, the place in it and the remedy.
[[nodiscard]] Result<results::PerftestImport> import_run(const std::vector<std::string>& logs,
                                                         const results::PerftestOptions& options,
                                                         const std::string& out,
                                                         const std::string& command);

}  // namespace greynic::loop
