#pragma once

/// The messages behind OptionalCountersOn.

#include <linux/netlink.h>

#include <vector>

#include "greynic/verbs/counters.h"

namespace greynic::verbs {

/// The optional ones of an answer to RDMA_NLDEV_CMD_STAT_GET_STATUS.
[[nodiscard]] std::vector<OptionalCounter> read_optional(const nlmsghdr* answer);
/// Into RDMA_NLDEV_CMD_STAT_SET: those that are on shall be on, and no other.
void put_switched_on(nlmsghdr* request, const std::vector<OptionalCounter>& counters);

}  // namespace greynic::verbs
