#include <libmnl/libmnl.h>
#include <rdma/rdma_netlink.h>

#include "counters/rdma_netlink.h"
#include "greynic/verbs/counters.h"

namespace greynic::verbs {
namespace {

/// RDMA_NLDEV_ATTR_STAT_HWCOUNTERS: a table of name and value.
void read_table(const nlattr* table, std::map<std::string, double>& into) {
  each_nested(table, [&](const nlattr* entry) {
    std::string name;
    double value = 0.0;
    each_nested(entry, [&](const nlattr* a) {
      const int type = mnl_attr_get_type(a);
      if (type == RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_NAME) name = mnl_attr_get_str(a);
      if (type == RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_VALUE) {
        value = static_cast<double>(mnl_attr_get_u64(a));
      }
    });
    if (!name.empty()) into[name] = value;
  });
}

QpCounters read_counter(const nlattr* entry) {
  QpCounters counter;
  each_nested(entry, [&](const nlattr* a) {
    const int type = mnl_attr_get_type(a);
    if (type == RDMA_NLDEV_ATTR_STAT_COUNTER_ID) counter.id = mnl_attr_get_u32(a);
    if (type == RDMA_NLDEV_ATTR_STAT_HWCOUNTERS) read_table(a, counter.values);
    if (type != RDMA_NLDEV_ATTR_RES_QP) return;
    each_nested(a, [&](const nlattr* qp) {
      each_nested(qp, [&](const nlattr* b) {
        if (mnl_attr_get_type(b) == RDMA_NLDEV_ATTR_RES_LQPN) {
          counter.qp_numbers.push_back(mnl_attr_get_u32(b));
        }
      });
    });
  });
  return counter;
}

}  // namespace

Result<std::map<std::string, double>> netlink_counters(std::string_view device, int port) {
  const auto index = device_index(device);
  if (!index) return pass_on(index);
  std::map<std::string, double> counters;
  const auto done = ask(
      RDMA_NLDEV_CMD_STAT_GET, 0,
      [&](nlmsghdr* header) {
        mnl_attr_put_u32(header, RDMA_NLDEV_ATTR_DEV_INDEX, *index);
        mnl_attr_put_u32(header, RDMA_NLDEV_ATTR_PORT_INDEX, static_cast<std::uint32_t>(port));
      },
      [&](const nlmsghdr* answer) {
        each_attribute(answer, [&](const nlattr* a) {
          if (mnl_attr_get_type(a) == RDMA_NLDEV_ATTR_STAT_HWCOUNTERS) read_table(a, counters);
        });
      });
  if (!done) return pass_on(done);
  return counters;
}

Result<std::vector<QpCounters>> netlink_qp_counters(std::string_view device) {
  const auto index = device_index(device);
  if (!index) return pass_on(index);
  std::vector<QpCounters> all;
  const auto done = ask(
      RDMA_NLDEV_CMD_STAT_GET, NLM_F_DUMP | NLM_F_ACK,
      [&](nlmsghdr* header) {
        mnl_attr_put_u32(header, RDMA_NLDEV_ATTR_DEV_INDEX, *index);
        mnl_attr_put_u32(header, RDMA_NLDEV_ATTR_STAT_RES, RDMA_NLDEV_ATTR_RES_QP);
      },
      [&](const nlmsghdr* answer) {
        each_attribute(answer, [&](const nlattr* a) {
          if (mnl_attr_get_type(a) != RDMA_NLDEV_ATTR_STAT_COUNTER) return;
          each_nested(a, [&](const nlattr* entry) { all.push_back(read_counter(entry)); });
        });
      });
  if (!done) return pass_on(done);
  return all;
}

}  // namespace greynic::verbs
