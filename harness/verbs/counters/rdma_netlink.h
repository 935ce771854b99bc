#pragma once

/// Requests of the kernel's rdma netlink family, and the way through their answers.

#include <linux/netlink.h>

#include <cstdint>
#include <functional>
#include <string_view>

#include "greynic/core/result.h"

namespace greynic::verbs {

using Visit = std::function<void(const nlattr*)>;
void each_nested(const nlattr* outer, const Visit& visit);
void each_attribute(const nlmsghdr* message, const Visit& visit);

/// Sends one request (RDMA_NLDEV_CMD_*), which `fill` completes, and visits every answer. kMissing
/// when the kernel has no rdma netlink or refuses the request.
[[nodiscard]] Result<void> ask(int command, int flags, const std::function<void(nlmsghdr*)>& fill,
                               const std::function<void(const nlmsghdr*)>& visit);

/// The kernel's number of a device.
[[nodiscard]] Result<std::uint32_t> device_index(std::string_view device);

}  // namespace greynic::verbs
