#pragma once

/// Rules with their counters on stdout, as `greynic list` and the end of `greynic apply --hold`
/// show them.

#include <vector>

#include "greynic/target/target.h"

namespace greynic::cli {

/// One line a rule, in the device's order, or JSON.
void print_rules(const std::vector<target::CountedRule>& rules, bool as_json);

}  // namespace greynic::cli
