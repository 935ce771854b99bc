#pragma once

/// Matches as ovs-fields(7) writes them: "tcp", "nw_src=10.0.0.0/8", "ct_state=+new-est",
/// "vlan_tci=0x1000/0x1000". Used by the OpenFlow and field-list readers.

#include <optional>
#include <string_view>

#include "field_value.h"
#include "greynic/core/flow_rule.h"
#include "line_text.h"

namespace greynic::rules {

/// Adds one comma-separated part of a flow's match. A complaint when it is no match or cannot be
/// held; parts that look at nothing add nothing.
[[nodiscard]] std::optional<Complaint> add_ovs_match(std::string_view part, Match& match);

/// "+new-est+trk", "0x21/0x3f", "0x21".
[[nodiscard]] std::optional<Masked> ct_state_from(std::string_view text);

/// "no", "yes", "first", "later", "not_later": bit 0 is any fragment, bit 1 a later one.
[[nodiscard]] std::optional<Masked> fragment_from(std::string_view text);

/// "+syn-ack", "0x2/0x12", "0x2".
[[nodiscard]] std::optional<Masked> tcp_flags_from(std::string_view text);

}  // namespace greynic::rules
