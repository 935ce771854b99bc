#pragma once

/// Numbers of actions that have fewer bits in a packet or an interface than a file can give them.

#include <optional>
#include <string>

#include "greynic/core/flow_rule.h"

namespace greynic::flows {

/// "a VLAN id has 12 bits": why no interface could do this as asked; empty when nothing is too
/// large. Tables and meters are checked by each driver, whose interface has its own last one.
[[nodiscard]] std::optional<std::string> too_large(const Action& action);

}  // namespace greynic::flows
