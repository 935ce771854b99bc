#pragma once

/// Where filters are, as the kernel numbers it.

#include <linux/pkt_cls.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <cstdint>

namespace greynic::flows {

inline constexpr std::uint32_t kIngress = TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS);
inline constexpr std::uint32_t kEgress = TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_EGRESS);
inline constexpr std::uint32_t kLastChain = TC_ACT_EXT_VAL_MASK;

/// What a message about an interface begins with.
[[nodiscard]] inline tcmsg at(int interface_number, std::uint32_t parent = kIngress) {
  tcmsg header{};
  header.tcm_family = AF_UNSPEC;
  header.tcm_ifindex = interface_number;
  header.tcm_parent = parent;
  return header;
}

}  // namespace greynic::flows
