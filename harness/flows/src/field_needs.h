#pragma once

/// Which header a match must name before a field in it may be matched: every rule interface of a
/// kernel or switch insists on it, because a field is only a place in a packet of known shape.

#include <optional>
#include <string>

#include "greynic/core/flow_rule.h"

namespace greynic::flows {

/// "needs ether_type=0x0800 in the same rule" when the match does not pin down the header that
/// `field` is in; empty when it does.
[[nodiscard]] std::optional<std::string> missing_header(const Match& match, MatchField field);

/// The exact value of a field in a match; empty when the field is not there or masked.
[[nodiscard]] std::optional<U128> exact_value(const Match& match, MatchField field);

/// Filter sets such as ClassBench's speak of IPv4 packets without saying so. When no rule of a
/// table names an ether_type, each gets that of its address family, IPv4 unless it has an IPv6
/// field; the rules of other tables stay as they are.
[[nodiscard]] RuleSet with_address_family(RuleSet rules);

}  // namespace greynic::flows
