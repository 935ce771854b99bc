#include "counters/optional_counters.h"

#include <fmt/core.h>
#include <rdma/rdma_netlink.h>

#include <utility>

#include "counters/rdma_netlink.h"

namespace greynic::verbs {
namespace {

using os::ByteView;

/// Asks `command` about a port; `complete` adds what else the request has.
template <typename Complete>
Result<std::vector<os::NetlinkAnswer>> ask_port(int command, std::string_view device, int port,
                                                const Complete& complete) {
  auto netlink = RdmaNetlink::create();
  if (!netlink) return pass_on(netlink);
  const auto index = netlink->device_index(device);
  if (!index) return pass_on(index);
  os::NetlinkMessage request = rdma_request(command);
  request.put_value(RDMA_NLDEV_ATTR_DEV_INDEX, *index);
  request.put_value(RDMA_NLDEV_ATTR_PORT_INDEX, static_cast<std::uint32_t>(port));
  complete(request);
  return netlink->ask(std::move(request));
}

Result<void> switch_to(std::string_view device, int port,
                       const std::vector<OptionalCounter>& counters) {
  const auto done =
      ask_port(RDMA_NLDEV_CMD_STAT_SET, device, port,
               [&](os::NetlinkMessage& request) { put_switched_on(request, counters); });
  return done ? Result<void>() : pass_on(done);
}

}  // namespace

std::vector<OptionalCounter> read_optional(ByteView attributes) {
  std::vector<OptionalCounter> found;
  os::each_attribute(attributes, [&](std::uint16_t attribute, ByteView table) {
    if (attribute != RDMA_NLDEV_ATTR_STAT_HWCOUNTERS) return;
    os::each_attribute(table, [&](std::uint16_t, ByteView entry) {
      OptionalCounter counter;
      bool optional = false;
      os::each_attribute(entry, [&](std::uint16_t type, ByteView value) {
        if (type == RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_NAME) counter.name = os::text_of(value);
        if (type == RDMA_NLDEV_ATTR_STAT_HWCOUNTER_INDEX) {
          counter.index = static_cast<std::uint32_t>(os::native_number(value));
        }
        if (type != RDMA_NLDEV_ATTR_STAT_HWCOUNTER_DYNAMIC) return;
        optional = true;
        counter.on = os::native_number(value) != 0;
      });
      if (optional) found.push_back(std::move(counter));
    });
  });
  return found;
}

void put_switched_on(os::NetlinkMessage& request, const std::vector<OptionalCounter>& counters) {
  const std::size_t table = request.open(RDMA_NLDEV_ATTR_STAT_HWCOUNTERS);
  for (const OptionalCounter& counter : counters) {
    if (counter.on) request.put_value(RDMA_NLDEV_ATTR_STAT_HWCOUNTER_INDEX, counter.index);
  }
  request.close(table);
}

Result<std::vector<OptionalCounter>> optional_counters(std::string_view device, int port) {
  const auto answers =
      ask_port(RDMA_NLDEV_CMD_STAT_GET_STATUS, device, port, [](os::NetlinkMessage&) {});
  if (!answers) return pass_on(answers);
  std::vector<OptionalCounter> all;
  for (const os::NetlinkAnswer& answer : *answers) all = read_optional(answer.payload);
  return all;
}

OptionalCountersOn::OptionalCountersOn(std::string device, int port,
                                       std::vector<OptionalCounter> before)
    : device_(std::move(device)), port_(port), before_(std::move(before)) {}

Result<std::unique_ptr<OptionalCountersOn>> OptionalCountersOn::create(std::string device,
                                                                       int port) {
  auto before = optional_counters(device, port);
  if (!before) return before.error().while_doing("asking for optional counters");
  std::vector<OptionalCounter> all = *before;
  for (OptionalCounter& counter : all) counter.on = true;
  if (!all.empty()) {
    if (auto done = switch_to(device, port, all); !done) {
      return fail(
          ErrorCode::kMissing,
          fmt::format("the optional counters of {} cannot be switched on ({}); run as root, "
                      "or leave out optional_counters",
                      device, done.error().message));
    }
  }
  return std::unique_ptr<OptionalCountersOn>(
      new OptionalCountersOn(std::move(device), port, std::move(*before)));
}

OptionalCountersOn::~OptionalCountersOn() {
  // A device that is gone took its counters with it.
  if (!before_.empty()) (void)switch_to(device_, port_, before_);
}

std::vector<std::string> OptionalCountersOn::names() const {
  std::vector<std::string> names;
  for (const OptionalCounter& counter : before_) names.push_back(counter.name);
  return names;
}

}  // namespace greynic::verbs
