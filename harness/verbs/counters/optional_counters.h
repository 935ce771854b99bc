#pragma once

/// The messages behind OptionalCountersOn.

#include <vector>

#include "greynic/os/netlink.h"
#include "greynic/verbs/counters.h"

namespace greynic::verbs {

/// The optional ones in the attributes of an answer to RDMA_NLDEV_CMD_STAT_GET_STATUS.
[[nodiscard]] std::vector<OptionalCounter> read_optional(os::ByteView attributes);
/// Into RDMA_NLDEV_CMD_STAT_SET: switches on those that are on, and no other.
void put_switched_on(os::NetlinkMessage& request, const std::vector<OptionalCounter>& counters);

}  // namespace greynic::verbs
