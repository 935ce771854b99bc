#pragma once

/// One function for each format; parse_rules picks. Each returns at least one rule or an error.

#include <cstddef>
#include <string>
#include <string_view>

#include "greynic/core/flow_rule.h"
#include "greynic/core/result.h"

namespace greynic::rules {

/// More than this no file may become: a filter of two wide port ranges alone is 900 rules.
inline constexpr std::size_t kMostRules = 1'000'000;
/// kTooBig when `more` rules would be too many; `place` is where in the file.
[[nodiscard]] Result<void> room_for(const RuleSet& set, std::size_t more, std::string_view place);

[[nodiscard]] Result<RuleSet> parse_classbench(std::string_view text, const std::string& source);
[[nodiscard]] Result<RuleSet> parse_openflow(std::string_view text, const std::string& source);
[[nodiscard]] Result<RuleSet> parse_fields(std::string_view text, const std::string& source);
[[nodiscard]] Result<RuleSet> parse_megaflows(std::string_view text, const std::string& source);
[[nodiscard]] Result<RuleSet> parse_tc_filters(std::string_view text, const std::string& source);
[[nodiscard]] Result<RuleSet> parse_layout_rules(std::string_view text, const std::string& source);

}  // namespace greynic::rules
