#pragma once

/// One function for each format; parse_rules picks. Each returns at least one rule or an error.

#include <string>
#include <string_view>

#include "greynic/core/flow_rule.h"
#include "greynic/core/result.h"

namespace greynic::rules {

[[nodiscard]] Result<RuleSet> parse_classbench(std::string_view text, const std::string& source);
[[nodiscard]] Result<RuleSet> parse_openflow(std::string_view text, const std::string& source);
[[nodiscard]] Result<RuleSet> parse_fields(std::string_view text, const std::string& source);
[[nodiscard]] Result<RuleSet> parse_megaflows(std::string_view text, const std::string& source);
[[nodiscard]] Result<RuleSet> parse_tc_filters(std::string_view text, const std::string& source);
[[nodiscard]] Result<RuleSet> parse_layout_rules(std::string_view text, const std::string& source);

}  // namespace greynic::rules
