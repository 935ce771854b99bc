#pragma once

/// Would the filters of an interface return? Before anything is changed each is added a second time
/// in a chain that no packet comes to, read back and compared: whatever a kernel shows otherwise
/// than it wants to be told is found by that, and refused, instead of being lost by the way back.

#include <cstdint>
#include <vector>

#include "greynic/os/netlink.h"

namespace greynic::flows {

/// Chains from here on are for trials; rules end before.
inline constexpr std::uint32_t kFirstTrialChain = 0x0fff0000;

/// A filter in a trial chain: nobody's.
[[nodiscard]] bool is_trial(const os::NetlinkAnswer& filter);
/// Takes away what a process that was killed left in trial chains.
[[nodiscard]] Result<void> clear_trials(os::NetlinkSocket& socket, int interface_number);

/// kUnsupported names the first filter that would not return. The chains are empty afterwards.
[[nodiscard]] Result<void> try_filters(os::NetlinkSocket& socket, int interface_number,
                                       const std::vector<os::NetlinkAnswer>& filters);

/// kUnsupported names a chain whose template would be lost with its last filter.
[[nodiscard]] Result<void> check_templates(os::NetlinkSocket& socket, int interface_number);

/// Takes all filters of these chains away.
[[nodiscard]] Result<void> flush_chains(os::NetlinkSocket& socket, int interface_number,
                                        const std::vector<std::uint32_t>& chains);

}  // namespace greynic::flows
