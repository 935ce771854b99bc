#pragma once

/// Rules that a device holds, with its own counters of what went through each.

#include <string>
#include <vector>

#include "greynic/target/target.h"

namespace greynic::loop {

/// One line a rule, in the device's order, under a heading.
[[nodiscard]] std::string to_text(const std::vector<target::CountedRule>& rules);
[[nodiscard]] std::string to_json_text(const std::vector<target::CountedRule>& rules);

/// The rules as a layout, weighed by the share of their table's packets that hit each, where any
/// packets were counted.
[[nodiscard]] Layout weighed_layout(const std::vector<target::CountedRule>& rules);

}  // namespace greynic::loop
