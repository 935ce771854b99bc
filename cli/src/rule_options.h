#pragma once

/// Options that several commands about rules share.

#include "command.h"
#include "greynic/core/configuration.h"
#include "greynic/loop/rule_input.h"

namespace greynic::cli {

/// Adds the argument RULES, which is returned, and the option --format.
Option add_rule_input(Command& command, loop::RuleInput& input);

/// Adds --hop: which of the four mask sequences the rules are.
void add_hop(Command& command, Hop& hop);

}  // namespace greynic::cli
