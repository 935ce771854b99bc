#pragma once

#include <string>

#include "greynic/core/flow_rule.h"
#include "greynic/core/result.h"
#include "greynic/loop/talk.h"

namespace greynic::loop {

/// A rule file as commands take it.
struct RuleInput {
  /// Or the name of one that comes with greynic (container_host), or made:FAMILY:COUNT:SEED
  /// (rules/made_filters.h).
  std::string path;
  std::string format;  ///< empty: told from the text
};

/// Reads the rules; conjunctions become plain rules, and `talk` hears it. kBadInput lists the
/// formats when `format` is none of them.
[[nodiscard]] Result<RuleSet> load_rules(const RuleInput& input, const Talk& talk);

}  // namespace greynic::loop
