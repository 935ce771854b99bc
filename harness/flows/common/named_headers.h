#pragma once

/// Which header a match must name before a field in it may be matched: every rule interface of a
/// kernel or switch insists on it, because a field is only a place in a packet of known shape.

#include <optional>
#include <string>
#include <vector>

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

/// The rules with every header named that their fields need, as all rule interfaces insist on.
///
/// with_address_family comes first. A rule that then lacks a header becomes one rule for each
/// header that its field can be in (ports without a protocol: TCP, UDP, SCTP). Where a rule names
/// another header than the one that its field is in, no packet has the field, which then reads as
/// zero: the condition goes when it asks for zero, else the whole rule, for nothing can match it.
/// `from`, priority, actions and weight are kept.
[[nodiscard]] RuleSet with_headers(RuleSet rules);

/// The same of one match: several matches, one, or none.
[[nodiscard]] std::vector<Match> headers_named(const Match& match);

/// The same of a layout, whose tables and order stay. Cut tables leave out what every packet in
/// them has: headers that all ways to a table have decided are named again, foreign words such as "resubmit(,5)" among them. What
/// tracks connections ("ct(...)") needs IP named like a field of it. An address family is added only when no rule of the layout names an
/// ether_type. A matcher whose rules then look at different headers becomes several, one behind the
/// other. A layout whose headers are all named stays as it is.
[[nodiscard]] Layout with_headers(const Layout& layout);

/// Cut tables leave out bits of addresses that every packet in them has. The same layout with these
/// bits in the rules that look at others of the same address: prefixes become whole again, for
/// interfaces that know no other masks.
[[nodiscard]] Layout with_prefixes(const Layout& layout);

/// The fields that a match looks at, by bits or as ranges.
[[nodiscard]] std::vector<MatchField> fields_looked_at(const Match& match);

}  // namespace greynic::flows
