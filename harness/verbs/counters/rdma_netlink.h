#pragma once

/// The kernel's rdma netlink family (RDMA_NLDEV_*), of which this room asks counters.

#include <cstdint>
#include <string_view>
#include <vector>

#include "greynic/core/result.h"
#include "greynic/os/netlink.h"

namespace greynic::verbs {

/// A request to do `command` (RDMA_NLDEV_CMD_*).
[[nodiscard]] os::NetlinkMessage rdma_request(int command);

class RdmaNetlink {
 public:
  /// kMissing when the kernel has no rdma netlink.
  [[nodiscard]] static Result<RdmaNetlink> create();

  /// The kernel's number of a device; kMissing when there is none of this name.
  [[nodiscard]] Result<std::uint32_t> device_index(std::string_view device);
  /// The attributes of each answer to one request, or to one that lists all of a kind. kMissing
  /// when the kernel refuses it.
  [[nodiscard]] Result<std::vector<os::NetlinkAnswer>> ask(os::NetlinkMessage request);
  [[nodiscard]] Result<std::vector<os::NetlinkAnswer>> list(os::NetlinkMessage request);

 private:
  explicit RdmaNetlink(os::NetlinkSocket socket) : socket_(std::move(socket)) {}
  os::NetlinkSocket socket_;
};

}  // namespace greynic::verbs
