#pragma once

/// Rules as tc flower filters and back: the attributes of linux/pkt_cls.h and linux/tc_act/.

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "greynic/core/flow_rule.h"
#include "greynic/core/result.h"
#include "greynic/os/netlink.h"

namespace greynic::flows {

/// Can flower match the field at all, and under any mask?
[[nodiscard]] bool tc_takes(MatchField field);
[[nodiscard]] bool tc_takes_any_mask(MatchField field);
/// Those that it matches exactly or in some forms only.
[[nodiscard]] std::set<MatchField> tc_whole_fields();
/// Which masks and values of a field it takes, where it is only some; else empty.
[[nodiscard]] std::string tc_forms(MatchField field);

/// Puts the key attributes of a match. kUnsupported names the field and the reason.
[[nodiscard]] Result<void> put_flower_match(os::NetlinkMessage& message, const Match& match);
/// The Ethernet type that a filter with this match has to be filed under; ETH_P_ALL when packets of
/// several types can match it.
[[nodiscard]] std::uint16_t tc_protocol(const Match& match);
/// The match in a filter's options. kUnsupported for a key that no match field can hold.
[[nodiscard]] Result<Match> read_flower_match(os::ByteView options, std::uint16_t tc_protocol);

/// Puts TCA_FLOWER_ACT. kUnsupported names the action.
[[nodiscard]] Result<void> put_tc_actions(os::NetlinkMessage& message,
                                          const std::vector<Action>& actions,
                                          const os::LinkNumbers& ports);
struct TcActions {
  std::vector<Action> actions;
  std::uint64_t packets = 0;
  std::uint64_t bytes = 0;
};
/// The actions inside TCA_FLOWER_ACT, and what the first of them has counted.
[[nodiscard]] Result<TcActions> read_tc_actions(os::ByteView list, const os::LinkNumbers& ports);

}  // namespace greynic::flows
