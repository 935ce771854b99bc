#pragma once

/// What may run in a lab: programs that a library can be loaded into.

#include <string>

#include "greynic/core/result.h"

namespace greynic::lab {

/// The path of the program; kMissing with the reason when it is not there, or cannot be reached by
/// a preloaded library.
[[nodiscard]] Result<std::string> find_runnable(const std::string& name);

}  // namespace greynic::lab
