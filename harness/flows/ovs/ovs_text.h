#pragma once

/// Rules in the words of ovs-ofctl, and back. Larger priorities win there, ports are numbers, and a
/// field may only be matched when the match names the header that it is in.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "greynic/core/flow_rule.h"
#include "greynic/core/result.h"

namespace greynic::flows {

inline constexpr RulePriority kOvsLastPriority = 65535;  ///< larger wins: ours is this minus it
inline constexpr std::uint32_t kOvsLastTable = 253;
inline constexpr unsigned kOvsVlanPresent = 0x1000;  ///< in vlan_tci and vlan_vid: there is a tag

/// OpenFlow numbers of the ports of a bridge, by name.
using PortNumbers = std::map<std::string, std::uint32_t>;

/// "dl_type..." part of one rule: fields joined by commas, empty for a match of everything.
/// kUnsupported names the field that Open vSwitch cannot match like this, and why.
[[nodiscard]] Result<std::string> ovs_match_text(const Match& match);

/// Can OpenFlow rules match this field at all? Some fields exist only between the datapath and its
/// daemon.
[[nodiscard]] bool ovs_takes(MatchField field);

/// Does Open vSwitch match this field under every mask, or only exactly?
[[nodiscard]] bool ovs_takes_any_mask(MatchField field);

/// Those that it matches exactly or in some forms only.
[[nodiscard]] std::set<MatchField> ovs_whole_fields();

/// Which masks and values of a field it takes, where it is only some; else empty.
[[nodiscard]] std::string ovs_forms(MatchField field);

/// ovs-ofctl takes "/8421:..." for a prefix of 8421 bits, so such masks cannot be said to it.
[[nodiscard]] bool ovs_misreads_mask(MatchField field, U128 bits);

/// "output:2,goto_table:3"; kUnsupported names the action, kBadInput a port that is not there.
[[nodiscard]] Result<std::string> ovs_actions_text(const FlowRule& rule, const PortNumbers& ports);

/// One line a rule for `ovs-ofctl add-flows`; the cookie of rule i is i + 1, so that a dump can be
/// put back in order. Errors name the rule.
[[nodiscard]] Result<std::string> ovs_rules_text(const RuleSet& rules, const PortNumbers& ports);

}  // namespace greynic::flows
