#include "counters/rdma_netlink.h"

#include <fmt/core.h>
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>

namespace greynic::verbs {
namespace {

using Answers = Result<std::vector<os::NetlinkAnswer>>;

Answers or_missing(Answers answers) {
  if (answers || answers.error().code == ErrorCode::kIo) return answers;
  return fail(ErrorCode::kMissing,
              "rdma netlink: the device has no such statistics: " + answers.error().message);
}

}  // namespace

os::NetlinkMessage rdma_request(int command) {
  return {static_cast<std::uint16_t>(RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command)), 0};
}

Result<RdmaNetlink> RdmaNetlink::create() {
  auto socket = os::NetlinkSocket::create(NETLINK_RDMA);
  if (!socket) return fail(ErrorCode::kMissing, "no rdma netlink; modprobe ib_core");
  return RdmaNetlink(std::move(*socket));
}

Answers RdmaNetlink::ask(os::NetlinkMessage request) {
  return or_missing(socket_.ask(std::move(request)));
}

Answers RdmaNetlink::list(os::NetlinkMessage request) {
  return or_missing(socket_.dump(std::move(request)));
}

Result<std::uint32_t> RdmaNetlink::device_index(std::string_view device) {
  const auto answers = list(rdma_request(RDMA_NLDEV_CMD_GET));
  if (!answers) return pass_on(answers);
  for (const os::NetlinkAnswer& answer : *answers) {
    std::uint32_t index = 0;
    bool mine = false;
    os::each_attribute(answer.payload, [&](std::uint16_t type, os::ByteView value) {
      if (type == RDMA_NLDEV_ATTR_DEV_INDEX) {
        index = static_cast<std::uint32_t>(os::native_number(value));
      }
      if (type == RDMA_NLDEV_ATTR_DEV_NAME) mine = device == os::text_of(value);
    });
    if (mine) return index;
  }
  return fail(ErrorCode::kMissing, fmt::format("rdma netlink knows no {}", device));
}

}  // namespace greynic::verbs
