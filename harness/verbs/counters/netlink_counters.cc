#include <rdma/rdma_netlink.h>

#include "counters/rdma_netlink.h"
#include "greynic/verbs/counters.h"

namespace greynic::verbs {
namespace {

using os::ByteView;

/// RDMA_NLDEV_ATTR_STAT_HWCOUNTERS: a table of name and value.
void read_table(ByteView table, std::map<std::string, double>& into) {
  os::each_attribute(table, [&](std::uint16_t, ByteView entry) {
    std::string name;
    double value = 0.0;
    os::each_attribute(entry, [&](std::uint16_t type, ByteView field) {
      if (type == RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_NAME) name = os::text_of(field);
      if (type == RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_VALUE) {
        value = static_cast<double>(os::native_number(field));
      }
    });
    if (!name.empty()) into[name] = value;
  });
}

QpCounters read_counter(ByteView entry) {
  const auto number = [](ByteView value) {
    return static_cast<std::uint32_t>(os::native_number(value));
  };
  QpCounters counter;
  os::each_attribute(entry, [&](std::uint16_t type, ByteView value) {
    if (type == RDMA_NLDEV_ATTR_STAT_COUNTER_ID) counter.id = number(value);
    if (type == RDMA_NLDEV_ATTR_STAT_HWCOUNTERS) read_table(value, counter.values);
    if (type != RDMA_NLDEV_ATTR_RES_QP) return;
    os::each_attribute(value, [&](std::uint16_t, ByteView qp) {
      os::each_attribute(qp, [&](std::uint16_t field, ByteView of_qp) {
        if (field == RDMA_NLDEV_ATTR_RES_LQPN) counter.qp_numbers.push_back(number(of_qp));
      });
    });
  });
  return counter;
}

KernelQp read_qp(ByteView entry) {
  KernelQp qp;
  os::each_attribute(entry, [&](std::uint16_t type, ByteView value) {
    const auto number = static_cast<std::uint32_t>(os::native_number(value));
    if (type == RDMA_NLDEV_ATTR_RES_LQPN) qp.number = number;
    if (type == RDMA_NLDEV_ATTR_RES_TYPE) qp.type = static_cast<std::uint8_t>(number);
    if (type == RDMA_NLDEV_ATTR_RES_STATE) qp.state = static_cast<std::uint8_t>(number);
    if (type == RDMA_NLDEV_ATTR_RES_SQ_PSN) qp.send_psn = number;
    if (type == RDMA_NLDEV_ATTR_RES_RQ_PSN) qp.receive_psn = number;
    if (type == RDMA_NLDEV_ATTR_RES_PID) qp.pid = number;
  });
  return qp;
}

}  // namespace

Result<std::map<std::string, double>> netlink_counters(std::string_view device, int port) {
  auto netlink = RdmaNetlink::create();
  if (!netlink) return pass_on(netlink);
  const auto index = netlink->device_index(device);
  if (!index) return pass_on(index);
  os::NetlinkMessage request = rdma_request(RDMA_NLDEV_CMD_STAT_GET);
  request.put_value(RDMA_NLDEV_ATTR_DEV_INDEX, *index);
  request.put_value(RDMA_NLDEV_ATTR_PORT_INDEX, static_cast<std::uint32_t>(port));
  const auto answers = netlink->ask(std::move(request));
  if (!answers) return pass_on(answers);
  std::map<std::string, double> counters;
  for (const os::NetlinkAnswer& answer : *answers) {
    os::each_attribute(answer.payload, [&](std::uint16_t type, ByteView value) {
      if (type == RDMA_NLDEV_ATTR_STAT_HWCOUNTERS) read_table(value, counters);
    });
  }
  return counters;
}

Result<std::vector<KernelQp>> netlink_qps(std::string_view device) {
  auto netlink = RdmaNetlink::create();
  if (!netlink) return pass_on(netlink);
  const auto index = netlink->device_index(device);
  if (!index) return pass_on(index);
  os::NetlinkMessage request = rdma_request(RDMA_NLDEV_CMD_RES_QP_GET);
  request.put_value(RDMA_NLDEV_ATTR_DEV_INDEX, *index);
  const auto answers = netlink->list(std::move(request));
  if (!answers) return pass_on(answers);
  std::vector<KernelQp> all;
  for (const os::NetlinkAnswer& answer : *answers) {
    os::each_attribute(answer.payload, [&](std::uint16_t type, ByteView qps) {
      if (type != RDMA_NLDEV_ATTR_RES_QP) return;
      os::each_attribute(qps,
                         [&](std::uint16_t, ByteView entry) { all.push_back(read_qp(entry)); });
    });
  }
  return all;
}

Result<std::vector<QpCounters>> netlink_qp_counters(std::string_view device) {
  auto netlink = RdmaNetlink::create();
  if (!netlink) return pass_on(netlink);
  const auto index = netlink->device_index(device);
  if (!index) return pass_on(index);
  os::NetlinkMessage request = rdma_request(RDMA_NLDEV_CMD_STAT_GET);
  request.put_value(RDMA_NLDEV_ATTR_DEV_INDEX, *index);
  request.put_value(RDMA_NLDEV_ATTR_STAT_RES, std::uint32_t{RDMA_NLDEV_ATTR_RES_QP});
  const auto answers = netlink->list(std::move(request));
  if (!answers) return pass_on(answers);
  std::vector<QpCounters> all;
  for (const os::NetlinkAnswer& answer : *answers) {
    os::each_attribute(answer.payload, [&](std::uint16_t type, ByteView sets) {
      if (type != RDMA_NLDEV_ATTR_STAT_COUNTER) return;
      os::each_attribute(
          sets, [&](std::uint16_t, ByteView entry) { all.push_back(read_counter(entry)); });
    });
  }
  return all;
}

}  // namespace greynic::verbs
