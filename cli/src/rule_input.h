#pragma once

/// Rules as commands take them: read, told apart, conjunctions resolved; and the hop they stand at.

#include <string>

#include "command.h"
#include "greynic/core/configuration.h"
#include "greynic/core/flow_rule.h"

namespace greynic::cli {

struct RuleInput {
  std::string path;
  std::string format;  ///< empty: told from the text
};

/// Adds the argument RULES and the option --format.
void add_rule_input(Command& command, RuleInput& input);

/// Adds --hop: which of the four mask sequences the rules are.
void add_hop(Command& command, Hop& hop);

/// Reads the rules; says on stderr when conjunctions became plain rules.
[[nodiscard]] Result<RuleSet> load_rules(const RuleInput& input);

}  // namespace greynic::cli
