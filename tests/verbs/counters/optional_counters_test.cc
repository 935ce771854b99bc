#include "counters/optional_counters.h"

#include <gtest/gtest.h>
#include <libmnl/libmnl.h>
#include <rdma/rdma_netlink.h>

#include <algorithm>
#include <array>

#include "counters/rdma_netlink.h"

namespace greynic::verbs {
namespace {

struct Message {
  alignas(nlmsghdr) std::array<char, 4096> bytes{};
  nlmsghdr* header = mnl_nlmsg_put_header(bytes.data());
};

/// As fill_stat_hwcounter_entry and its caller in the kernel's nldev.c write it.
void put_counter(nlmsghdr* header, const char* name, std::uint32_t index, int dynamic) {
  nlattr* const entry = mnl_attr_nest_start(header, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY);
  mnl_attr_put_strz(header, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_NAME, name);
  mnl_attr_put_u32(header, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_INDEX, index);
  if (dynamic >= 0) {
    mnl_attr_put_u8(header, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_DYNAMIC,
                    static_cast<std::uint8_t>(dynamic));
  }
  mnl_attr_nest_end(header, entry);
}

// Claim:  of a port's counters those are optional that the kernel marks so, each on or off.
// Oracle: a message put together as the kernel does, with the names that mlx5 has.
TEST(OptionalCounters, AreReadFromTheKernelsAnswer) {
  Message answer;
  nlattr* const table = mnl_attr_nest_start(answer.header, RDMA_NLDEV_ATTR_STAT_HWCOUNTERS);
  put_counter(answer.header, "rx_write_requests", 0, -1);
  put_counter(answer.header, "cc_rx_ce_pkts", 29, 0);
  put_counter(answer.header, "cc_tx_cnp_pkts", 31, 1);
  mnl_attr_nest_end(answer.header, table);
  const auto found = read_optional(answer.header);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].name, "cc_rx_ce_pkts");
  EXPECT_EQ(found[0].index, 29U);
  EXPECT_FALSE(found[0].on);
  EXPECT_EQ(found[1].name, "cc_tx_cnp_pkts");
  EXPECT_TRUE(found[1].on);
}

// Claim:  a request names the numbers of those that shall be on, and of no other.
TEST(OptionalCounters, AreSwitchedByNumber) {
  Message request;
  put_switched_on(request.header, {{"a", 3, true}, {"b", 4, false}, {"c", 7, true}});
  std::vector<std::uint32_t> numbers;
  each_attribute(request.header, [&](const nlattr* table) {
    ASSERT_EQ(mnl_attr_get_type(table), RDMA_NLDEV_ATTR_STAT_HWCOUNTERS);
    EXPECT_NE(table->nla_type & NLA_F_NESTED, 0);
    each_nested(table, [&](const nlattr* a) { numbers.push_back(mnl_attr_get_u32(a)); });
  });
  EXPECT_EQ(numbers, (std::vector<std::uint32_t>{3, 7}));
}

}  // namespace
}  // namespace greynic::verbs
