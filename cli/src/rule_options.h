#pragma once

/// Options that several commands about rules share.

#include <optional>

#include "command.h"
#include "greynic/core/configuration.h"
#include "greynic/loop/rule_input.h"

namespace greynic::cli {

/// Adds the argument RULES, which is returned, and the option --format.
Option add_rule_input(Command& command, loop::RuleInput& input);

/// Adds --growth: how many times the rules of the input a layout may have; empty for `auto`.
void add_growth(Command& command, std::optional<double>& growth);

/// Adds --hop: which of the four mask sequences the rules are.
void add_hop(Command& command, Hop& hop);

}  // namespace greynic::cli
