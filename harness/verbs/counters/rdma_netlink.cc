#include "counters/rdma_netlink.h"

#include <fmt/core.h>
#include <libmnl/libmnl.h>
#include <rdma/rdma_netlink.h>

#include <ctime>
#include <memory>

namespace greynic::verbs {
namespace {

// libmnl's own loop macros hand void* to typed pointers, which C++ does not take.
void each(const char* begin, const char* end, const Visit& visit) {
  const auto* attribute = reinterpret_cast<const nlattr*>(begin);
  while (mnl_attr_ok(attribute, static_cast<int>(end - reinterpret_cast<const char*>(attribute)))) {
    visit(attribute);
    attribute = mnl_attr_next(attribute);
  }
}

}  // namespace

void each_nested(const nlattr* outer, const Visit& visit) {
  const auto* begin = static_cast<const char*>(mnl_attr_get_payload(outer));
  each(begin, begin + mnl_attr_get_payload_len(outer), visit);
}

Result<void> ask(int command, int flags, const std::function<void(nlmsghdr*)>& fill,
                 const std::function<void(const nlmsghdr*)>& visit) {
  const std::unique_ptr<mnl_socket, int (*)(mnl_socket*)> socket(mnl_socket_open(NETLINK_RDMA),
                                                                 mnl_socket_close);
  if (!socket || mnl_socket_bind(socket.get(), 0, MNL_SOCKET_AUTOPID) < 0) {
    return fail(ErrorCode::kMissing, "no rdma netlink; modprobe ib_core");
  }
  alignas(nlmsghdr) char buffer[32768];
  nlmsghdr* header = mnl_nlmsg_put_header(buffer);
  header->nlmsg_type = static_cast<std::uint16_t>(RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command));
  header->nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | flags);
  header->nlmsg_seq = static_cast<std::uint32_t>(time(nullptr));
  const std::uint32_t sequence = header->nlmsg_seq;
  fill(header);
  if (mnl_socket_sendto(socket.get(), header, header->nlmsg_len) < 0) {
    return fail(ErrorCode::kIo, "rdma netlink does not take a request");
  }
  using Callback = std::function<void(const nlmsghdr*)>;
  const auto trampoline = [](const nlmsghdr* answer, void* data) {
    (*static_cast<const Callback*>(data))(answer);
    return (answer->nlmsg_flags & NLM_F_MULTI) != 0 ? MNL_CB_OK : MNL_CB_STOP;
  };
  while (true) {
    const ssize_t size = mnl_socket_recvfrom(socket.get(), buffer, sizeof buffer);
    if (size < 0) return fail(ErrorCode::kIo, "rdma netlink does not answer");
    const int state =
        mnl_cb_run(buffer, static_cast<std::size_t>(size), sequence,
                   mnl_socket_get_portid(socket.get()), trampoline, const_cast<Callback*>(&visit));
    if (state < 0)
      return fail(ErrorCode::kMissing, "rdma netlink: the device has no such statistics");
    if (state == MNL_CB_STOP) return {};
  }
}

void each_attribute(const nlmsghdr* message, const Visit& visit) {
  each(static_cast<const char*>(mnl_nlmsg_get_payload(message)),
       static_cast<const char*>(mnl_nlmsg_get_payload_tail(message)), visit);
}

Result<std::uint32_t> device_index(std::string_view device) {
  std::uint32_t found = 0;
  bool there = false;
  const auto done = ask(
      RDMA_NLDEV_CMD_GET, NLM_F_DUMP | NLM_F_ACK, [](nlmsghdr*) {},
      [&](const nlmsghdr* answer) {
        std::uint32_t index = 0;
        bool mine = false;
        each_attribute(answer, [&](const nlattr* a) {
          const int type = mnl_attr_get_type(a);
          if (type == RDMA_NLDEV_ATTR_DEV_INDEX) index = mnl_attr_get_u32(a);
          if (type == RDMA_NLDEV_ATTR_DEV_NAME) mine = device == mnl_attr_get_str(a);
        });
        if (mine) {
          found = index;
          there = true;
        }
      });
  if (!done) return pass_on(done);
  if (!there) return fail(ErrorCode::kMissing, fmt::format("rdma netlink knows no {}", device));
  return found;
}

}  // namespace greynic::verbs
