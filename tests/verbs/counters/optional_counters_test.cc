#include "counters/optional_counters.h"

#include <gtest/gtest.h>
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>

#include <cstring>

#include "counters/rdma_netlink.h"

namespace greynic::verbs {
namespace {

os::ByteView attributes_of(const os::NetlinkMessage& message) {
  return message.bytes().subspan(NLMSG_HDRLEN);
}

/// As fill_stat_hwcounter_entry and its caller in the kernel's nldev.c write it.
void put_counter(os::NetlinkMessage& message, const char* name, std::uint32_t index, int dynamic) {
  const std::size_t entry = message.open(RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY);
  message.put_text(RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_NAME, name);
  message.put_value(RDMA_NLDEV_ATTR_STAT_HWCOUNTER_INDEX, index);
  if (dynamic >= 0) {
    message.put_value(RDMA_NLDEV_ATTR_STAT_HWCOUNTER_DYNAMIC, static_cast<std::uint8_t>(dynamic));
  }
  message.close(entry);
}

// Claim:  of a port's counters those are optional that the kernel marks so, each on or off.
// Oracle: a message put together as the kernel does, with the names that mlx5 has.
TEST(OptionalCounters, AreReadFromTheKernelsAnswer) {
  os::NetlinkMessage answer = rdma_request(RDMA_NLDEV_CMD_STAT_GET_STATUS);
  const std::size_t table = answer.open(RDMA_NLDEV_ATTR_STAT_HWCOUNTERS);
  put_counter(answer, "rx_write_requests", 0, -1);
  put_counter(answer, "cc_rx_ce_pkts", 29, 0);
  put_counter(answer, "cc_tx_cnp_pkts", 31, 1);
  answer.close(table);
  const auto found = read_optional(attributes_of(answer));
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].name, "cc_rx_ce_pkts");
  EXPECT_EQ(found[0].index, 29U);
  EXPECT_FALSE(found[0].on);
  EXPECT_EQ(found[1].name, "cc_tx_cnp_pkts");
  EXPECT_TRUE(found[1].on);
}

// Claim:  a request names the numbers of those that shall be on, and of no other, in a table that
//         is marked as nested, which the kernel asks for.
TEST(OptionalCounters, AreSwitchedByNumber) {
  os::NetlinkMessage request = rdma_request(RDMA_NLDEV_CMD_STAT_SET);
  put_switched_on(request, {{"a", 3, true}, {"b", 4, false}, {"c", 7, true}});
  nlattr table{};
  std::memcpy(&table, attributes_of(request).data(), sizeof table);
  EXPECT_EQ(table.nla_type, RDMA_NLDEV_ATTR_STAT_HWCOUNTERS | NLA_F_NESTED);
  std::vector<std::uint64_t> numbers;
  os::each_attribute(attributes_of(request), [&](std::uint16_t, os::ByteView inner) {
    os::each_attribute(inner, [&](std::uint16_t, os::ByteView value) {
      numbers.push_back(os::native_number(value));
    });
  });
  EXPECT_EQ(numbers, (std::vector<std::uint64_t>{3, 7}));
}

}  // namespace
}  // namespace greynic::verbs
