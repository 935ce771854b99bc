#include "counters/optional_counters.h"

#include <fmt/core.h>
#include <libmnl/libmnl.h>
#include <rdma/rdma_netlink.h>

#include <algorithm>
#include <utility>

#include "counters/rdma_netlink.h"

namespace greynic::verbs {
namespace {

void put_port(nlmsghdr* request, std::uint32_t device, int port) {
  mnl_attr_put_u32(request, RDMA_NLDEV_ATTR_DEV_INDEX, device);
  mnl_attr_put_u32(request, RDMA_NLDEV_ATTR_PORT_INDEX, static_cast<std::uint32_t>(port));
}

Result<void> switch_to(std::string_view device, int port,
                       const std::vector<OptionalCounter>& counters) {
  const auto index = device_index(device);
  if (!index) return pass_on(index);
  return ask(
      RDMA_NLDEV_CMD_STAT_SET, NLM_F_ACK,
      [&](nlmsghdr* request) {
        put_port(request, *index, port);
        put_switched_on(request, counters);
      },
      [](const nlmsghdr*) {});
}

}  // namespace

std::vector<OptionalCounter> read_optional(const nlmsghdr* answer) {
  std::vector<OptionalCounter> found;
  each_attribute(answer, [&](const nlattr* table) {
    if (mnl_attr_get_type(table) != RDMA_NLDEV_ATTR_STAT_HWCOUNTERS) return;
    each_nested(table, [&](const nlattr* entry) {
      OptionalCounter counter;
      bool optional = false;
      each_nested(entry, [&](const nlattr* a) {
        const int type = mnl_attr_get_type(a);
        if (type == RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_NAME) counter.name = mnl_attr_get_str(a);
        if (type == RDMA_NLDEV_ATTR_STAT_HWCOUNTER_INDEX) counter.index = mnl_attr_get_u32(a);
        if (type != RDMA_NLDEV_ATTR_STAT_HWCOUNTER_DYNAMIC) return;
        optional = true;
        counter.on = mnl_attr_get_u8(a) != 0;
      });
      if (optional) found.push_back(std::move(counter));
    });
  });
  return found;
}

void put_switched_on(nlmsghdr* request, const std::vector<OptionalCounter>& counters) {
  nlattr* const table = mnl_attr_nest_start(request, RDMA_NLDEV_ATTR_STAT_HWCOUNTERS);
  for (const OptionalCounter& counter : counters) {
    if (counter.on) mnl_attr_put_u32(request, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_INDEX, counter.index);
  }
  mnl_attr_nest_end(request, table);
}

Result<std::vector<OptionalCounter>> optional_counters(std::string_view device, int port) {
  const auto index = device_index(device);
  if (!index) return pass_on(index);
  std::vector<OptionalCounter> all;
  const auto done = ask(
      RDMA_NLDEV_CMD_STAT_GET_STATUS, 0,
      [&](nlmsghdr* request) { put_port(request, *index, port); },
      [&](const nlmsghdr* answer) { all = read_optional(answer); });
  if (!done) return pass_on(done);
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
