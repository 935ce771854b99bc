#pragma once

/// How a command talks to people, on stderr.

#include <string_view>
#include <vector>

#include "greynic/core/result.h"

namespace greynic::cli {

/// Tells an error and gives the exit code that goes with it: `return tell(error);`.
[[nodiscard]] int tell(const Error& error);

/// A warning or a hint.
void say(std::string_view line);

/// Infeasible tuples and what forbids them, one a line, and how many more there are that were not
/// explained.
void tell_infeasible(const std::vector<std::string>& lines, std::size_t left);

}  // namespace greynic::cli
